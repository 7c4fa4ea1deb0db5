// The search: posts and papers by words and by meaning, filters, pages, what is like a hit, a
// screening of the nearest papers, and what is said when something is missing.
import { at, login, open, PASSWORD, person, refusal, send, state } from "./flow.mjs";
import { SLOW_MS } from "./extract_flow.mjs";
import { clean, equal, ok, test } from "./tap.mjs";

const POSTS = 23; /* more than a page */
const SCRIPTS_MAX = 150 * 1024; /* of the first load */
/* Characters of two halves stand before the words: marks count whole ones. */
const text = (i) =>
    `# 😀𝔸 notes\n\n😀😀 𝔸𝔸𝔸 Zeolites catch the carbon of chimneys, in reactor ${i}. ` +
    `They were weighed before and afterwards.\n`;

/* Calls as an admin, who has given the server a key to embed with. */
async function librarian(m, name) {
    m.cli("admin", "add", name, "--super");
    const reply = await fetch(`${m.url}/api/admin/login`, {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ username: name, password: PASSWORD }),
    });
    const { token } = await reply.json();
    const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
    const call = async (method, path, data) => {
        const body = data && JSON.stringify(data);
        const answer = await fetch(`${m.url}/api/admin/${path}`, { method, headers, body });
        if (!answer.ok) throw new Error(`${method} ${path}: ${await answer.text()}`);
        return answer.json();
    };
    const { keys } = await call("GET", "keys");
    if (!keys.some((k) => k.service === "embedding"))
        await call("POST", "keys", { key: "sk-0123456789-of-search", service: "embedding" });
    return call;
}

async function embedded(page) {
    for (const end = Date.now() + SLOW_MS; Date.now() < end; await page.waitForTimeout(300)) {
        const { posts } = await send(page, "GET", "posts?limit=100");
        if (posts.every((p) => p.rag_status === "completed")) return;
    }
    throw new Error("posts are not embedded");
}

const status = (page, words) =>
    page.locator(at("search-status"), { hasText: words }).waitFor({ state: "attached" });
const titles = (page) => page.locator(at("open-hit")).allTextContents();
const focused = (page, attribute) =>
    page.evaluate((name) => document.activeElement?.getAttribute(name), attribute);

async function find(page, words) {
    await page.fill(at("search-field"), words);
    await page.keyboard.press("Enter");
}

