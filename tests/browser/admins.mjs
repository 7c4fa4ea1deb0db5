// What operators do.
import { adminLogin, at, login, PASSWORD, person } from "./flow.mjs";
import { Millrace } from "./millrace.mjs";
import { clean, equal, ok, smoke, test } from "./tap.mjs";

smoke("the overview", async ({ m, browser }) => {
    m.cli("admin", "add", "looker");
    const context = await person(browser, m.url);
    const page = await context.newPage();
    await page.goto("/admin/control.html");
    await page.waitForURL(/login\.html/);
    ok(true, "who is not logged in is sent to the log-in");
    await clean(page, "admin log-in");
    await adminLogin(page, "looker");
    await page.locator(".board svg rect").nth(59).waitFor({ state: "attached" });
    await clean(page, "overview");
    equal(context.wrong, [], "no error in the console");
    await context.close();
});

test("an admin at work", async ({ m, browser }) => {
    m.user("client", "5.00");
    m.cli("admin", "add", "root", "--super");
    const context = await person(browser, m.url);
    const page = await context.newPage();
    await adminLogin(page, "root");
    await page.click(at("nav-users"));
    await page.fill(".find input", "clie");
    await page.click(at("user-client"));
    await page.waitForSelector(at("recharge"));
    await page.fill("#amount", "12.34");
    await page.fill("#reason", "a gift");
    await page.click(at("recharge"));
    await page.locator(at("user-balance"), { hasText: "17.34" }).waitFor();
    ok(true, "a recharge");
    await page.fill("#amount", "100.00");
    await page.click(at("deduct"));
    await page.locator(".toast.bad").waitFor();
    equal(
        [await page.inputValue("#amount"), (await page.textContent(at("user-balance"))).trim()],
        ["100.00", "17.34"],
        "more than there is cannot be taken; the amount is still there",
    );
    await clean(page, "users");
    const theirs = await person(browser, m.url);
    const other = await theirs.newPage();
    await login(other, "client");
    await page.click(at("ban"));
    await page.click(at("sure"));
    await page.waitForSelector(at("unban"));
    await other.goto("/#/account");
    await other.reload();
    await other.waitForSelector("#name");
    ok(true, "a ban ends the user's sessions");

    await page.click(at("nav-switches"));
    await page.click(at("switch-registration"));
    await page.locator(`${at("switch-registration")}[aria-checked=false]`).waitFor();
    await clean(page, "switches");
    await other.waitForTimeout(1500); // all nodes know within a second
    await other.click(at("swap"));
    await other.fill("#name", "latecomer");
    await other.fill("#password", "correct horse");
    await other.click(at("submit"));
    await other.locator("form .wrong").waitFor();
    equal(
        await other.inputValue("#name"),
        "latecomer",
        "registration is closed, and what was typed is still there",
    );
    await page.click(at("switch-registration"));
    await page.locator(`${at("switch-registration")}[aria-checked=true]`).waitFor();
    await page.click(at("reload-prompts"));
    await page.locator(".toast.good", { hasText: "prompt" }).waitFor();
    ok(true, "the prompt is read again");
    for (const tab of ["keys", "admins", "audit"]) {
        await page.click(at(`nav-${tab}`));
        await page.locator("table tbody tr, .empty").first().waitFor();
        await clean(page, tab);
    }
    const log = await page.textContent("table tbody");
    ok(
        ["user.recharge", "user.deduct", "user.ban", "prompts.reload", "a gift"].every((w) =>
            log.includes(w),
        ),
        "all of it is in the audit log",
        log,
    );
    equal(context.wrong, [], "no error in the console");
    await theirs.close();
    await context.close();
});

/* The first key of a server. A rest is put into the list: no service asks for one here. */
async function workOnKey(page, m) {
    const button = (what) => page.locator(at(`${what}-key-1`));
    const state = page.locator(at("key-state-1"));
    await button("test").click();
    await page.locator(".toast.good", { hasText: "sk-a…3a works" }).waitFor();
    await m.endAi();
    await button("test").click();
    await page.locator(".toast.bad", { hasText: "cannot be reached" }).waitFor();
    await m.ai({});
    ok(true, "is tested: it works, then the service is away");
    await page.click(at("key-1"));
    await page.locator(at("key-state-1"), { hasText: "off" }).waitFor();
    await page.route("**/api/admin/keys", async (r) => {
        const reply = await r.fetch();
        const body = await reply.json();
        body.keys[0].state = "resting";
        await r.fulfill({ response: reply, json: body });
    });
    await page.click(at("key-1"));
    await state.getByText("resting").waitFor();
    await page.unroute("**/api/admin/keys");
    await clean(page, "keys");
    const woken = page.waitForResponse(/keys\/1\/wake$/);
    await button("wake").click();
    equal((await woken).status(), 200, "a rest is ended");
    await state.getByText("active").waitFor();
    equal(await button("wake").count(), 0, "once");
    await button("delete").click();
    await page.click(at("sure"));
    await page.locator(".frame .empty").waitFor();
    ok(true, "is deleted");
}

