// The admins' page of the search index: posts in the queue, stores of vectors, papers by journal.
import { adminLogin, at, embeddingKey, open, person, send } from "./flow.mjs";
import { write } from "./posts.mjs";
import { clean, equal, ok, test } from "./tap.mjs";

const SLOW_MS = 60000;

async function admin(m, browser, name, options) {
    m.cli("admin", "add", name);
    const context = await person(browser, m.url, options);
    const page = await context.newPage();
    await adminLogin(page, name);
    return { context, page };
}

test("search index: posts in the queue, one and all embedded again", async ({ m, browser }) => {
    await embeddingKey(m, browser);
    const user = await open(m, browser, "indexed");
    const { id } = await write(user.page, "To be embedded", "A text about iron.");
    const empty = await write(user.page, "Empty");
    const { context, page } = await admin(m, browser, "indexer");
    await m.endAi();
    try {
        await page.click(at("nav-index"));
        await page.fill("#post-id", "0x7");
        await page.click(at("post-embed"));
        await page.locator("#post-id-wrong", { hasText: "whole number" }).waitFor();
        await page.fill("#post-id", "77");
        await page.click(at("post-embed"));
        await page.locator("#post-id-wrong", { hasText: "no post with this" }).waitFor();
        await page.fill("#post-id", String(empty.id));
        await page.click(at("post-embed"));
        await page.locator("#post-id-wrong", { hasText: "nothing to embed" }).waitFor();
        ok(true, "a number that is none, of no post, of an empty one: said at the field");
        await page.fill("#post-id", String(id));
        await page.keyboard.press("Enter");
        const row = page.locator(at("queued-post"), { hasText: "To be embedded" });
        await row.waitFor();
        const cells = await row.locator("td").allTextContents();
        equal([cells[0], cells[4]], [String(id), "1"], "a post is put before others");
        await clean(page, "a queue of posts");
        await m.ai({});
        await row.waitFor({ state: "detached", timeout: SLOW_MS });
        ok(true, "and leaves the queue when it is done");
    } finally {
        await m.ai({});
    }
    const counts = page.locator(at("post-counts"));
    await counts.waitFor();
    await m.ai({ latency: 3000 });
    const batch = page.waitForResponse(/\/api\/post\/embed\/batch$/);
    await page.click(at("posts-all"));
    await page.locator(".n-dialog", { hasText: "costs calls" }).waitFor();
    await clean(page, "the question before all posts are embedded");
    await page.click(at("sure"));
    const { queued } = await (await batch).json();
    ok(queued >= 1, "all posts are queued again", queued);
    await page.locator(".toast.good", { hasText: `${queued} post` }).waitFor();
    await m.ai({});
    equal(
        (await send(user.page, "GET", `posts/${id}`)).post.rag_error ?? null,
        null,
        "their owners see no error",
    );
    const journal = page.locator(at("journal")).first();
    await journal.getByText("not indexed").waitFor();
    await journal.locator(at("journal-embed")).click();
    await page.click(at("sure"));
    await journal.locator(at("cover"), { hasText: "100%" }).waitFor({ timeout: SLOW_MS });
    await journal.getByText("up to date").waitFor({ timeout: SLOW_MS });
    ok(true, "the papers of a journal are embedded, and seen to be");
    equal([...context.wrong, ...user.context.wrong], [], "no error in the console");
});

/* What the stores and the papers may be like, all at once. */
const LOOK = {
    success: true,
    service: true,
    simulated: true,
    collections: [
        {
            name: "blog_posts",
            store: "embedded",
            model: "small-3",
            dimension: 256,
            points: 12345,
            bytes: 3 * 1024 * 1024,
            building: "large-3",
            reason: "index_rebuilt",
            rebuilt: 400,
            rebuild_total: 1600,
        },
        {
            name: "papers",
            store: "qdrant",
            model: null,
            dimension: null,
            points: 0,
            bytes: 0,
            building: null,
            reason: "of_tomorrow",
            rebuilt: 0,
            rebuild_total: 0,
        },
    ],
    posts: { pending: 1, processing: 0, completed: 5, failed: 3 },
    papers: {
        total: 18000,
        indexed: 9000,
        embedded: 6000,
        bare: 20,
        refused: 4,
        units_pending: 3,
        units_working: 1,
        units_failed: 2,
    },
};
const journal = (name, more = {}) => ({
    journal: name,
    papers: 1000,
    indexed: 0,
    embedded: 0,
    refused: 0,
    units_waiting: 0,
    units_failed: 0,
    changed: false,
    error: null,
    reason_code: null,
    ...more,
});
const JOURNALS = [
    journal("Done & dusted", { indexed: 1000, embedded: 1000 }),
    journal("In the works", { indexed: 800, embedded: 250, units_waiting: 2 }),
    journal("Never begun", { changed: true }),
    journal("Changed since", { indexed: 990, embedded: 990, changed: true }),
    journal("Ill-fated", {
        indexed: 1000,
        embedded: 10,
        refused: 3,
        units_failed: 1,
        error: "the model is not there",
        reason_code: "refused",
    }),
];
/* Of each state, in English and in Chinese. */
const STATES = [
    ["100%", "up to date", "已是最新"],
    ["25%", "2 units wait or are in work", "2 个批次等待或处理中"],
    ["0%", "not indexed", "未索引"],
    ["99%", "has changed since", "有变动"],
    ["1%", "1 unit failed", "1 个批次失败"],
];
const STORES = [
    ["25%", "made anew from MySQL: 400 of 1,600", "正在由 MySQL 重建：400 / 1,600"],
    ["large-3", "vectors of the model large-3 are being made", "正在生成模型 large-3 的向量"],
    ["256", "hits may be missing", "结果可能不全"],
    ["3 MB", "files of millrace", "millrace 的文件"],
];