test("search: posts are found, page by page", async ({ m, browser }) => {
    const { context, page } = await open(m, browser, "seeker");
    await librarian(m, "seeker-s");
    for (let i = 0; i < POSTS; i++)
        await send(page, "POST", "posts", {
            title: `Reactor ${i}`,
            content: text(i),
            hide: i === 0,
        });
    await send(page, "POST", "posts", { title: "睡眠与记忆", content: "睡眠对记忆巩固有重要作用。" });
    await embedded(page);

    await page.click("nav >> text=Search");
    await page.waitForSelector(at("search-field"));
    equal(await focused(page, "data-test"), "search-field", "the field has the focus");
    await clean(page, "an empty search");
    await page.keyboard.type("zeolites carbon");
    await page.keyboard.press("Enter");
    await page.locator(at("hit")).first().waitFor();
    const address = page.url();
    ok(/[?&]q=zeolites[+%20]+carbon/.test(address), "Enter searches, by the address", address);
    await status(page, "The first 20 hits");
    const marked = await page.locator(`${at("hit")} mark`).allTextContents();
    ok(marked.length >= 20 && marked.every((x) => /^(zeolites|carbon)$/i.test(x)),
        "the words are marked, and nothing else", marked);
    equal(await page.locator(".fit[aria-label*='%']").count(), 20, "how well each fits is drawn");
    ok(!/0\.01\d/.test(await page.textContent("main")), "and no bare number");
    equal(await page.locator(at("search-lack")).count(), 0, "nothing is lacking");
    await clean(page, "hits");

    const before = await titles(page);
    await page.focus(at("more-hits"));
    await page.keyboard.press("Enter");
    await page.locator(at("hit")).nth(20).waitFor();
    const after = await titles(page);
    equal(after.slice(0, 20), before, "more hits come below");
    equal(new Set(after).size, after.length, "each once");
    equal(
        await page.evaluate(() => document.activeElement.textContent.trim()),
        after[20].trim(),
        "the first of them has the focus",
    );
    await page.keyboard.press("ArrowUp");
    equal(
        await page.evaluate(() => document.activeElement.textContent.trim()),
        after[19].trim(),
        "arrow keys go from hit to hit",
    );
    const hidden = page.locator(at("hit"), { has: page.locator("text=Hidden") });
    equal(await hidden.locator("h3").allTextContents().then((x) => x.map((y) => y.trim())),
        ["Reactor 0"], "a hidden one of one's own is marked");

    await page.click(at("kind-paper"));
    await page.waitForURL(/kind=paper/);
    await page.waitForSelector(at("no-hits"));
    ok(true, "no post among papers, and it says so");
    await clean(page, "no hits");
    await page.click(at("kind-post"));
    await page.waitForURL(/kind=post/);
    await page.locator(at("hit")).first().waitFor();
    equal(await page.locator(at("filters")).count(), 0, "posts have no journals and years");
    await page.goBack();
    await page.waitForSelector(at("no-hits"));
    ok(/kind=paper/.test(page.url()), "back is the search before");
    await page.goBack();
    await page.locator(at("hit")).nth(3).waitFor();
    await page.reload();
    await page.locator(at("hit")).nth(3).waitFor();
    equal(await page.inputValue(at("search-field")), "zeolites carbon", "a reload shows the same");

    await find(page, "睡眠");
    await page.locator("mark", { hasText: "睡眠" }).first().waitFor();
    equal((await titles(page))[0].trim(), "睡眠与记忆", "Chinese is found, and marked");

    const other = await person(browser, m.url);
    m.user("stranger", "1.00");
    const elsewhere = await other.newPage();
    await login(elsewhere, "stranger");
    await elsewhere.goto(page.url().replace(/q=[^&]*/, "q=reactor"));
    await elsewhere.locator(at("hit")).first().waitFor();
    for (let i = 0; i < 2 && (await elsewhere.locator(at("more-hits")).count()); i++) {
        await elsewhere.click(at("more-hits"));
        await elsewhere.waitForTimeout(300);
    }
    const theirs = (await titles(elsewhere)).map((x) => x.trim());
    ok(theirs.includes("Reactor 1") && !theirs.includes("Reactor 0"),
        "a shared address finds what others may see", theirs);
    equal([context.wrong, other.wrong], [[], []], "no error in the console");
});

test("search: a post that is hidden is not found by others any more", async ({ m, browser }) => {
    const { context, page } = await open(m, browser, "concealer");
    await librarian(m, "concealer-s");
    const title = "Obsidian blades";
    const post = { title, content: "Obsidian blades were traded over the mountains." };
    const { id } = (await send(page, "POST", "posts", post)).post;
    await embedded(page);
    const other = await open(m, browser, "finder");
    const theirs = other.page;
    const row = (view) => view.locator(at("hit"), { hasText: title });
    await theirs.goto("/#/search?q=obsidian+blades");
    await row(theirs).waitFor();
    ok(true, "others find a post");

    const again = async () => {
        const answer = theirs.waitForResponse(/\/api\/search\?/);
        await theirs.click(at("search-go"));
        await (await answer).finished();
        await theirs.locator(`${at("hit")}, ${at("no-hits")}`).first().waitFor();
        return row(theirs).count();
    };
    await page.goto(`/#/posts/${id}/edit`);
    await page.check(at("hide-post"));
    await page.click(at("save-post"));
    await page.waitForSelector(at("post-shown"));
    equal(await again(), 0, "hidden, it is gone with their next request");
    await theirs.goto(`/#/search?q=obsidian+blades&like=post:${id}`);
    await theirs.locator(at("search-wrong"), { hasText: "nothing to compare with" }).waitFor();
    ok(true, "nor is anything like it");
    await page.goto("/#/search?q=obsidian+blades");
    await row(page).locator("text=Hidden").waitFor();
    ok(true, "its owner finds it, marked");

    await send(page, "PUT", `posts/${id}`, { hide: false });
    await theirs.goto("/#/search?q=obsidian+blades&kind=post");
    await theirs.waitForSelector(`${at("hit")}, ${at("no-hits")}`);
    for (let i = 0; i < 20 && !(await again()); i++) await theirs.waitForTimeout(300);
    equal(await row(theirs).count(), 1, "shown again, it is found again");
    equal([...context.wrong, ...other.context.wrong], [], "no error in the console");
});

