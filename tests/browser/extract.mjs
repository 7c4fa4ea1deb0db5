// Extraction on the pages: templates, documents, a task, its table, a value that is changed by
// hand, files; and what is said when something is wrong.
import { readFileSync } from "node:fs";
import {
    cell,
    ended,
    FIELDS,
    file,
    FILLING,
    makeTask,
    open,
    paper,
    said,
    send,
    SLOW_MS,
    upload,
} from "./extract_flow.mjs";
import { at, choose, refusal, start, state } from "./flow.mjs";
import { clean, equal, ok, test } from "./tap.mjs";
import { unzip } from "./unzip.mjs";

const ROWS = 10000;
const FRAMES = 60;

test("extract: a template is copied, changed, changed elsewhere, deleted", async ({
    m,
    browser,
}) => {
    const { context, page } = await open(m, browser, "fields-maker");
    await page.click("nav >> text=Extraction");
    await page.locator("text=No extractions yet").waitFor();
    await clean(page, "no extractions");
    await page.click(at("to-templates"));
    await page.locator(at("template")).nth(3).waitFor();
    equal(await page.locator(at("ready")).count(), 4, "the ready templates are marked");
    await clean(page, "templates");
    await page.click("text=Trial characteristics");
    await page.locator("li", { hasText: "Registration number" }).waitFor();
    equal(await page.locator(at("template-form")).count(), 0, "a ready one is only shown");
    await clean(page, "a ready template");
    await page.click(at("copy"));
    await page.waitForSelector(at("field-14-name"));
    equal(
        await page.inputValue("#template-name"),
        "Trial characteristics (copy)",
        "its copy has a name of its own",
    );
    await page.fill("#template-name", "Mine");
    for (let i = 14; i > 1; i--) await page.click(at(`field-${i}-remove`));
    await page.click(at("add-field"));
    await page.keyboard.type("phase");
    await page.selectOption(at("field-2-type"), "list");
    await page.selectOption("#field-2-of", "choice");
    await page.click(at("save-template"));
    await page.locator("#field-2-name-wrong", { hasText: "Another field" }).waitFor();
    await page.locator("#field-2-choices-wrong").waitFor();
    equal(
        await page.evaluate(() => document.activeElement.id),
        "field-2-name",
        "what is wrong is said at its field, and gone to",
    );
    await clean(page, "a template with mistakes");
    await page.fill(at("field-2-name"), "Arms <<<");
    await page.fill(at("field-2-choices"), "drug\nplacebo\n");
    await page.click(at("save-template"));
    await page.locator("#field-2-name-wrong", { hasText: "The server does not accept" }).waitFor();
    ok(true, "and what the server refuses, at its field, too");
    await page.fill(at("field-2-name"), "Arms");
    await page.focus(at("field-2-up"));
    await page.keyboard.press("Enter");
    await page.reload();
    await page.waitForSelector(at("field-2-name"));
    equal(await page.inputValue(at("field-1-name")), "Arms", "moved by keyboard, kept by a reload");
    await page.click(at("save-template"));
    await page.waitForURL(/#\/extract\/templates$/);
    const { templates } = await send(page, "GET", "templates");
    const { template_id: id } = templates.find((x) => !x.ready);
    const { template } = await send(page, "GET", `templates/${id}`);
    equal(
        template.fields.map((f) => [f.name, f.type, f.of ?? null, f.choices?.length ?? null]),
        [
            ["Registration number", "text", null, null],
            ["Arms", "list", "choice", 2],
            ["Phase", "choice", null, 7],
        ],
        "it is stored",
    );

    await page.goto(`/#/extract/templates/${id}`);
    await page.fill(at("field-0-instruction"), "mine");
    await send(page, "PUT", `templates/${id}`, {
        version: 1,
        name: "Theirs",
        fields: template.fields,
    });
    await page.click(at("save-template"));
    await page.waitForSelector(at("stale"));
    equal(await page.inputValue(at("field-0-instruction")), "mine", "a change elsewhere is told");
    await clean(page, "a template that was changed elsewhere");
    await page.click(at("load-newer"));
    await page.waitForFunction(() => document.querySelector("#template-name").value === "Theirs");
    await page.click(at("take-mine"));
    equal(await page.inputValue(at("field-0-instruction")), "mine", "what was typed is kept");
    await page.click(at("save-template"));
    await page.waitForURL(/#\/extract\/templates$/);
    equal(
        (await send(page, "GET", `templates/${id}`)).template.fields[0].instruction,
        "mine",
        "then it is saved",
    );
    await page.click(at("delete-template"));
    await page.waitForSelector(at("sure"));
    await page.keyboard.press("Escape");
    await page.waitForSelector(at("sure"), { state: "detached" });
    await page.click(at("delete-template"));
    await page.click(at("sure"));
    await page.waitForSelector(at("delete-template"), { state: "detached" });
    equal((await send(page, "GET", "templates")).templates.length, 4, "and deleted");
    await page.goto(`/#/extract/templates/${id}`);
    await page.locator("text=There is no such template").waitFor();
    equal(context.wrong, [], "no error in the console");
});

test("extract: documents are dropped and picked; each says what is wrong with it", async ({
    m,
    browser,
}) => {
    const { context, page } = await open(m, browser, "loader");
    await page.goto("/#/extract/documents");
    await page.locator("text=No documents yet").waitFor();
    await clean(page, "no documents");
    await page.setInputFiles(at("files"), [
        file("one.txt", paper(1)),
        file("two.md", `# Two\n\n${FILLING}`),
        file("three.pdf", "this is text"),
        file("four.txt", ""),
    ]);
    await page.locator(at("upload-done")).nth(1).waitFor();
    await said(page, "upload-wrong", "not a PDF");
    await said(page, "upload-wrong", "empty");
    equal(await page.locator(at("document")).count(), 2, "two are taken, two refused, each alone");
    await clean(page, "documents");
    await page.evaluate(() => {
        const data = new DataTransfer();
        data.items.add(new File(["Dropped. The dose was 3 mg."], "dropped.txt"));
        const event = new DragEvent("drop", { dataTransfer: data, bubbles: true });
        document.querySelector('[data-test="drop"]').dispatchEvent(event);
    });
    await page.locator(at("document"), { hasText: "dropped.txt" }).waitFor();
    await page.setInputFiles(at("files"), [file("again.txt", paper(1))]);
    await page.locator("text=was there already").waitFor();
    equal(await page.locator(at("document")).count(), 3, "the same file is one document");
    const used = await page.textContent(at("space"));
    ok(/\d.* of 2 GB used/.test(used), "the space is told", used);
    await page.locator(at("delete-document")).first().click();
    await page.click(at("sure"));
    await page.waitForFunction(
        () => document.querySelectorAll('[data-test="document"]').length === 2,
    );
    equal((await send(page, "GET", "documents")).documents.length, 2, "one is deleted");
    equal(context.wrong, [], "no error in the console");
});

/* FIELDS by hand, then from the list of templates to a new task. */
async function writeTemplate(page, name) {
    await page.goto("/#/extract/templates/new");
    await page.fill("#template-name", name);
    for (const [i, f] of FIELDS.entries()) {
        if (i) await page.click(at("add-field"));
        await page.fill(at(`field-${i}-name`), f.name);
        await page.selectOption(at(`field-${i}-type`), f.type);
        if (f.unit) await page.fill(at(`field-${i}-unit`), f.unit);
        if (f.choices) await page.fill(at(`field-${i}-choices`), f.choices.join("\n"));
        if (f.instruction) await page.fill(at(`field-${i}-instruction`), f.instruction);
        if (f.required) await page.check(at(`field-${i}-required`));
    }
    await page.click(at("save-template"));
    await page.waitForURL(/#\/extract\/templates$/);
    await page.locator(at("template"), { hasText: name }).locator(at("use")).click();
    await page.waitForURL(/#\/extract\/new/);
}

test("extract: template, task, table, a value by hand, its files", async ({ m, browser }) => {
    const { context, page } = await open(m, browser, "fields-reader");
    await page.goto("/#/extract/new");
    await said(page, "extract-reason", "Choose a template");
    ok(await page.isDisabled(at("start-extraction")), "nothing is chosen, nothing starts");
    await writeTemplate(page, "Trials");
    await said(page, "extract-reason", "at least one document");
    await page.setInputFiles(at("files"), [
        file("a.txt", paper(1, "Countries: Chile, Perú and 中国.")),
        file("b.txt", paper(2, `\n\n# Results\n\n${FILLING}\n\n# More\n\nThe dose was 7 mg.`)),
        file("c.txt", paper(3)),
        { name: "d.pdf", mimeType: "application/pdf", buffer: Buffer.from("%PDF-1.4\nno more") },
    ]);
    await page.locator(at("upload-done")).nth(3).waitFor();
    await page.waitForFunction(
        () => document.querySelector('[data-test="extract-cost"]').textContent === "0.40",
    );
    equal((await page.textContent(at("extract-left"))).trim(), "99.60", "what is left is told");
    await page.fill("#extract-name", "First look");
    await clean(page, "a new extraction");
    await page.reload();
    await page.waitForSelector(`${at("start-extraction")}:not([disabled])`);
    equal(await page.inputValue("#extract-name"), "First look", "a reload loses nothing");
    await m.ai({ latency: 1500 });
    await page.dblclick(at("start-extraction"));
    await page.waitForURL(/#\/extract\/tasks\//);
    equal((await send(page, "GET", "tasks")).tasks.length, 1, "two clicks start one task");
    await page.waitForSelector(`${at("extract-state")}[data-status=processing]`);
    await page.locator(`[role=grid] .line`).nth(3).waitFor();
    await clean(page, "a task in progress");
    await page.waitForSelector(`${at("extract-state")}[data-status=completed]`, {
        timeout: SLOW_MS,
    });
    await m.ai({});
    await said(page, "extract-progress", "3 of 4");
    const id = page.url().split("/").pop();
    await page.waitForSelector(`${cell(0, 1)} .value`);
    equal((await page.textContent(`${cell(0, 2)} .value`)).trim(), "49.5", "values are there");
    ok(await page.isVisible(at("simulated-note")), "and said to be made up");
    await page.locator(".told", { hasText: "damaged" }).waitFor();
    ok(true, "a document that failed says why");
    const height = (test) => page.locator(at(test)).evaluate((x) => x.clientHeight);
    ok((await height("extract-grid")) < 320, "four rows take the room of four rows");
    await clean(page, "a table");

    /* filter, sort, and back, in the address */
    await page.click(at("filter-differs"));
    await page.waitForFunction(() => document.querySelectorAll(".line").length === 1);
    equal((await page.textContent(`${cell(0, 0)} .title`)).trim(), "b.txt", "one differs");
    equal((await page.textContent(at("row-count"))).trim(), "1 document", "as many are told");
    await page.click(at("filter-all"));
    await page.click(at("sort-1"));
    await page.waitForURL(/sort=field:Sample/);
    await page.click(at("sort-1"));
    await page.waitForURL(/sort=-field:Sample/);
    await page.waitForFunction(
        () => document.querySelector('[data-row="0"] .title')?.textContent === "c.txt",
    );
    ok(true, "the largest comes first");
    await page.reload();
    await page.waitForSelector(`${cell(0, 1)} .value`);
    equal((await page.textContent(`${cell(0, 0)} .title`)).trim(), "c.txt", "after a reload, too");

    /* by keyboard to a cell, and the quote in the text */
    await page.focus(cell(0, 0));
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("Enter");
    await page.waitForURL(/row=2&field=Dose/);
    await page.locator(at("quote-mark")).nth(1).waitFor();
    equal(
        await page.locator(at("quote-mark")).allTextContents(),
        ["The dose was 48.5 mg", "The dose was 7 mg"],
        "the quotes are marked in the text, also behind characters of several bytes",
    );
    ok(await page.isVisible(at("mark-differs")), "it says that the document says two things");
    await page.locator(at("differs")).locator("button").click();
    await page.waitForFunction(() => {
        const box = document.querySelector('[data-test="document-text"]');
        const mark = document.querySelectorAll('[data-test="quote-mark"]')[1];
        const [b, k] = [box.getBoundingClientRect(), mark.getBoundingClientRect()];
        return k.top >= b.top && k.bottom <= b.bottom;
    });
    ok(true, "and shows the other place");
    await clean(page, "a value beside its text");

    /* a value by hand */
    await page.click(at("edit-value"));
    equal(await page.evaluate(() => document.activeElement.id), "cell-value", "it has the focus");
    await page.keyboard.press("Control+A");
    await page.keyboard.type("seven");
    await page.keyboard.press("Enter");
    await said(page, "cell-wrong", "must be one number");
    await clean(page, "a value that is refused");
    await page.fill("#cell-value", "6.25");
    await page.keyboard.press("Enter");
    await page.waitForSelector(at("mark-edited"));
    equal((await page.textContent(at("cell-value"))).trim(), "6.25 mg", "a value is changed");
    await page.locator(at("edits"), { hasText: "fields-reader" }).waitFor();
    ok(
        (await page.textContent(at("edits"))).includes("48.5 mg"),
        "who did, and what it was, is told",
    );
    await send(page, "PUT", `tasks/${id}/rows/2`, { version: 2, field: "Dose", value: 9 });
    await page.click(at("edit-value"));
    await page.fill("#cell-value", "6.5");
    await page.click(at("save-value"));
    await said(page, "cell-wrong", "changed elsewhere");
    await page.waitForFunction(() =>
        document.querySelector('[data-test="cell-value"]').textContent.includes("9 mg"),
    );
    equal(await page.inputValue("#cell-value"), "6.5", "the newer one is shown, mine is kept");
    await page.click(at("save-value"));
    await page.waitForSelector("#cell-value", { state: "detached" });
    equal((await page.textContent(`${cell(1, 2)} .value`)).trim(), "6.5", "then it is saved");

    /* the file has it */
    const load = async (type) => {
        const [got] = await Promise.all([
            page.waitForEvent("download"),
            page.click(at(`file-${type}`)),
        ]);
        return { name: got.suggestedFilename(), bytes: readFileSync(await got.path()) };
    };
    const xlsx = await load("xlsx");
    ok(/\.xlsx$/.test(xlsx.name), "an XLSX is downloaded", xlsx.name);
    const parts = unzip(xlsx.bytes);
    const sheet = parts["xl/worksheets/sheet1.xml"]?.toString() ?? "";
    ok(sheet.includes("<v>6.5</v>"), "the changed value is a number in its sheet", sheet);
    ok(!sheet.includes("<v>48.5</v>"), "and the one before is not");
    ok((await load("csv")).bytes.toString().includes("6.5"), "the CSV has it");
    const lines = (await load("jsonl")).bytes.toString().trim().split("\n").map(JSON.parse);
    equal(lines.length, 4, "and JSON lines have a line for each document");

    await page.click(at("put-back"));
    await page.waitForSelector(at("mark-edited"), { state: "detached" });
    equal((await page.textContent(at("cell-value"))).trim(), "48.5 mg", "the AI's is put back");
    await page.keyboard.press("Escape");
    await page.waitForURL((url) => !url.hash.includes("row="));
    equal(
        await page.evaluate(() => document.activeElement.dataset.column),
        "2",
        "Escape leads back to the cell",
    );
    await page.click(at("retry-errors"));
    await page.waitForSelector(`${at("extract-state")}[data-status=completed]`, {
        timeout: SLOW_MS,
    });
    await said(page, "extract-failed", "1 failed");
    await page.goto("/#/extract");
    const listed = page.locator(at("extraction"), { hasText: "First look" });
    await listed.waitFor();
    ok(await listed.locator(at("simulated")).isVisible(), "the list says that it is simulated");
    await clean(page, "extractions");
    equal((await send(page, "GET", "me")).balance, "99.70", "three documents are paid, once");
    equal(context.wrong, [], "no error in the console");
});

test("extract: invented quotes are unverified; a task is cancelled", async ({ m, browser }) => {
    const { context, page } = await open(m, browser, "doubter");
    const wrongQuotes = ["--extract-fault", "1", "--extract-fault-kinds", "quotes"];
    await m.ai({ more: [...wrongQuotes, "--extract-fault-stays"] });
    try {
        const id = await makeTask(page, [paper(1)]);
        await ended(page, id);
        await page.goto(`/#/extract/tasks/${id}?filter=unverified&row=1&field=Dose`);
        await page.waitForSelector(at("mark-unverified"));
        await page.locator("text=The quote is not in the text").waitFor();
        equal(await page.locator(at("quote-mark")).count(), 0, "nothing is marked in the text");
        await clean(page, "an unverified value");
        await m.ai({ latency: 20000 });
        const other = await makeTask(page, [paper(2), paper(3)], "Slow");
        await page.goto(`/#/extract/tasks/${other}`);
        await page.click(at("cancel-extraction"));
        await page.click(at("sure"));
        await page.waitForSelector(`${at("extract-state")}[data-status=cancelled]`);
        await page.locator(".told").first().waitFor({ state: "attached" });
        equal((await send(page, "GET", "me")).balance, "99.90", "what is cancelled costs nothing");
    } finally {
        await m.ai({});
    }
    equal(context.wrong, [], "no error in the console");
});

test("extract: the relevant papers of a screening, or some that are picked", async ({
    m,
    browser,
}) => {
    const { context, page } = await open(m, browser, "screener", {}, "100000.00");
    await choose(page, { field: 0 });
    await start(
        page,
        "Does the paper report a randomised controlled trial in children or adolescents?",
    );
    await state(page, "DONE");
    await page.waitForSelector(`${at("extract-run")}:not([disabled])`);
    await page.click(at("extract-run"));
    await page.waitForURL(/#\/extract\/new\?run=/);
    await page.selectOption("#extract-template", "pico");
    await page.waitForSelector(`${at("start-extraction")}:not([disabled])`, { timeout: SLOW_MS });
    const relevant = Number(await page.textContent(at("extract-documents")));
    ok(relevant > 0, "all that are relevant are estimated", relevant);
    await page.check(at("papers-picked"));
    await said(page, "extract-reason", "Pick at least one paper");
    await page.locator(at("pick-paper")).first().check();
    await page.waitForFunction(
        () => document.querySelector('[data-test="extract-documents"]').textContent.trim() === "1",
    );
    await clean(page, "papers of a screening");
    await page.check(at("papers-relevant"));
    await page.waitForFunction(
        (n) =>
            document.querySelector('[data-test="extract-documents"]').textContent.trim() === `${n}`,
        relevant,
    );
    await page.click(at("start-extraction"));
    await page.waitForURL(/#\/extract\/tasks\//);
    await page.waitForSelector(`${at("extract-state")}:not([data-status=processing])`, {
        timeout: SLOW_MS,
    });
    await page.locator(".line .title").first().waitFor();
    await page.click(cell(0, 0));
    await page.waitForSelector(at("document-text"));
    ok((await page.textContent(at("document-text"))).length > 40, "its abstract is beside it");
    equal(context.wrong, [], "no error in the console");
});

/* A task of so many rows, without a server: what is measured is the page. */
async function many(page, count) {
    const asked = [];
    const fields = Array.from({ length: 12 }, (_, i) => ({ name: `field ${i}`, type: "text" }));
    const value = (text) => ({ value: text, quote: text, begin: 0, end: 4, verified: true });
    const row = (place) => ({
        place,
        document_id: `1-${place}`,
        title: `document ${place}`,
        state: "completed",
        version: 1,
        simulated: false,
        values: Object.fromEntries(fields.map((f) => [f.name, value(`${f.name} of ${place}`)])),
        edits: {},
    });
    const status = {
        success: true,
        status: "completed",
        progress: { total: count, success: count, failed: 0, percent: 100 },
        cost: "0.00",
    };
    const task = {
        task_id: "1-many",
        name: "Many",
        template_id: "pico",
        template_name: "PICO",
        template_version: 1,
        created_at: new Date().toISOString(),
        ...status,
    };
    await page.route("**/api/tasks/1-many?**", (route) => {
        asked.push(route.request().url());
        const query = new URL(route.request().url()).searchParams;
        const from = Number(query.get("cursor") ?? 0);
        const size = Math.min(Number(query.get("limit")), count - from);
        const rows = Array.from({ length: size }, (_, i) => row(from + i + 1));
        const next = from + size < count ? String(from + size) : null;
        const whole = { success: true, task, model: "m", fields, total: count };
        return route.fulfill({ json: { ...whole, rows, next } });
    });
    await page.route("**/api/tasks/1-many/rows/*", (route) => {
        const place = Number(route.request().url().split("/").pop());
        return route.fulfill({ json: { success: true, ...row(place) } });
    });
    return asked;
}

test(`extract: a table of ${ROWS} rows stays quick`, async ({ m, browser }) => {
    const { context, page } = await open(m, browser, "giant");
    const asked = await many(page, ROWS);
    await page.goto("/#/extract/tasks/1-many?filter=unverified");
    await said(page, "row-count", "10,000 documents");
    ok(asked.length <= 4, "their number is known before they are read", asked);
    await page.goto("/#/extract/tasks/1-many");
    await page.waitForSelector(`${cell(0, 1)} .value`);
    const cdp = await context.newCDPSession(page);
    await cdp.send("Performance.enable");
    const spent = async () => {
        const { metrics } = await cdp.send("Performance.getMetrics");
        const of = (name) => metrics.find((x) => x.name === `${name}Duration`).value;
        return 1000 * (of("Script") + of("Layout") + of("RecalcStyle"));
    };
    const before = await spent();
    await page.evaluate(async (frames) => {
        const box = document.querySelector('[data-test="extract-grid"]');
        for (let i = 0; i < frames; i++) {
            box.scrollTop = i * 180;
            await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
        }
    }, FRAMES);
    const each = ((await spent()) - before) / FRAMES;
    ok(each < 50, `a frame of a fast scroll takes ${each.toFixed(1)} ms, less than 50`);
    await page.evaluate(() => {
        const box = document.querySelector('[data-test="extract-grid"]');
        box.scrollTop = box.scrollHeight;
    });
    await page.locator(".title", { hasText: `document ${ROWS}` }).waitFor({ timeout: SLOW_MS });
    const elements = await page.locator(".extract-table .line").count();
    ok(elements < 60, "only rows in sight are in the page", elements);
    equal(
        await page.getAttribute('[role="grid"]', "aria-rowcount"),
        String(ROWS + 1),
        "their number is told",
    );
    await clean(page, "a long table");
    asked.length = 0;
    await page.goto(`/#/extract/tasks/1-many?row=${ROWS - 5}&field=field 3`);
    await page.reload();
    await page.locator(at("cell-value"), { hasText: `field 3 of ${ROWS - 5}` }).waitFor({
        timeout: SLOW_MS,
    });
    ok(asked.length < 8, "an address leads to a row far below, without those before it", asked);
    await page.click(at("rowAfter"));
    await page.locator(at("cell-value"), { hasText: `field 3 of ${ROWS - 4}` }).waitFor();
    ok(true, "and on to the next");
    await context.close();
});

/* Answers to a submitted task, and what is said in English and Chinese. */
const REFUSALS = [
    [refusal(402, "funds", "no"), "less than the cost", "可用余额低于费用"],
    [
        refusal(429, "rate", "no", { "Retry-After": "7200" }),
        "as many documents extracted as you may. Try again in 2 h",
        "已达上限，请在 2 小时",
    ],
    [refusal(429, "rate", "no"), "Too many of your extractions", "提取任务过多"],
    [refusal(404, "not_found", "no"), "does not exist any more", "已不存在"],
    [refusal(503, "unavailable", "no"), "cannot do this right now", "暂时无法处理"],
];
for (const [locale, column] of [
    ["en-US", 0],
    ["zh-CN", 1],
])
    test(`extract: what is said when it cannot be done, ${locale}`, async ({ m, browser }) => {
        const { context, page } = await open(m, browser, `lacking${column}`, { locale }, "0.15");
        for (const i of [1, 2]) await upload(page, `${i}.txt`, paper(i));
        await page.goto("/#/extract/new?template=pico");
        await page.check(at("all-documents"));
        await said(page, "extract-reason", REFUSALS[0][1 + column]);
        ok(await page.isDisabled(at("start-extraction")), `without money none starts, ${locale}`);
        equal((await page.textContent(at("extract-left"))).trim(), "0.05", "so much is missing");
        await clean(page, `too little money, ${locale}`);
        await page.locator(at("pick-document")).first().uncheck();
        await page.waitForSelector(`${at("start-extraction")}:not([disabled])`);
        let answer;
        await page.route("**/api/tasks", (route) => route.fulfill(answer));
        for (const row of REFUSALS) {
            answer = row[0];
            await page.waitForSelector(`${at("start-extraction")}:not([disabled])`);
            await page.click(at("start-extraction"));
            const told = page.locator(at("extract-refused"), { hasText: row[1 + column] });
            await told.waitFor({ timeout: 8000 }).catch(() => {});
            equal(await told.count(), 1, `${row[0].status}: ${row[1 + column]}`);
        }
        await page.unroute("**/api/tasks");
        await page.waitForSelector(`${at("start-extraction")}:not([disabled])`);
        await page.route("**/api/tasks/estimate", (route) => route.fulfill(REFUSALS[4][0]));
        await page.fill("#extract-name", "x");
        await page.locator(at("pick-document")).nth(1).uncheck();
        await page.locator(at("pick-document")).nth(0).check();
        await said(page, "extract-reason", REFUSALS[4][1 + column]);
        ok(await page.isDisabled(at("start-extraction")), "without an estimate none starts");
        await page.unroute("**/api/tasks/estimate");
        await page.waitForSelector(`${at("start-extraction")}:not([disabled])`);
        ok(true, `once the server is back, it can, and nothing has to be done, ${locale}`);
        await page.goto("/#/extract/tasks/1-nothing");
        await page.locator(".empty").waitFor();
        await page.route("**/api/tasks?**", (route) =>
            route.fulfill(refusal(503, "unavailable", "MySQL does not answer")),
        );
        await page.goto("/#/extract");
        await said(page, "extractions-wrong", REFUSALS[4][1 + column]);
        ok(true, `the list is not there, and it says so, ${locale}`);
        equal(context.wrong, [], "no error in the console");
    });
