// Why a document or a row of an extraction failed, or waits, as people read it: every reason_code
// of the API, with a made-up server, in both languages.
import { at, login, person } from "./flow.mjs";
import { clean, equal, ok, smoke } from "./tap.mjs";

/* The code, the server's words, and what is said in English and in Chinese. */
const FILES = [
    ["not_pdf", "this is not a PDF", "This is not a PDF", "内容不是 PDF"],
    ["pdf_locked", "this PDF is locked by a password", "Save it without one", "请去掉密码"],
    ["pdf_damaged", "this PDF cannot be read: x", "is damaged", "已损坏"],
    ["pdf_pages", "this PDF has more than 2000 pages", "at most 2000 are", "最多读取 2000 页"],
    ["pdf_time", "reading this PDF takes more than 60 seconds", "than 60 seconds", "超过 60 秒"],
    ["pdf_memory", "it takes more than 1024 MB of memory", "than 1024 MB", "超过 1024 MB"],
    ["too_much_text", "this PDF has more than 16 MB of text", "than 16 MB", "超过 16 MB"],
    ["no_text", "the document has no text", "There is no text in it", "其中没有文本"],
];
const ROWS = [
    ...FILES,
    ["pdf_reader", "pdftotext cannot be started", "reads PDF files on this", "读取 PDF 的程序"],
    ["document_gone", "there is no such document", "deleted before it was", "之前已被删除"],
    ["paper_gone", "the paper is not in the corpus", "not in the corpus", "不在文献库"],
    ["paper_damaged", "its entry is damaged", "entry in the corpus is damaged", "条目已损坏"],
    [
        "bad_answer",
        "the AI gave no answer that fits the template: dose: no.",
        "last mistake: dose: no.",
        "错误：dose: no。",
    ],
    [
        "field_missing",
        "daily dose was found in no part of the document",
        "not found in the document: daily dose.",
        "没有找到：daily dose。",
    ],
    ["no_key", "there is no active key", "There is no key", "没有 AI 服务的密钥"],
    ["service_down", "https://ai.example: 503", "at the moment.", "AI 服务目前无法使用。"],
    ["refused", "no such model", "refuses what it is asked (no such model)", "（no such model）"],
    ["too_slow", "no reply in time", "The AI took too long", "用时过长"],
    ["node_lost", "the node died", "The server stopped each time", "每次都中断"],
    ["no_money", "too little", "less than the price", "余额低于价格"],
    ["account_stopped", "stopped", "account is on hold", "账户已暂停"],
    ["no_permission", "permission 0", "may not have the AI work", "不能使用 AI"],
    ["permission_used", "all 4 are in use", "as your account allows", "您账户的上限"],
    ["other", "odd.", "The server says: odd.", "服务器提示：odd。"],
    ["unheard_of", "newer than the page", "says: newer than the page", "提示：newer than the page"],
    [null, "without a code", "The server says: without a code", "服务器提示：without a code"],
];
/* A file stays as it is, so that another try of it is not offered. */
const lasting = (code) => FILES.some((x) => x[0] === code);

const error = { place: 0, state: "error", version: 1, simulated: false, values: null, edits: {} };
const made = {
    task_id: "1-reasons",
    name: "Reasons",
    template_id: "pico",
    template_name: "PICO",
    template_version: 1,
    created_at: new Date().toISOString(),
    simulated: false,
    cost: "0.00",
};
const fields = [{ name: "dose", type: "number" }];

/* The codes that the server says it may tell. */
async function codesOf(m) {
    const { paths } = await (await fetch(`${m.url}/openapi.json`)).json();
    const reply = (path) =>
        paths[path].get.responses["200"].content["application/json"].schema.properties;
    const words = (list) =>
        list.items.properties.reason_code.anyOf.flatMap((kind) => kind.enum ?? []);
    return {
        rows: words(reply("/api/tasks/{task_id}").rows),
        files: words(reply("/api/documents").documents),
    };
}

