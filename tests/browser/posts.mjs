// Posts on the pages: written, previewed, indexed, changed, also when another one was faster,
// hidden, deleted, and what is said when something is missing.
import { at, embeddingKey, open, refusal, send } from "./flow.mjs";
import { clean, equal, ok, test } from "./tap.mjs";

const SLOW_MS = 90000;
const CHARS_MAX = 200000; /* embedding.content_chars */

export const write = async (page, title, content = "", hide = false) =>
    (await send(page, "POST", "posts", { title, content, hide })).post;
const look = async (page, id) => (await send(page, "GET", `posts/${id}`)).post;
const state = (page, which) =>
    page.locator(`${at("post-state")}[data-status=${which}]`).first().waitFor({ timeout: SLOW_MS });

const MARKDOWN = `# Iron **in** soils

1. first
2. second [link](https://example.org/a_b)

| Dose | n |
|------|--:|
| 5 mg | 7 |

> quoted

<script>window.bad = 1</script><img src="/x" onerror="window.bad = 2">
[click](javascript:window.bad=3) [data](data:text/html,x) <https://example.org/(c)>

\`\`\`
<b>code</b>
\`\`\`
`;

async function seesMarkdown(root, where) {
    const html = await root.innerHTML();
    equal(
        [
            await root.locator("strong", { hasText: "in" }).count(),
            await root.locator("ol > li").count(),
            await root.locator("td").count(),
            await root.locator("blockquote").count(),
            await root.locator("pre code", { hasText: "<b>code</b>" }).count(),
        ],
        [1, 2, 2, 1, 1],
        `${where}: Markdown is shown`,
    );
    equal(
        [await root.locator("script, img, b").count(), html.includes("&lt;script&gt;")],
        [0, true],
        `${where}: HTML is text`,
    );
    equal(
        await root.locator("a").evaluateAll((list) => list.map((a) => [a.href, a.rel])),
        ["https://example.org/a_b", "https://example.org/(c)"].map((x) => [
            x,
            "noopener noreferrer nofollow",
        ]),
        `${where}: only links of the web are links`,
    );
}

