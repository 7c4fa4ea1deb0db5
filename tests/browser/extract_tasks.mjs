// Tasks of extraction besides their table: a webhook, and what failed is tried again.
import {
    cell,
    ended,
    makeTask,
    open,
    paper,
    said,
    send,
    SLOW_MS,
    upload,
} from "./extract_flow.mjs";
import { at } from "./flow.mjs";
import { clean, equal, ok, test } from "./tap.mjs";

test("extract: a webhook, and its secret that is shown once", async ({ m, browser }) => {
    const { context, page } = await open(m, browser, "hooker");
    await page.addInitScript(() => {
        navigator.clipboard.writeText = async (text) => (window.copied = text);
    });
    await upload(page, "one.txt", paper(1));
    await page.route("**/api/tasks/estimate", async (route) => {
        const reply = await route.fetch();
        await route.fulfill({ json: { ...(await reply.json()), simulated: true } });
    });
    await page.goto("/#/extract/new?template=pico");
    await page.reload(); // with the clipboard that is watched
    await page.check(at("all-documents"));
    await page.waitForSelector(`${at("start-extraction")}:not([disabled])`);
    ok(await page.isVisible(at("simulated-soon")), "that it will be simulated is said before");
    for (const [text, words] of [
        ["example", "Must be an address like"],
        ["https://me:secret@example.org/", "without user and password"],
        ["https://127.0.0.1:70000/", "Must be an address like"],
        ["https://例子.example/", "Must be an address like"],
        ["http://127.0.0.1:9/hook", "Must begin with https://"],
        [`https://127.0.0.1:9/${"x".repeat(2000)}`, "At most 2000 characters"],
    ]) {
        await page.fill("#extract-webhook", text);
        await page.locator("#extract-webhook").blur();
        await said(page, "webhook-wrong", words);
        ok(await page.isDisabled(at("start-extraction")), `${text.slice(0, 30)}: ${words}`);
        const reply = await page.request.post("/api/tasks", {
            data: { template_id: "pico", document_ids: ["1-x"], request_id: "1", webhook: text },
            headers: { Origin: m.url },
        });
        const { error } = await reply.json();
        equal(error.field, "webhook", "and the server refuses it, too");
    }
    await clean(page, "a webhook that is refused");
    /* An address that no server may call: what is tested is the page. */
    await page.fill("#extract-webhook", " https://127.0.0.1:9/hook?a=b ");
    await page.waitForSelector(at("webhook-wrong"), { state: "detached" });
    await page.route("**/api/tasks", (route) =>
        route.fulfill({
            status: 400,
            json: {
                success: false,
                error: { code: "invalid", field: "webhook", message: "webhook: is odd" },
            },
        }),
    );
    await page.click(at("start-extraction"));
    await said(page, "webhook-wrong", "The server does not accept this: is odd.");
    await page.unroute("**/api/tasks");
    await page.waitForSelector(`${at("start-extraction")}:not([disabled])`);
    await page.click(at("start-extraction"));
    await page.waitForURL(/#\/extract\/tasks\//);
    const secret = await page.textContent(at("secret"));
    ok(/^whsec_[\w+/=]{20,}$/.test(secret), "the secret is shown", secret);
    await page.click(at("copy-secret"));
    await page.locator(".toast.good", { hasText: "Copied" }).waitFor();
    equal(await page.evaluate(() => window.copied), secret, "and copied");
    await clean(page, "the secret of a webhook");
    const id = page.url().split("/").pop();
    await ended(page, id);
    await page.click(at("secret-done"));
    equal(await page.locator(at("webhook-secret")).count(), 0, "and put away");
    const kept = await page.evaluate(() => JSON.stringify([localStorage, sessionStorage]));
    ok(!kept.includes("whsec_"), "nothing keeps it");
    equal(context.wrong, [], "no error in the console");
});

test("extract: one document that failed is tried again, then all", async ({ m, browser }) => {
    const { context, page } = await open(m, browser, "stubborn");
    const wrongTypes = ["--extract-fault", "1", "--extract-fault-kinds", "types"];
    await m.ai({ more: [...wrongTypes, "--extract-fault-stays"] });
    let id;
    try {
        id = await makeTask(page, [paper(1), paper(2), paper(3)]);
        await ended(page, id);
    } finally {
        await m.ai({});
    }
    const failed = async () => (await send(page, "GET", `tasks/${id}/status`)).progress.failed;
    equal(await failed(), 3, "three have failed");
    await page.goto(`/#/extract/tasks/${id}?filter=error`);
    await page.locator("[data-retry]").nth(2).waitFor();
    await said(page, "extract-state", "All failed");
    await page.locator(`[data-row="1"] [data-retry]`).click();
    await page.locator(".toast.good", { hasText: "The document is tried again" }).waitFor();
    await page.waitForFunction(() => document.querySelectorAll(".line").length === 2, null, {
        timeout: SLOW_MS,
    });
    await ended(page, id);
    equal(await failed(), 2, "one alone is done");
    await said(page, "row-count", "2 documents");
    await page.focus(cell(0, 0));
    await page.keyboard.press("Enter");
    await page.focus(at("retry-here"));
    await page.keyboard.press("Enter");
    await said(page, "extract-failed", "1 failed");
    await page.waitForFunction(() => document.activeElement.tagName === "H2");
    ok(true, "by keyboard, too, which stays in the panel");
    await page.click(at("retry-errors"));
    await page.waitForSelector(at("extract-failed"), { state: "detached", timeout: SLOW_MS });
    await ended(page, id);
    equal(await failed(), 0, "then all are");
    equal((await send(page, "GET", "me")).balance, "99.70", "each is paid once");
    equal(context.wrong, [], "no error in the console");
});