async function makeUp(page, look, asked) {
    await page.route("**/api/admin/embedding", (r) => r.fulfill({ json: look.value }));
    await page.route("**/api/admin/embedding/journals**", (r) => {
        const q = new URL(r.request().url()).searchParams.get("q") ?? "";
        const journals = JOURNALS.filter((j) => j.journal.toLowerCase().includes(q));
        return r.fulfill({ json: { success: true, journals, next: null } });
    });
    await page.route("**/api/admin/embedding/papers", (r) => {
        asked.push(r.request().postDataJSON());
        return r.fulfill({ status: 202, json: { success: true, queued: 3, papers: 2400 } });
    });
}

for (const [locale, column] of [
    ["en-US", 1],
    ["zh-CN", 2],
])
    test(`search index: stores and papers, ${locale}`, async ({ m, browser }) => {
        const { context, page } = await admin(m, browser, `of-index${column}`, { locale });
        const look = { value: LOOK };
        const asked = [];
        await makeUp(page, look, asked);
        await page.click(at("nav-index"));
        const store = page.locator(at("store-blog_posts"));
        await store.waitFor();
        const said = await store.textContent();
        for (const row of STORES)
            ok(said.includes(row[0]) && said.includes(row[column]), `store: ${row[column]}`, said);
        const other = await page.locator(at("store-papers")).textContent();
        ok(/of_tomorrow.*Qdrant/s.test(other), "a reason of tomorrow", other);
        const rows = page.locator(at("journal"));
        await rows.nth(JOURNALS.length - 1).waitFor();
        const texts = await rows.allTextContents();
        for (const [i, row] of STATES.entries())
            ok(
                texts[i].includes(row[0]) && texts[i].includes(row[column]),
                `${JOURNALS[i].journal}: ${row[column]}`,
                texts[i],
            );
        const main = await page.textContent("main");
        ok(!/[{}|]|undefined|Invalid/.test(main), `nothing is left out, ${locale}`, main);
        await clean(page, `the search index, ${locale}`);

        await rows.nth(1).locator(at("journal-embed")).click();
        await page.locator(".n-dialog", { hasText: "750" }).waitFor();
        await page.keyboard.press("Escape");
        await page.waitForSelector(at("sure"), { state: "detached" });
        equal(asked, [], "Escape asks for nothing");
        const ask = async (what, count) => {
            await page.click(at(what));
            await page.locator(".n-dialog", { hasText: count }).waitFor();
            await page.click(at("sure"));
            await page.waitForSelector(at("sure"), { state: "detached" });
            await page.locator(".toast.good", { hasText: "2,400" }).last().waitFor();
        };
        await ask("papers-all", "11,980");
        await ask("papers-changed", "");
        await ask("papers-failed", "2");
        await page.fill(`${at("find-journal")} input`, "works");
        await rows.nth(1).waitFor({ state: "detached" });
        await ask("journal-embed", "750");
        equal(
            asked,
            [{ all: true }, { changed: true }, { failed: true }, { journals: ["In the works"] }],
            "each is asked for as it is named",
        );
        look.value = { ...LOOK, service: false };
        await page.waitForSelector(at("index-no-service"));
        ok(await page.isDisabled(at("papers-all")), "without a service nothing can be asked for");
        await page.route("**/api/admin/embedding", (r) => r.fulfill({ status: 503, json: {} }));
        await page.waitForSelector(at("index-wrong"));
        ok(await store.isVisible(), "while the server does not answer the last values stay");
        equal(context.wrong, [], "no error in the console");
    });