test("posts: one is written, previewed, saved, and indexed", async ({ m, browser }) => {
    await embeddingKey(m, browser);
    const { context, page } = await open(m, browser, "author");
    await page.click("nav >> text=Posts");
    await page.locator("text=You have not written any posts").waitFor();
    await clean(page, "no posts");
    await page.click(at("new-post"));
    await page.waitForSelector("#post-title");
    ok(await page.isDisabled(at("save-post")), "there is nothing to save");
    await page.fill("#post-title", "Iron in soils");
    await page.fill("#post-content", "x".repeat(CHARS_MAX + 3));
    await page.locator(at("chars-left"), { hasText: "3 characters too many" }).waitFor();
    ok(await page.isDisabled(at("save-post")), "a text that is too long is not sent");
    await page.fill("#post-content", MARKDOWN);
    const preview = page.locator(at("post-preview"));
    await preview.locator("blockquote").waitFor();
    await seesMarkdown(preview, "the preview");
    const left = (CHARS_MAX - MARKDOWN.length).toLocaleString("en-US");
    equal(
        (await page.textContent(at("chars-left"))).trim(),
        `${left} characters left`,
        "what may be written yet is said",
    );
    await clean(page, "a post that is written");
    await page.setViewportSize({ width: 390, height: 844 });
    ok(!(await preview.isVisible()), "on a telephone the text has the room");
    await page.click(at("view-preview"));
    ok(await preview.isVisible(), "or the preview");
    await page.setViewportSize({ width: 1440, height: 900 });
    await page.reload();
    await page.waitForSelector(at("restored"));
    equal(await page.inputValue("#post-content"), MARKDOWN, "a reload loses nothing");
    await page.goto("/#/posts");
    await page.locator(at("new-post"), { hasText: "Go on with your draft" }).click();
    await page.waitForSelector("#post-title");
    equal(await page.inputValue("#post-title"), "Iron in soils", "nor does going elsewhere");
    await context.clearCookies();
    await page.click(at("save-post"));
    await page.waitForURL(/#\/login/);
    await page.fill("#name", "author");
    await page.fill("#password", "correct horse");
    await page.click(at("submit"));
    await page.waitForSelector("#post-title");
    equal(await page.inputValue("#post-content"), MARKDOWN, "nor a session that ends");

    await m.ai({ latency: 3000 });
    await page.dblclick(at("save-post"));
    await page.waitForSelector(at("post-shown"));
    equal((await send(page, "GET", "posts")).posts.length, 1, "two clicks make one post");
    await seesMarkdown(page.locator(at("post-content")), "the post");
    equal(await page.evaluate(() => window.bad), undefined, "and no script of it has run");
    await state(page, "processing");
    await page.locator(`${at("post-state")} [role=progressbar]`).waitFor();
    ok(true, "it is seen to be indexed");
    await clean(page, "a post that is indexed");
    await state(page, "completed");
    ok(true, "and then that it is");
    await m.ai({});
    const { id } = (await send(page, "GET", "posts")).posts[0];
    equal((await look(page, id)).content, MARKDOWN, "its text is as it was typed");
    const before = await page.textContent(at("index-limit"));
    equal(before.trim(), "500 of 500 left today", "how often it may be indexed by hand");
    await page.click(at("index-post"));
    await page.locator(at("index-limit"), { hasText: "499 of 500" }).waitFor();
    await state(page, "completed");
    ok(true, "it is indexed again by hand, which is counted");
    await page.click(at("edit-post"));
    await page.waitForSelector("#post-title");
    equal(await page.locator(at("restored")).count(), 0, "nothing is left of the draft");
    equal(context.wrong, [], "no error in the console");
});

test("posts: the list follows, page by page", async ({ m, browser }) => {
    await embeddingKey(m, browser);
    const { context, page } = await open(m, browser, "lister");
    for (let i = 1; i <= 51; i++) await write(page, `Note ${i}`);
    await page.goto("/#/posts");
    const rows = page.locator(at("post"));
    await rows.nth(49).waitFor();
    ok((await rows.first().textContent()).includes("Note 51"), "the newest comes first");
    ok((await rows.first().textContent()).includes("no text"), "an empty one says so");
    await page.click(at("more"));
    await rows.nth(50).waitFor();
    ok((await rows.last().textContent()).includes("Note 1"), "then older ones");
    await m.ai({ latency: 1500 });
    const { id, version } = (await send(page, "GET", "posts?limit=1")).posts[0];
    await send(page, "PUT", `posts/${id}`, { content: "A text by now.", version });
    await rows.first().locator("[data-status=processing]").waitFor({ timeout: SLOW_MS });
    await rows.first().getByText("indexed", { exact: true }).waitFor({ timeout: SLOW_MS });
    ok(true, "one that is changed elsewhere is followed");
    await m.ai({});
    await clean(page, "a list of posts");
    equal(context.wrong, [], "no error in the console");
});

test("posts: one whose answer was lost is written once", async ({ m, browser }) => {
    const { context, page } = await open(m, browser, "unlucky-author");
    const asked = [];
    let lose = true;
    await page.route("**/api/posts", async (route) => {
        if (route.request().method() !== "POST") return route.continue();
        asked.push(route.request().postDataJSON().request_id);
        if (!lose) return route.continue();
        await route.fetch();
        return route.abort("connectionreset");
    });
    const save = async () => {
        const sent = page.waitForEvent("requestfailed", (r) => r.method() === "POST");
        await page.click(at("save-post"));
        await sent;
    };
    await page.goto("/#/posts/new");
    await page.fill("#post-title", "Once");
    await page.fill("#post-content", "One text.");
    await save();
    await page.locator(`${at("save-post")}:not(:has(.n-base-loading))`).waitFor();
    await page.reload();
    await page.waitForSelector("#post-title");
    await save();
    lose = false;
    await page.click(at("save-post"));
    await page.waitForSelector(at("post-shown"));
    ok(asked.length === 3 && new Set(asked).size === 1, "sent again as the same request", asked);
    equal((await send(page, "GET", "posts")).posts.length, 1, "also after a reload: one post");

    lose = true;
    await page.goto("/#/posts/new");
    await page.fill("#post-title", "Twice");
    await save();
    await page.fill("#post-title", "Twice, and changed");
    lose = false;
    await page.click(at("save-post"));
    await page.waitForSelector(at("post-shown"));
    equal(new Set(asked.slice(3)).size, 2, "what was changed meanwhile is another one");
    equal((await send(page, "GET", "posts")).posts.length, 3, "and both are there");
    equal(context.wrong, [], "no error in the console");
});

test("posts: one is edited, also elsewhere", async ({ m, browser }) => {
    const { context, page } = await open(m, browser, "editor");
    const { id } = await write(page, "Plain", "first");
    const path = `posts/${id}`;
    const elsewhere = async (content) =>
        send(page, "PUT", path, { content, version: (await look(page, id)).version });
    await page.goto(`/#/posts/${id}`);
    await page.click(at("edit-post"));
    await page.fill("#post-content", "mine");
    await elsewhere("theirs");
    await page.click(at("save-post"));
    const told = page.locator(at("changed-elsewhere"));
    await told.waitFor();
    equal(await page.textContent(at("newer-text")), "theirs", "a change from elsewhere is shown");
    equal(await page.inputValue("#post-content"), "mine", "beside what was typed");
    equal((await look(page, id)).content, "theirs", "and not written over");
    ok(await page.isDisabled(at("save-post")), "one has to choose");
    await clean(page, "two changes of a post");
    await page.click(at("take-newer"));
    equal(await page.inputValue("#post-content"), "theirs", "the newer one can be taken");
    await page.fill("#post-title", "Newer, and changed");
    await page.reload();
    await page.click(at("take-mine"));
    equal(await page.inputValue("#post-content"), "mine", "and what was typed be put back");
    await page.reload();
    await page.waitForSelector("#post-title");
    equal(await page.inputValue("#post-content"), "mine", "a reload loses neither");
    await page.click(at("save-post"));
    await page.waitForSelector(at("post-shown"));
    equal((await look(page, id)).content, "mine", "then it is saved");

    await page.click(at("edit-post"));
    await page.fill("#post-content", "mine again");
    await elsewhere("theirs again");
    await page.reload();
    await told.waitFor();
    ok(true, "what was changed elsewhere before a reload is seen at once");
    await page.click(at("save-mine"));
    await page.waitForSelector(at("post-shown"));
    equal((await look(page, id)).content, "mine again", "or saved over the newer one");

    await page.click(at("edit-post"));
    await page.fill("#post-content", "outlives it");
    await page.keyboard.press("Tab");
    const { version } = await look(page, id);
    await send(page, "DELETE", `${path}?version=${version}`);
    await page.click(at("save-post"));
    await page.waitForSelector(at("gone"));
    equal(await page.inputValue("#post-content"), "outlives it", "one that is gone loses nothing");
    await page.click(at("save-as-new"));
    await page.waitForSelector(at("post-shown"));
    const kept = (await send(page, "GET", "posts")).posts[0];
    equal((await look(page, kept.id)).content, "outlives it", "it is saved as a new one");

    await page.click(at("edit-post"));
    await page.fill("#post-content", "dropped");
    await page.click(at("discard-post"));
    await page.waitForSelector(at("post-shown"));
    equal((await look(page, kept.id)).content, "outlives it", "a change can be thrown away");
    await page.click(at("edit-post"));
    await page.waitForSelector("#post-content");
    equal(await page.inputValue("#post-content"), "outlives it", "for good");
    await page.fill("#post-content", "by keyboard");
    await page.keyboard.press("Control+s");
    await page.waitForSelector(at("post-shown"));
    equal((await look(page, kept.id)).content, "by keyboard", "Ctrl+S saves");
    equal(context.wrong, [], "no error in the console");
});

test("posts: one is hidden, and deleted", async ({ m, browser }) => {
    const { context, page } = await open(m, browser, "hider");
    const { id } = await write(page, "Seen by all", "A text.");
    const other = await open(m, browser, "reader-of-posts");
    const theirs = other.page;
    await theirs.goto("/#/posts?of=all");
    const row = theirs.locator(at("post"), { hasText: "Seen by all" });
    await row.waitFor();
    await row.locator("a").click();
    await theirs.waitForSelector(at("post-content"));
    equal(
        await theirs.locator(`${at("edit-post")}, ${at("delete-post")}`).count(),
        0,
        "others read a post, and cannot change it",
    );
    await clean(theirs, "a post of another user");
    await theirs.goto(`/#/posts/${id}/edit`);
    await theirs.locator("text=This post is of another user").waitFor();
    ok(true, "not even by its address");
    await page.goto(`/#/posts/${id}/edit`);
    await page.check(at("hide-post"));
    await page.click(at("save-post"));
    await page.waitForSelector(at("hidden"));
    await theirs.goto(`/#/posts/${id}`);
    await theirs.waitForSelector(at("no-post"));
    await theirs.goto("/#/posts?of=all");
    await theirs.locator(`${at("post")}, .empty`).first().waitFor();
    equal(await row.count(), 0, "hidden, others do not see it");
    await page.click(at("delete-post"));
    await page.waitForSelector(at("sure"));
    await page.keyboard.press("Escape");
    await page.waitForSelector(at("sure"), { state: "detached" });
    equal((await look(page, id)).title, "Seen by all", "Escape deletes nothing");
    const changed = await send(page, "PUT", `posts/${id}`, { title: "Changed", version: 2 });
    await page.click(at("delete-post"));
    await clean(page, "the question before a post is deleted");
    await page.click(at("sure"));
    await page.locator(".toast.bad", { hasText: "changed elsewhere" }).waitFor();
    equal((await look(page, id)).version, changed.post.version, "nor does one that has changed");
    await page.locator("h1", { hasText: "Changed" }).waitFor();
    await page.click(at("delete-post"));
    await page.click(at("sure"));
    await page.waitForURL(/#\/posts$/);
    equal((await send(page, "GET", "posts")).posts, [], "it is deleted");
    await page.goto(`/#/posts/${id}`);
    await page.waitForSelector(at("no-post"));
    ok(true, "and its address says so");
    equal([...context.wrong, ...other.context.wrong], [], "no error in the console");
});

test("posts: one cannot be indexed, and says why", async ({ m, browser }) => {
    await embeddingKey(m, browser);
    const { context, page } = await open(m, browser, "failing");
    await m.ai({ more: ["--embed-fault", "1", "--embed-fault-kinds", "nan"] });
    try {
        const { id } = await write(page, "Unlucky", "A text without vectors.");
        await page.goto(`/#/posts/${id}`);
        await state(page, "failed");
        const story = page.locator(at("post-story"), { hasText: "gave no vectors" });
        await story.waitFor();
        ok(true, "its reason is told in a sentence");
        await clean(page, "a post that failed");
        await m.ai({});
        await page.click(at("index-post"));
        await state(page, "completed");
        await story.waitFor({ state: "detached" });
        ok(true, "by hand it is tried again");
    } finally {
        await m.ai({});
    }
    await m.endAi();
    try {
        await page.click(at("index-post"));
        await page.locator(at("post-story"), { hasText: "Waits for the embedding" }).waitFor();
        ok(true, "while the service is away it waits, and says so");
        equal(
            await page.locator("[role=progressbar]").count(),
            0,
            "and does not look as if it were in work",
        );
    } finally {
        await m.ai({});
    }
    equal(context.wrong, [], "no error in the console");
});

/* --- what is said --- */

const REFUSALS = [
    [refusal(402, "funds"), "less than the price of indexing", "低于为一篇文章"],
    [refusal(403, "forbidden"), "may not have posts indexed", "目前不能为文章建立索引"],
    [refusal(409, "conflict", "you have 20000 posts: delete"), "You have 20,000", "已有 20,000 篇"],
    [refusal(503, "busy", "the queue is full"), "Too many posts wait", "文章过多"],
    [refusal(503, "unavailable"), "cannot do this right now", "暂时无法处理"],
    [
        refusal(400, "invalid", "content: must have at most 10 characters, and has 12", {}),
        "at most 10 characters",
        "at most 10 characters",
        "content",
    ],
];
const DOWN = "the embedding service cuts the connection";
/* Posts by status, reason and words, and what is said of each. A reason without words here is of a
 * later server. */
const STORIES = [
    ["pending", "no_money", "x", "after a recharge", "充值后自动继续"],
    ["pending", "account_stopped", "x", "stopped until an administrator", "账户已暂停"],
    ["pending", "no_permission", "x", "may not use the AI at present", "目前不能使用 AI"],
    ["pending", "permission_used", "x", "Waits for your other work", "您的其他任务"],
    ["pending", "node_lost", "x", "stopped while it worked", "服务器中断了，会自动重试"],
    ["pending", "no_embedding_service", "x", "which this server does not have", "还没有接入"],
    ["processing", "service_down", DOWN, "at the moment (the emb", "（the embedding"],
    ["processing", "service_down", "there is no active key of it", "a key of", "的密钥"],
    ["pending", "too_slow", "x", "took too long, and is asked", "用时过长，会自动"],
    ["pending", "bad_answer", "nan", "(nan), and is asked again", "（nan），会自动"],
    ["pending", "other", "odd", "The server says: odd", "服务器提示：odd"],
    ["pending", "of_tomorrow", "new", "The server says: new", "服务器提示：new"],
    ["failed", "service_down", DOWN, "did not work (the emb", "无法使用（the embedding"],
    ["failed", "refused", "bad", "refused the text (bad)", "拒绝了这段文字（bad）"],
    ["failed", "too_slow", "x", "too long each time", "每次都用时过长"],
    ["failed", "too_long", "9 chunks", "too much text (9 chunks)", "文章过长（9 chunks）"],
    ["failed", "bad_answer", "nan", "at each try (nan)", "都无法使用（nan）"],
    ["failed", "node_lost", "x", "stopped at each try", "服务器每次都中断了"],
    ["failed", "other", "ill", "The server says: ill", "服务器提示：ill"],
    ["failed", null, null, "It was not indexed. Try again.", "没有建立索引。请重试。"],
];
const made = ([rag_status, reason_code, rag_error], i) => ({
    id: i + 1,
    title: `Row ${i}`,
    hide: false,
    mine: true,
    version: 1,
    created_at: new Date().toISOString(),
    changed_at: new Date().toISOString(),
    rag_status,
    reason_code,
    rag_error,
    progress: { done: 0, total: 2 },
});
const page_of = (posts, more = {}) => ({
    success: true,
    posts,
    next: null,
    content_chars_max: 1000,
    price: "0.00",
    service: true,
    simulated: false,
    ...more,
});

for (const [locale, column] of [
    ["en-US", 0],
    ["zh-CN", 1],
])
    test(`posts: what is said when they cannot be written, ${locale}`, async ({ m, browser }) => {
        const name = `speechless${column}`;
        const { context, page } = await open(m, browser, name, { locale }, "0.50");
        await page.goto("/#/posts/new");
        await page.fill("#post-title", "x");
        for (const [answer, ...rest] of REFUSALS) {
            const reply = { ...answer };
            if (rest[2]) reply.json = { error: { ...answer.json.error, field: rest[2] } };
            await page.route("**/api/posts", (route) => route.fulfill(reply));
            await page.click(at("save-post"));
            const said = page.locator(`${at("post-refused")}, ${at("content-wrong")}`, {
                hasText: rest[column],
            });
            await said.waitFor({ timeout: 8000 }).catch(() => {});
            equal(await said.count(), 1, `${answer.status}: ${rest[column]}`);
            await page.unroute("**/api/posts");
        }
        await page.route("**/api/posts", (route) => route.abort("connectionrefused"));
        await page.click(at("save-post"));
        await page.locator(".bar[role=alert]").waitFor();
        equal(await page.inputValue("#post-title"), "x", "the server is away: nothing is lost");
        await page.unroute("**/api/posts");

        let answer = page_of(STORIES.map(made));
        await page.route("**/api/posts?**", (route) =>
            route.fulfill(answer.status ? answer : { json: answer }),
        );
        await page.goto("/#/posts");
        await page.locator(at("post")).nth(STORIES.length - 1).waitFor();
        const rows = await page.locator(at("post")).allTextContents();
        for (const [i, row] of STORIES.entries())
            ok(rows[i].includes(row[3 + column]), `${row[1]}: ${row[3 + column]}`, rows[i]);
        ok(!/[{}]|undefined|Invalid/.test(rows.join()), `nothing is left out, ${locale}`, rows);
        await clean(page, `every reason, ${locale}`);
        answer = page_of([], { service: false });
        await page.reload();
        await page
            .locator(at("no-service"), { hasText: ["no embedding service", "没有向量化服务"][column] })
            .waitFor();
        ok(true, `there is no service, ${locale}`);
        answer = page_of([], { price: "1.00" });
        await page.goto("/#/posts/new");
        await page.fill("#post-content", "dear");
        await page
            .locator(".note.bad", { hasText: ["less than the price", "低于"][column] })
            .waitFor();
        ok(true, `too little is left for the price, ${locale}`);
        answer = refusal(503, "unavailable", "MySQL does not answer");
        await page.goto("/#/posts");
        await page.locator(at("posts-wrong"), { hasText: REFUSALS[4][1 + column] }).waitFor();
        ok(true, `the list is not there, and it says so, ${locale}`);
        answer = page_of([]);
        await page.click(`${at("posts-wrong")} button`);
        await page.locator(".card.empty").waitFor();
        ok(true, "until it is asked again");
        equal(context.wrong, [], "no error in the console");
    });

test("posts: nobody can hang a page by Markdown", async ({ m, browser }) => {
    const { context, page } = await open(m, browser, "hanger");
    const HARD = [
        "[".repeat(CHARS_MAX),
        "*_".repeat(CHARS_MAX / 2),
        "> ".repeat(CHARS_MAX / 2),
        `${"!["}`.repeat(60000) + "]()".repeat(20000),
        ("[a](" + " ".repeat(30)).repeat(5000),
        Array.from({ length: 400 }, (_, i) => `${"  ".repeat(i)}- x`).join("\n"),
        `|${"a|".repeat(40)}\n|${"-|".repeat(40)}\n${"<https://".repeat(15000)}`,
    ];
    await page.goto("/#/posts/new");
    await page.waitForSelector("#post-content");
    for (const [i, text] of HARD.entries()) {
        const began = Date.now();
        await page.fill("#post-content", text);
        await page.waitForTimeout(700); // until typing counts as paused
        await page.evaluate(() => document.querySelector(".markdown").childElementCount);
        ok(Date.now() - began < 30000, `text ${i} is drawn soon`, Date.now() - began);
    }
    equal(context.wrong, [], "no error in the console");
});
