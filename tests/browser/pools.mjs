// Pools: a file imported through the page, items taken by a program, levels that move.
import { adminLogin, at, person } from "./flow.mjs";
import { clean, equal, ok, test } from "./tap.mjs";
import { readFileSync } from "node:fs";

const file = (name, text) => ({ name, mimeType: "text/plain", buffer: Buffer.from(text) });
const titles = (n) => Array.from({ length: n }, (_, i) => `"title ${i}, of many",me`);
const level = async (row, name) =>
    Number((await row.locator(at(`level-${name}`)).textContent()).replace(/\D/g, ""));

async function until(page, what, name) {
    for (let i = 0; i < 100 && !(await what()); i++) await page.waitForTimeout(100);
    ok(await what(), name);
}

async function pop(m, token, group, times) {
    const got = [];
    for (let i = 0; i < times; i++) {
        const r = await fetch(`${m.url}/api/pools/titles/${group}/pop`, {
            method: "POST",
            headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
            body: JSON.stringify({ count: 100 }),
        });
        got.push(...((await r.json()).items ?? []));
    }
    return got.length;
}

/* By keyboard, but for the choice of the file, which is the browser's own window. */
async function importFile(page) {
    await page.focus(at("pool-import"));
    await page.keyboard.press("Enter");
    await page.waitForSelector(at("import-form"));
    equal(
        await page.evaluate(() => document.activeElement.id),
        "pool-type",
        "the form is opened by keyboard, and has the focus",
    );
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await page.locator(".import .wrong").nth(1).waitFor();
    equal(await page.locator(".import .wrong").count(), 2, "neither group nor file: both are said");
    await page.keyboard.type("7");
    for (let i = 0; i < 3; i++) await page.keyboard.press("Tab");
    equal(
        await page.evaluate(() => document.activeElement.id),
        "pool-file",
        "the file is reached by keyboard",
    );
    const rows = ["text,by", ...titles(1200)];
    rows.splice(500, 0, '"title 3, of many",again', "only one cell", ",nothing");
    await page.setInputFiles(at("pool-file"), file("many.csv", rows.join("\n")));
    await clean(page, "the form of an import");
    /* A server that is away for a moment is asked again. */
    await page.route("**/import?*", (r) => r.fulfill({ status: 503, json: {} }), { times: 1 });
    await page.focus("#pool-group");
    await page.keyboard.press("Enter");
    await page.locator(at("import-done")).waitFor();
    const sum = (name) => page.textContent(at(`sum-${name}`)).then((x) => x.trim());
    equal(
        [await sum("imported"), await sum("in-file"), await sum("in-group"), await sum("rejected")],
        ["1,200", "1", "0", "2"],
        "imported, with duplicates and rejected rows",
    );
    equal(
        await page.locator(`${at("problem")} td`).allTextContents(),
        ["502", "1 cells, but the header has 2", "503", "No text"],
        "which are told by line, with the reason",
    );
}

async function dropFile(page, name, text) {
    const data = await page.evaluateHandle(
        ([n, x]) => {
            const d = new DataTransfer();
            d.items.add(new File([x], n));
            return d;
        },
        [name, text],
    );
    await page.dispatchEvent(at("drop-zone"), "drop", { dataTransfer: data });
}