test("search: what is loaded", async ({ m, browser }) => {
    const { context } = await open(m, browser, "first-loader");
    const fresh = await person(browser, m.url, { storageState: await context.storageState() });
    const page = await fresh.newPage();
    const scripts = [];
    page.on("response", (r) => /\.js$/.test(new URL(r.url()).pathname) && scripts.push(r));
    await page.goto("/#/search");
    await page.waitForSelector(at("search-field"));
    await page.waitForLoadState("networkidle");
    let bytes = 0;
    for (const r of scripts) bytes += (await r.request().sizes()).responseBodySize;
    ok(
        bytes > 10 * 1024 && bytes <= SCRIPTS_MAX,
        `its scripts are ${Math.round(bytes / 1024)} KB compressed`,
        scripts.map((r) => r.url()),
    );
    equal(fresh.wrong, [], "no error in the console");
});

test("search: more like this, and back", async ({ m, browser }) => {
    const { context, page } = await open(m, browser, "likewise");
    await librarian(m, "likewise-s");
    for (let i = 0; i < 4; i++)
        await send(page, "POST", "posts", {
            title: `Glacier ${i}`,
            content: `Glaciers of valley ${i} lose ice in summer.`,
        });
    await embedded(page);
    await page.goto("/#/search?q=glaciers&kind=post");
    const first = page.locator(at("hit")).first();
    await first.waitFor();
    const title = (await first.locator("h3").textContent()).trim();
    await first.locator(at("like")).click();
    await page.waitForURL(/like=post(:|%3A)\d+/);
    await page.locator(at("like-head"), { hasText: title }).waitFor();
    await page.locator(at("hit")).first().waitFor();
    const alike = (await titles(page)).map((x) => x.trim());
    ok(!alike.includes(title) && alike.some((x) => x.startsWith("Glacier")),
        "others like it, itself left out", alike);
    equal(await page.locator("mark").count(), 0, "without marks");
    await clean(page, "what is like a post");
    await page.reload();
    await page.locator(at("like-head"), { hasText: title }).waitFor();
    ok(true, "a reload shows the same");
    await page.click(at("like-back"));
    await page.waitForURL((u) => !/like=/.test(u.href) && /q=glaciers/.test(u.href));
    await page.locator(at("hit")).nth(1).waitFor();
    await page.locator("mark").first().waitFor();
    ok(true, "and there is a way back");
    await page.goto("/#/search?q=glaciers&like=post:1");
    await page.locator(at("search-wrong"), { hasText: "nothing to compare with" }).waitFor();
    ok(true, "what is not there has nothing like it");
    const post = page.locator(at("open-hit")).first();
    await page.click(at("like-back"));
    await post.waitFor();
    ok(/#\/posts\/\d+$/.test(await post.getAttribute("href")), "a post opens on its page");
    equal(context.wrong, [], "no error in the console");
});

/* --- what the server may say instead --- */

const HIT = (i, more = {}) => ({
    kind: "paper",
    id: null,
    doi: `10.5555/${i}`,
    title: `Paper ${i}`,
    snippet: "Sleep helps memory.",
    marks: [{ begin: 0, end: 5 }],
    score: 0.0164 - i / 10000,
    journal: "NATURE",
    year: 2020,
    hide: null,
    mine: null,
    ...more,
});
const answered = (hits, more = {}) => ({
    success: true,
    hits,
    next: null,
    reason: null,
    searched: [],
    ...more,
});
const REASONS = [
    ["no_embedding_service", "has no service that searches by meaning", "没有按语义搜索的服务"],
    ["embedding_service_away", "by meaning does not answer", "按语义搜索目前没有响应"],
    ["nothing_embedded", "not indexed by meaning yet", "尚未按语义建立索引"],
    ["index_rebuilt", "being made anew", "正在重建索引"],
    ["vector_store_away", "or is behind", "语义索引目前没有响应"],
    ["embedding_model_changed", "to another model", "正在更换模型"],
    ["words_index_away", "search for words does not answer", "按词语搜索目前没有响应"],
    ["of_tomorrow", "Part of the search", "搜索的一部分"],
];
const REFUSALS = [
    [refusal(429, "rate", "no", { "Retry-After": "42" }), "Search again in 42 s", "请在 42 秒"],
    [refusal(503, "unavailable"), "Neither way of searching", "两种搜索方式"],
    [refusal(503, "busy"), "The server is busy", "服务器繁忙"],
    ["abort", "cannot be reached", "无法连接服务器"],
];

for (const [column, locale] of ["en-US", "zh-CN"].entries())
    test(`search: what is missing, and refusals, ${locale}`, async ({ m, browser }) => {
        const name = `lacking${locale.slice(0, 2)}`;
        const { context, page } = await open(m, browser, name, { locale });
        let answer = null;
        await page.route("**/api/search?**", (route) =>
            answer === "abort" ? route.abort("connectionrefused") : route.fulfill(answer),
        );
        for (const [i, row] of REASONS.entries()) {
            answer = { json: answered([HIT(1)], { reason: row[0], degraded: true }) };
            await page.goto(`/#/search?q=sleep${i}`);
            const said = page.locator(at("search-lack"), { hasText: row[1 + column] });
            await said.waitFor({ timeout: 8000 }).catch(() => {});
            equal(await said.count(), 1, `${row[0]}: ${row[1 + column]}`);
        }
        equal(await page.locator(".bar[role=alert]").count(), 0, "it is said once");
        await clean(page, `a degraded search, ${locale}`);
        for (const [i, row] of REFUSALS.entries()) {
            answer = row[0];
            await page.goto(`/#/search?q=refused${i}`);
            const said = page.locator(at("search-wrong"), { hasText: row[1 + column] });
            await said.waitFor({ timeout: 8000 }).catch(() => {});
            equal(await said.count(), 1, `${row[0].status ?? row[0]}: ${row[1 + column]}`);
        }
        answer = { json: answered([HIT(1)]) };
        await page.click(`${at("search-wrong")} button`);
        await page.waitForSelector(at("hit"));
        ok(true, "and can be tried again");
        equal(context.wrong, [], "no error in the console");
    });

/* --- how much there was to be found --- */

const there = (kind, total, by_words, by_meaning) => ({ kind, total, by_words, by_meaning });
const POSTS_ALL = there("post", 24, 24, 24);
const PAPERS_ALL = there("paper", 1300, 1300, 1295);
/* What the server counts, where that is told (0: no hits, 1: above them, 2: with their number), and
 * how. */
const EXTENTS = [
    [[POSTS_ALL, PAPERS_ALL], 2, "One hit among 24 posts and 1,300 papers", "24 篇文章和 1,300 篇论文"],
    [[there("post", 1, 1, 1)], 0, "Searched: one post.", "搜索范围：1 篇文章。"],
    [[POSTS_ALL, there("paper", 1300, 0, 0)], 1, "No paper is indexed yet", "还没有论文建立索引"],
    [[there("paper", 1300, 0, 0)], 0, "Nothing is indexed yet", "还没有建立索引"],
    [[there("paper", 1300, 0, 0)], 0, "“millrace embed”", "“millrace embed”"],
    [[there("paper", 0, 0, 0)], 0, "no such papers on this server", "没有这样的论文"],
    [[there("paper", 1300, 200, 0)], 0, "200 of 1,300 papers are indexed", "已有 200 篇建立索引"],
    [[there("paper", 1300, 1300, 0)], 1, "by their words alone: none", "论文只能按词语找到"],
    [[there("paper", 1300, 1300, 650)], 1, "650 of 1,300 papers are found by", "有 650 篇可以按"],
    [[there("post", 0, 0, 0)], 0, "There are no posts yet", "还没有文章"],
    [[there("post", 1, 0, 0)], 0, "One post waits to be indexed", "1 篇文章正在等待"],
    [[there("post", 24, 3, 3)], 0, "3 of 24 posts are indexed", "已有 3 篇建立索引"],
    [[there("post", 24, 24, 0)], 1, "by their words alone: none", "文章只能按词语找到"],
    [[there("post", 24, 24, 12)], 1, "12 of 24 posts are found by", "有 12 篇可以按语义"],
];

for (const [column, locale] of ["en-US", "zh-CN"].entries())
    test(`search: nothing found, or nothing indexed, ${locale}`, async ({ m, browser }) => {
        const name = `counting${locale.slice(0, 2)}`;
        const { context, page } = await open(m, browser, name, { locale });
        let answer = null;
        await page.route("**/api/search?**", (route) => route.fulfill({ json: answer }));
        for (const [i, [searched, place, ...words]] of EXTENTS.entries()) {
            answer = answered(place ? [HIT(1)] : [], { searched });
            await page.goto(`/#/search?q=sleep${i}`);
            const where = at(["no-hits", "search-extent", "search-status"][place]);
            const said = page.locator(where, { hasText: words[column] });
            await said.waitFor({ timeout: 8000 }).catch(() => {});
            equal(await said.count(), 1, words[column]);
        }
        ok(
            !/[{}|]|undefined|NaN/.test(await page.textContent("main")),
            `nothing is left out, ${locale}`,
        );
        await clean(page, `part of the posts, ${locale}`);
        answer = answered([], { searched: [there("paper", 90, 0, 0)] });
        await page.goto("/#/search?q=sleep&journal=NATURE");
        await page
            .locator(at("no-hits"), { hasText: ["None of these papers", "这些论文都还没有"][column] })
            .waitFor();
        ok(true, "of the journals that were chosen");
        await clean(page, `nothing is indexed, ${locale}`);
        answer = answered([HIT(1)], {
            searched: [there("paper", 90, 90, 0)],
            reason: "no_embedding_service",
            degraded: true,
        });
        await page.goto("/#/search?q=words");
        await page.waitForSelector(at("search-lack"));
        equal(await page.locator(at("search-extent")).count(), 0, "it is not said twice");
        answer = answered([], { searched: [there("paper", null, null, null)] });
        await page.goto("/#/search?q=unknown");
        await page
            .locator(at("no-hits"), { hasText: ["Nothing was found", "没有找到"][column] })
            .waitFor();
        equal(await page.locator(at("search-lacking")).count(), 0, "what is not known is not said");
        equal(context.wrong, [], "no error in the console");
    });

/* --- papers --- */

const size = (j) => Object.values(j.years).reduce((a, b) => a + b, 0);
/* All papers of a journal are indexed; its names, years, and how many. */
async function index(page, root) {
    const { journals } = await send(page, "GET", "journals");
    const [journal] = journals.filter((j) => size(j) >= 30).sort((a, b) => size(a) - size(b));
    await root("POST", "embedding/papers", { journals: [journal.name] });
    const q = encodeURIComponent(journal.name);
    for (const end = Date.now() + SLOW_MS; Date.now() < end; await page.waitForTimeout(500)) {
        const { journals: all } = await root("GET", `embedding/journals?q=${q}`);
        if (all.find((j) => j.journal === journal.name)?.embedded === size(journal))
            return { ...journal, papers: size(journal) };
    }
    throw new Error(`${journal.name} is not indexed`);
}

test("search: papers, by journal and year", async ({ m, browser }) => {
    const { context, page } = await open(m, browser, "reader-of-papers");
    const root = await librarian(m, "reader-s");
    const { journals } = await send(page, "GET", "journals");
    const [large] = journals.sort((a, b) => size(b) - size(a));
    await page.goto(`/#/search?q=measured&journal=${encodeURIComponent(large.name)}`);
    await page.locator(at("search-lacking"), { hasText: "None of these papers" }).waitFor();
    ok(true, "a journal that is not indexed says so");
    const journal = await index(page, root);
    const year = Object.keys(journal.years).map(Number).sort()[1];
    await page.goto("/#/search?q=measured&kind=paper");
    await page.locator(at("hit")).first().waitFor();
    await page.click(at("filters"));
    await page.fill(at("journal-find"), journal.full_name.toLowerCase().slice(2));
    await page.waitForFunction(
        (name) => document.querySelectorAll(name).length === 1,
        at("journal-pick"),
    );
    await page.focus(at("journal-pick"));
    await page.keyboard.press("Space");
    await page.waitForURL(/journal=/);
    await page.fill("#year-to", String(year));
    await page.keyboard.press("Enter");
    await page.waitForURL(/to=\d+/);
    await page.waitForFunction(
        ([name, want]) =>
            [...document.querySelectorAll(`${name} .journal`)].every((x) => {
                const [journal, year] = x.textContent.split(" · ");
                return journal.trim() === want[0] && Number(year) <= want[1];
            }) && document.querySelector(name),
        [at("hit"), [journal.name, year]],
    );
    ok(true, "all hits are of the journal and the years");
    await clean(page, "filters");
    await page.reload();
    await page.locator(at("filters"), { hasText: "2 set" }).waitFor();
    equal(await page.inputValue(at("search-field")), "measured", "a reload keeps the filters");

    const first = page.locator(at("open-hit")).first();
    const title = (await first.textContent()).trim();
    await first.focus();
    await page.keyboard.press("Enter");
    await page.locator(at("abstract"), { hasText: /.{40}/ }).waitFor();
    ok(/open=/.test(page.url()), "an open paper is in the address");
    equal(
        await page.evaluate(() => document.activeElement.textContent.trim()),
        title,
        "its heading has the focus",
    );
    await clean(page, "a paper of a search");
    await page.reload();
    await page.locator(at("abstract"), { hasText: /.{40}/ }).waitFor();
    ok(true, "and is open again after a reload");
    await page.locator(`aside h2`, { hasText: title }).focus();
    await page.keyboard.press("Escape");
    await page.waitForSelector("aside", { state: "detached" });
    equal(
        await page.evaluate(() => document.activeElement.textContent.trim()),
        title,
        "Escape closes it, and leads back to the hit",
    );
    await page.locator(at("like")).first().click();
    await page.locator(at("like-head"), { hasText: title }).waitFor();
    await page.locator(at("hit")).first().waitFor();
    ok(!(await titles(page)).includes(title), "other papers are like it");
    await page.goto("/#/search?q=measured&open=10.5555/none");
    await page.locator(at("abstract"), { hasText: "not in the corpus any more" }).waitFor();
    ok(true, "a paper that has left says so");
    equal(context.wrong, [], "no error in the console");
});

test("search: the nearest papers are screened", async ({ m, browser }) => {
    const { context, page } = await open(m, browser, "nearest-screener", {}, "5000.00");
    const journal = await index(page, await librarian(m, "nearest-s"));
    const query = new URLSearchParams({ q: "what was measured", journal: journal.name });
    await page.goto(`/#/search?${query}`);
    await page.focus(at("screen-these"));
    await page.keyboard.press("Enter");
    await page.waitForURL(/search\/screen/);
    await page.locator(`dl:not(.stale) ${at("cost")}`).waitFor();
    equal(await page.inputValue("#nearest-n"), "500", "500 of them, if nothing else is said");
    equal(await page.inputValue("#question"), "what was measured", "the question is the search's");
    const said = await page.textContent(at("nearest-found"));
    ok(said.includes(` ${journal.papers} `), "it says how many there are", said);
    await clean(page, "a screening of the nearest");
    await page.fill("#nearest-n", "20001");
    await page.locator("#nearest-hint.wrong", { hasText: "from 1 to 20,000" }).waitFor();
    await page.click(at("start"));
    await page.locator(".panel [role=alert]", { hasText: "20,000" }).waitFor();
    ok(true, "more than there may be is not sent");
    await page.fill("#nearest-n", "7");
    await page.locator(`dl:not(.stale) ${at("papers")}`, { hasText: /^7$/ }).waitFor();
    equal(
        (await page.textContent(at("cost"))).trim(),
        `${7 * journal.price}.00`,
        "seven of them cost seven times the price",
    );
    await page.fill("#question", "Does it tell what was measured?");
    await page.reload();
    await page.locator(`dl:not(.stale) ${at("papers")}`, { hasText: /^7$/ }).waitFor();
    equal(
        await page.inputValue("#question"),
        "Does it tell what was measured?",
        "a reload loses nothing",
    );
    await page.click(at("start"));
    await page.waitForURL(/#\/runs\//);
    await state(page, "DONE");
    const run = await send(page, "GET", `queries/${page.url().split("/").pop()}`);
    equal(
        [run.papers, run.finished, run.question, run.nearest.q, run.nearest.n],
        [7, 7, "Does it tell what was measured?", "what was measured", 7],
        "seven papers are judged",
    );
    await page.locator(at("scope")).locator("summary").click();
    await page.locator(at("scope-nearest"), { hasText: "7 of the 7" }).waitFor();
    ok(true, "its scope says what they are near to");
    await page.click(at("screen-again"));
    await page.waitForURL(/search\/screen/);
    await page.locator(`dl:not(.stale) ${at("papers")}`, { hasText: /^7$/ }).waitFor();
    equal(
        [await page.textContent(at("nearest-to")), await page.inputValue("#question")],
        ["what was measured", "Does it tell what was measured?"],
        "and the same can be screened again",
    );
    await page.click(at("nearest-back"));
    await page.locator(at("hit")).first().waitFor();
    ok(page.url().includes("what"), "back to the hits");
    equal(context.wrong, [], "no error in the console");
});

test("search: a new search gives up the former one", async ({ m, browser }) => {
    const { context, page } = await open(m, browser, "hasty-seeker");
    let slow;
    await page.route("**/api/search?**", async (route) => {
        const q = new URL(route.request().url()).searchParams.get("q");
        if (q === "slow") await new Promise((go) => (slow = go));
        await route.fulfill({ json: answered([HIT(1, { title: `Of ${q}` })]) }).catch(() => {});
    });
    await page.goto("/#/search");
    const given = page.waitForEvent("requestfailed", (r) => r.url().includes("q=slow"));
    await find(page, "slow");
    await page.waitForURL(/q=slow/);
    await find(page, "quick");
    await page.locator(at("hit"), { hasText: "Of quick" }).waitFor();
    await given;
    slow();
    await page.waitForTimeout(300);
    equal((await titles(page)).map((x) => x.trim()), ["Of quick"], "its answer is not shown");
    equal(await page.locator(at("search-wrong")).count(), 0, "and it is no error");
    await page.fill(at("search-field"), "typed, not sent");
    await page.reload();
    await page.waitForSelector(at("search-field"));
    equal(await page.inputValue(at("search-field")), "typed, not sent", "a reload loses no word");

    m.cli("user", "ban", "hasty-seeker");
    await page.unroute("**/api/search?**");
    await page.keyboard.press("Enter");
    await page.waitForSelector("#name");
    ok(/to=/.test(page.url()), "who is logged out is asked to log in, and comes back");
    equal(context.wrong, [], "no error in the console");
});