/* Rows that all failed, a task that waits, and documents. */
async function makeUp(page) {
    const rows = ROWS.map(([reason_code, words], i) => ({
        ...error,
        place: i + 1,
        title: `d${i}`,
        error: words,
        reason_code,
    }));
    const progress = { total: rows.length, success: 0, failed: rows.length, percent: 100 };
    const status = { status: "completed", progress, message: null, reason_code: null };
    const whole = { success: true, model: "m", fields, rows, total: rows.length, next: null };
    await page.route("**/api/tasks/1-reasons?**", (route) =>
        route.fulfill({ json: { ...whole, task: { ...made, ...status } } }),
    );
    await page.route("**/api/tasks/1-waits?**", (route) => {
        const waits = { status: "processing", message: "none", reason_code: "no_key" };
        const task = { ...made, progress: { ...progress, failed: 0, percent: 0 }, ...waits };
        return route.fulfill({ json: { ...whole, rows: [], total: 0, task } });
    });
    await page.route("**/api/tasks/1-waits/events", () => {}); // no answer
    await page.route("**/api/documents?**", (route) => {
        const documents = FILES.map(([reason_code, text_error], i) => ({
            document_id: `1-${i}`,
            name: `f${i}.pdf`,
            media: "application/pdf",
            bytes: 1000,
            text_error,
            reason_code,
            created_at: made.created_at,
        }));
        const room = { bytes_used: 1, bytes_max: 100, file_bytes_max: 100 };
        return route.fulfill({ json: { success: true, documents, next: null, ...room } });
    });
}

for (const [locale, column] of [
    ["en-US", 2],
    ["zh-CN", 3],
])
    smoke(`every reason of an extraction has its sentence, ${locale}`, async ({ m, browser }) => {
        const known = await codesOf(m);
        const lacking = (list, table) => list.filter((x) => !table.some((row) => row[0] === x));
        equal(
            [lacking(known.rows, ROWS), lacking(known.files, FILES)],
            [[], []],
            "the table has every code of the API",
        );
        const name = `why${column}`;
        m.user(name);
        const context = await person(browser, m.url, {
            locale,
            viewport: { width: 1280, height: 2400 }, // all rows are in sight
        });
        const page = await context.newPage();
        await login(page, name);
        await makeUp(page);
        await page.goto("/#/extract/tasks/1-reasons");
        await page.locator(".line .title", { hasText: "d0" }).waitFor();
        for (const [i, row] of ROWS.entries()) {
            const line = page.locator(".line", { has: page.getByText(`d${i}`, { exact: true }) });
            if (!(await line.count()))
                await page.locator(at("extract-grid")).evaluate((x) => (x.scrollTop = 9999));
            const told = (await line.locator(".told span").textContent()) ?? "";
            ok(
                told.includes(row[column]) && !/[{}]|undefined/.test(told),
                `${row[0]} in the table, ${locale}`,
                told,
            );
            equal(
                await line.locator("[data-retry]").isVisible(),
                !lasting(row[0]),
                lasting(row[0]) ? "no retry is offered" : "a retry is offered",
            );
        }
        if (column === 2) await clean(page, "rows that failed");
        await page.goto("/#/extract/tasks/1-waits");
        const waits = await page.textContent(at("extract-waits"));
        const on = { "en-US": "It goes on automatically", "zh-CN": "自动继续" }[locale];
        ok(
            waits.includes(ROWS.find((x) => x[0] === "no_key")[column]) && waits.includes(on),
            `what a task waits for, ${locale}`,
            waits,
        );
        await page.goto("/#/extract/documents");
        await page.locator(at("text-error")).nth(FILES.length - 1).waitFor();
        const told = await page.locator(at("text-error")).allTextContents();
        equal(
            FILES.filter((row, i) => !told[i].includes(row[column])).map((row) => row[0]),
            [],
            `documents that cannot be read, ${locale}`,
        );
        equal(context.wrong, [], "no error in the console");
        await context.close();
    });
