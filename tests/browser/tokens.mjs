// API tokens: made, shown once, copied, used, revoked; by users and by admins.
import { adminLogin, at, login, person } from "./flow.mjs";
import { clean, equal, ok, test } from "./tap.mjs";

const call = (m, token, path = "/api/me", method = "GET") =>
    fetch(m.url + path, { method, headers: { Authorization: `Bearer ${token}` } });

async function open(page, name) {
    await login(page, name);
    await page.goto("/#/account");
    await page.waitForSelector(at("new-token"));
}

async function make(page, name, ...scopes) {
    await page.click(at("new-token"));
    await page.fill("#token-name", name);
    for (const s of scopes) await page.check(at(`scope-${s}`));
    await page.click(at("make-token"));
    await page.waitForSelector(at("made-token"));
    return (await page.textContent(at("token"))).trim();
}

const rows = (page, n) =>
    page.waitForFunction(
        (want) => document.querySelectorAll('[data-test="token-row"]').length === want,
        n,
    );

test("a token from its making to its end", async ({ m, browser }) => {
    m.user("maker");
    const context = await person(browser, m.url, { permissions: ["clipboard-write"] });
    const page = await context.newPage();
    await page.addInitScript(() => {
        // pages may not read it: the server's Permissions-Policy
        const write = navigator.clipboard.writeText.bind(navigator.clipboard);
        navigator.clipboard.writeText = (text) => write((window.copied = text));
    });
    await open(page, "maker");
    await page.click(at("new-token"));
    await page.fill("#token-name", "nightly");
    await page.click(at("make-token"));
    await page.locator("fieldset .wrong").waitFor();
    ok(true, "a token that may do nothing is not made");
    await clean(page, "the form of a token");
    await page.click("form >> text=Cancel");
    const token = await make(page, "nightly", "screen", "account-read");
    ok(/^mr_[0-9a-f]{64}$/.test(token), "a token is shown", token);
    await clean(page, "a token that is shown");
    await page.click(at("copy-token"));
    await page.locator(".toast.good").waitFor();
    equal(await page.evaluate(() => window.copied), token, "and copied");
    const example = (await page.textContent(at("token-example"))).trim();
    equal(
        example,
        `curl -H "Authorization: Bearer ${token}" ${m.url}/api/me`,
        "with a line to try it",
    );
    equal(
        [(await call(m, token)).status, (await call(m, token, "/api/tags")).status],
        [200, 403],
        "it may do what was ticked",
    );
    await page.click(at("token-done"));
    await page.reload();
    await rows(page, 1);
    const shown = await page.content();
    ok(!shown.includes(token) && shown.includes(token.slice(0, 11)), "it is shown once");
    const row = page.locator(at("token-row"));
    equal(await row.locator(".scope").allTextContents(), ["account:read", "screen"], "its scopes");
    for (let i = 0; i < 40 && !(await row.textContent()).includes("127.0.0.1"); i++) {
        await page.waitForTimeout(500);
        await page.reload();
        await row.waitFor();
    }
    ok((await row.textContent()).includes("127.0.0.1"), "its last use is shown");
    await page.click(at("revoke-token"));
    await page.waitForSelector(at("sure"));
    await page.keyboard.press("Escape");
    equal((await call(m, token)).status, 200, "who thinks better of it keeps it");
    await page.waitForSelector(at("sure"), { state: "detached" });
    await page.click(at("revoke-token"));
    await page.click(at("sure"));
    await rows(page, 0);
    equal((await call(m, token)).status, 401, "revoked");
    equal(context.wrong, [], "no error in the console");
    await context.close();
});

test("tokens in Chinese, by keyboard, on a page without a clipboard", async ({ m, browser }) => {
    m.user("typist");
    const context = await person(browser, m.url, { locale: "zh-CN" });
    const page = await context.newPage();
    await page.addInitScript(() => {
        Object.defineProperty(navigator, "clipboard", { value: undefined });
        document.addEventListener("copy", () => {
            window.copied = document.activeElement.value;
        });
    });
    await open(page, "typist");
    await page.focus(at("new-token"));
    await page.keyboard.press("Enter");
    await page.waitForSelector(at("token-form"));
    await page.focus("#token-name");
    await page.keyboard.type("夜间");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Space");
    ok(await page.isChecked(at("scope-read")), "Tab and Space tick the first scope");
    ok(await page.isDisabled(at("scope-screen-read")), "which has all that is read");
    await page.focus("#token-name");
    await page.keyboard.press("Enter");
    await page.waitForSelector(at("made-token"));
    const token = (await page.textContent(at("token"))).trim();
    ok((await page.textContent(at("made-token"))).includes("“夜间”已生成"), "in Chinese");
    await page.click(at("copy-token"));
    await page.locator(".toast.good").waitFor();
    equal(await page.evaluate(() => window.copied), token, "it can be copied all the same");
    await page.click(at("new-token"));
    await page.fill("#token-name", "夜间");
    await page.check(at("scope-read"));
    await page.click(at("make-token"));
    await page.locator(".wrong", { hasText: "您已有同名的令牌" }).waitFor();
    equal(await page.inputValue("#token-name"), "夜间", "a name that is taken, and stays");
    equal(context.wrong, [], "no error in the console");
    await context.close();
});

test("tokens for parts of an application", async ({ m, browser }) => {
    m.user("parter");
    const context = await person(browser, m.url);
    const page = await context.newPage();
    await open(page, "parter");
    await page.click(at("new-token"));
    await page.fill("#token-name", "news");
    await page.fill("#token-parts", " pool:titles/7  pool: ");
    await page.click(at("make-token"));
    await page.locator("fieldset .wrong", { hasText: "scopes[1]" }).waitFor();
    ok(true, "what is no part is refused, and says which");
    await page.fill("#token-parts", " pool:titles/7  pool:contents ");
    await page.click(at("make-token"));
    await page.waitForSelector(at("made-token"));
    equal(
        await page.locator(at("token-row")).locator(".scope").allTextContents(),
        ["pool:titles/7", "pool:contents"],
        "parts are typed",
    );
    equal(await page.locator(at("token-example")).count(), 0, "no line that would be refused");
    equal(context.wrong, [], "no error in the console");
    await context.close();
});

test("an admin revokes a user's token", async ({ m, browser }) => {
    m.user("holder");
    m.cli("admin", "add", "warden");
    const token = m.cli("token", "add", "holder", "harvest", "--scope", "read").trim();
    equal((await call(m, token)).status, 200, "a token");
    const context = await person(browser, m.url);
    const page = await context.newPage();
    await adminLogin(page, "warden");
    await page.click(at("nav-users"));
    await page.fill(".find input", "holder");
    await page.click(at("user-holder"));
    const row = page.locator(at("user-token"), { hasText: "harvest" });
    await row.waitFor();
    await clean(page, "a user with a token");
    await page.click(at("revoke-user-token"));
    await page.click(at("sure"));
    await row.locator("text=revoked").waitFor();
    equal((await call(m, token)).status, 401, "is revoked");
    equal(context.wrong, [], "no error in the console");
    await context.close();
});