test("a pool imported and watched", async ({ m, browser }) => {
    m.user("taker");
    m.cli("admin", "add", "filler");
    const token = m.cli("token", "add", "taker", "pops", "--scope", "pool").trim();
    const context = await person(browser, m.url);
    const page = await context.newPage();
    await adminLogin(page, "filler");
    await page.click(at("nav-pools"));
    await page.waitForSelector(at("pools-empty"));
    await importFile(page);
    const row = page.locator(at("pool-titles-7"));
    await row.waitFor();
    await until(
        page,
        async () => (await level(row, "usable")) + (await level(row, "in_list")) === 1200,
        "the group is there",
    );
    equal(await pop(m, token, 7, 2), 200, "a program takes items");
    await until(page, async () => (await level(row, "used")) === 200, "the levels move");
    await row.locator(at("pool-state"), { hasText: "runs out soon" }).waitFor();
    ok(
        /^[\d,]+\/h$/.test((await row.locator(at("pool-pace")).textContent()).trim()) &&
            (await page.textContent(at("pools-low"))).includes("Titles 7"),
        "at this pace it runs out within an hour, which stands out",
    );
    await clean(page, "pools");
    const [used] = await Promise.all([
        page.waitForEvent("download"),
        page.click(at("export-csv-titles-7")),
    ]);
    equal(
        [used.suggestedFilename(), readFileSync(await used.path(), "utf8").match(/\n/g).length],
        ["titles-7-used.csv", 201],
        "what is used is exported",
    );
    await page.click(at("drop-titles-7"));
    await page.waitForSelector(at("sure"));
    await page.keyboard.press("Escape");
    await page.waitForSelector(at("sure"), { state: "detached" });
    equal(await pop(m, token, 7, 1), 100, "Escape drops nothing");
    await page.click(at("drop-titles-7"));
    await page.click(at("sure"));
    await page.locator(".toast.good", { hasText: "900 items were deleted" }).waitFor();
    await row.locator(at("pool-state"), { hasText: "empty" }).waitFor();
    equal(await pop(m, token, 7, 1), 0, "what was dropped is handed out no more");
    equal(context.wrong, [], "no error in the console");
    await context.close();
});

test("a bad file for a pool, in Chinese, and stores that are away", async ({ m, browser }) => {
    m.cli("admin", "add", "filler-zh");
    const context = await person(browser, m.url, { locale: "zh-CN" });
    const page = await context.newPage();
    await adminLogin(page, "filler-zh");
    await page.click(at("nav-pools"));
    await page.click(at("pool-import"));
    await page.fill("#pool-group", "8");
    await dropFile(page, "bad.csv", "name,age\nann,7\n");
    await page.locator(at("chosen-file"), { hasText: "bad.csv" }).waitFor();
    await page.click(at("start-import"));
    await page.locator(at("import-wrong"), { hasText: "首行没有名为 text 或 title 的列" }).waitFor();
    equal(await page.locator(at("continue-import")).count(), 0, "a bad file is not tried again");
    equal(await page.locator(at("pool-titles-8")).count(), 0, "and begins no group");
    await page.click(at("another-import"));
    equal(await page.inputValue("#pool-group"), "8", "what was typed is still there");
    await dropFile(page, "some.jsonl", '"one"\nnot json\n{"title":"two"}\n{"name":"three"}\n');
    equal(await page.inputValue("#pool-format"), "jsonl", "the format follows from the name");
    await page.click(at("start-import"));
    await page.locator(at("import-done")).waitFor();
    equal(
        [
            (await page.textContent(at("sum-imported"))).trim(),
            await page.locator(`${at("problem")} td:last-child`).allTextContents(),
        ],
        ["2", ["不是 JSON（第 1 列）", "既不是字符串，也不是含有 text 的对象"]],
        "good rows are imported, bad ones explained in Chinese",
    );
    await page.click(at("close-import"));
    await page.locator(at("pool-titles-8")).waitFor();
    const levels = "**/api/admin/pools";
    await page.route(levels, async (r) => {
        const reply = await r.fetch();
        await r.fulfill({ response: reply, json: { ...(await reply.json()), degraded: true } });
    });
    await page.locator(at("pools-degraded"), { hasText: "Redis 没有响应" }).waitFor();
    ok(true, "a Redis that is away is told");
    await page.unroute(levels);
    await page.route(levels, (r) => r.fulfill({ status: 500, json: {} }));
    await page.locator(".note.bad[role=alert]", { hasText: "以下为较早的数据" }).waitFor();
    ok(await page.isVisible(at("pool-titles-8")), "a server error, too; the last values stay");
    equal(context.wrong, [], "no error in the console");
    await context.close();
});