/* A server without sample papers has no key either. */
smoke("the first key", async ({ browser }) => {
    const m = await Millrace.start({ papers: 0 });
    try {
        m.cli("admin", "add", "root", "--super");
        const context = await person(browser, m.url);
        const page = await context.newPage();
        await adminLogin(page, "root");
        await page.click(at("nav-keys"));
        await page.locator(".frame .empty").waitFor();
        await page.click(at("add-key"));
        await page.fill("#k-key", "sk-a-key-of-the-test-9f3a");
        await page.fill("#k-name", "first");
        await page.fill("#k-day_cap", "1e3 a day");
        await page.click(at("save-key"));
        await page.locator(".toast.bad", { hasText: "whole number" }).waitFor();
        ok(true, "a cap that is no number is refused, not taken for none");
        await page.fill("#k-day_cap", "");
        await page.click(at("save-key"));
        await page.locator("table tbody tr", { hasText: "first" }).waitFor();
        equal(
            (await page.textContent("table tbody code")).trim(),
            "sk-a…3a",
            "is added to an empty list",
        );
        await page.locator("#k-key").waitFor({ state: "detached" });
        await workOnKey(page, m);

        await page.route("**/api/admin/admins", (r) =>
            r.request().method() === "GET" ? r.fulfill({ status: 503, json: {} }) : r.fallback(),
        );
        await page.click(at("nav-admins"));
        await page.locator(".frame p[role=alert]").waitFor();
        ok(
            await page.isVisible("#a-name"),
            "an admin can be added while the list of admins cannot be read",
        );
        equal(context.wrong, [], "no error in the console");
        await context.close();
    } finally {
        await m.stop();
    }
});

/* How an account gets there is shown on whole servers (tests/server/test_people.py). */
for (const [locale, theirs, ours] of [
    ["en-US", "Your account is on hold", "millrace user release held-en-US"],
    ["zh-CN", "您的账户已暂停使用", "millrace user release held-zh-CN"],
])
    smoke(`a stopped account, ${locale}`, async ({ m, browser }) => {
        const stopped = {
            account: "stopped",
            account_why: "MySQL is older than Redis",
            account_since: "2026-01-31T12:00:00.000Z",
        };
        const name = `held-${locale}`;
        m.user(name);
        m.cli("admin", "add", `keeper-${locale}`);
        const context = await person(browser, m.url, { locale });
        const stop = async (r) => {
            const reply = await r.fetch();
            await r.fulfill({ response: reply, json: { ...(await reply.json()), ...stopped } });
        };
        const page = await context.newPage();
        await login(page, name);
        equal(await page.locator(at("account-stopped")).count(), 0, "an account that works");
        await page.route("**/api/me", stop);
        await page.reload();
        const told = page.locator(at("account-stopped"));
        await told.getByText(theirs).waitFor();
        ok((await told.textContent()).includes("2026"), "its user is told, and since when");
        await clean(page, "a stopped account");
        const admin = await context.newPage();
        await admin.route(/\/api\/admin\/users\/\d+$/, stop);
        await adminLogin(admin, `keeper-${locale}`);
        await admin.click(at("nav-users"));
        await admin.fill(".find input", name);
        await admin.click(at(`user-${name}`));
        await admin.locator(at("user-stopped"), { hasText: ours }).waitFor();
        ok(
            (await admin.textContent(at("user-stopped"))).includes("MySQL is older than Redis"),
            "admins are told why, and what to run",
        );
        equal(context.wrong, [], "no error in the console");
        await context.close();
    });

test("an admin's own account, in Chinese", async ({ m, browser }) => {
    m.cli("admin", "add", "chief", "--super");
    const here = await person(browser, m.url, { locale: "zh-CN" });
    const there = await person(browser, m.url);
    const page = await here.newPage();
    const other = await there.newPage();
    await adminLogin(page, "chief");
    await adminLogin(other, "chief");
    await page.click(at("nav-account"));
    await page.locator(at("session")).nth(1).waitFor();
    equal((await page.textContent(at("nav-account"))).trim(), "我的账户", "in the browser's language");
    await clean(page, "my account");
    await page.locator(at("end-session")).click();
    await page.waitForFunction(
        () => document.querySelectorAll('[data-test="session"]').length === 1,
    );
    await other.click(at("nav-users"));
    await other.waitForURL(/login\.html/);
    ok(true, "a session that was ended is sent to the log-in");
    for (const [id, text] of [
        ["old", PASSWORD],
        ["new", "another horse"],
        ["again", "another horse"],
    ])
        await page.fill(`#p-${id}`, text);
    await page.click(at("change-password"));
    await page.locator(".toast.good").last().waitFor();
    await page.waitForFunction(() => document.querySelector("#p-new").value === "");
    await page.click(at("leave"));
    await page.waitForSelector("#name");
    await page.fill("#name", "chief");
    await page.fill("#password", PASSWORD);
    await page.click(at("submit"));
    await page.locator("form .wrong").waitFor();
    await page.fill("#password", "another horse");
    await page.click(at("submit"));
    await page.waitForSelector(at("nav-users"));
    ok(true, "the password is changed");
    const latin = /[A-Za-z]{4,}/;
    const known = /millrace|admin|MySQL|Redis|chief|English|BibTeX|Chrome|Linux|JSON/g;
    for (const tab of ["users", "queues", "pools", "switches", "account"]) {
        await page.click(at(`nav-${tab}`));
        await page.locator(`[data-test=nav-${tab}][aria-current]`).waitFor();
        await page.waitForTimeout(300);
        const words = (
            await page.locator("h2, th, label, button, li strong, p").allTextContents()
        ).map((w) => w.replace(known, "").trim());
        equal(
            words.filter((w) => latin.test(w) && !/^[a-z]+(-(en-US|zh-CN))?$/.test(w)),
            [],
            `${tab}: nothing is left in English`,
        );
    }
    equal([here.wrong, there.wrong], [[], []], "no error in the console");
    await here.close();
    await there.close();
});
