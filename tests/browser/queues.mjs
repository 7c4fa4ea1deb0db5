// The admins' page of queues.
import { adminLogin, at, person } from "./flow.mjs";
import { clean, equal, ok, test } from "./tap.mjs";

const paused = (page) =>
    page.evaluate(async () => {
        const { queues } = await (await fetch("/api/admin/queues")).json();
        return queues.find((q) => q.name === "download").paused;
    });

test("a queue is paused and goes on", async ({ m, browser }) => {
    m.cli("admin", "add", "queuer");
    const context = await person(browser, m.url);
    const page = await context.newPage();
    await adminLogin(page, "queuer");
    await page.click(at("nav-queues"));
    const row = page.locator(at("queue-download"));
    await row.waitFor();
    await clean(page, "queues");
    await page.focus(at("queue-turn-download"));
    await page.keyboard.press("Enter");
    await row.locator("td.bad", { hasText: "paused" }).waitFor();
    ok(await paused(page), "paused, by keyboard");
    await page.click(at("queue-turn-download"));
    await row.locator("td.good", { hasText: "open" }).waitFor();
    ok(!(await paused(page)), "and goes on");
    await page.route("**/api/admin/queues", async (r) => {
        const reply = await r.fetch();
        const body = await reply.json();
        for (const q of body.queues) q.failures = 3;
        await r.fulfill({ response: reply, json: body });
    });
    await page.click(at("queue-drop-download"));
    await page.locator(".n-dialog", { hasText: "3 jobs that failed are deleted" }).waitFor();
    await clean(page, "the question before failures are dropped");
    await page.keyboard.press("Escape");
    await page.waitForSelector(at("sure"), { state: "detached" });
    await page.unroute("**/api/admin/queues");
    await page.route("**/api/admin/queues", (r) => r.fulfill({ status: 503, json: {} }));
    await page.locator(".frame p[role=alert]").waitFor();
    ok(await row.isVisible(), "while the server does not answer the last values stay");
    equal(context.wrong, [], "no error in the console");
    await context.close();
});
