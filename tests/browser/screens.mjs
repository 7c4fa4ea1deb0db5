// Takes the pictures of docs/screens/: every page, wide and narrow, light and dark, and in Chinese.
// Needs Debian's pngquant besides, which makes them small enough to keep.
// screens.mjs [start of a name]: only these. With admin-… the researchers' pages are not visited,
// and no run is in motion behind the overview, as there is with admin; with plan… only those of
// plans are, with extract… only those of extraction, with post… only those of posts.
import { execFileSync } from "node:child_process";
import { mkdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
    adminLogin,
    at,
    choose,
    embeddingKey,
    launch,
    login,
    person,
    send,
    start,
    state,
} from "./flow.mjs";
import { Millrace, ROOT } from "./millrace.mjs";

const FOLDER = join(ROOT, "docs/screens");
const BYTES_MAX = 150 * 1024;
const SLOW = { latency: 8000, jitter: 0 }; // a plan is to be seen while it is made
const WIDTHS = { 1440: 900, 390: 844 };
const large = [];
const only = process.argv[2] ?? "";
const operators = only.startsWith("admin-");

async function shoot(page, name) {
    if (!name.startsWith(only)) return;
    await page.mouse.move(0, 0); // nothing is pointed at
    await page.waitForTimeout(350); // what fades in
    const path = join(FOLDER, `${name}.png`);
    await page.screenshot({ path, animations: "disabled" });
    execFileSync("pngquant", ["--force", "--ext", ".png", "--speed", "1", "--nofs", "128", path]);
    if (statSync(path).size > BYTES_MAX) large.push(path);
}

async function runTour(page, tag, runs) {
    await page.goto("/");
    await page.waitForSelector("#name");
    await shoot(page, `login-${tag}`);
    await login(page, "demo");
    await page.locator(`dl:not(.stale) ${at("cost")}`).waitFor();
    await shoot(page, `home-${tag}`);
    await page.goto(`/#/runs/${runs.paused}`);
    await page.waitForSelector(at("finished"));
    await page.locator("[data-row]").first().waitFor();
    await shoot(page, `run-paused-${tag}`);
    await page.goto(`/#/runs/${runs.done}`);
    await page.locator("[data-row]").nth(2).click();
    await page.waitForSelector(at("abstract"));
    await shoot(page, `run-${tag}`);
    await page.click(at("close-paper"));
    await page.click(at("tab-charts"));
    await page.locator(".plot svg").nth(1).waitFor();
    await page.waitForTimeout(400);
    await shoot(page, `charts-${tag}`);
    await page.goto(`/#/runs/${runs.distilled}`);
    await page.click(at("tab-flow"));
    await page.locator(".drawing g").nth(5).waitFor();
    await shoot(page, `flow-${tag}`);
    await page.goto("/#/account");
    await page.locator("table tbody tr").first().waitFor();
    await shoot(page, `account-${tag}`);
}

/* By the API: a plan of each kind, of which the first days are past. Their ids. */
async function makePlans(page) {
    const start_date = new Date(Date.now() - 86400000).toISOString().slice(0, 10);
    const made = {};
    for (const [kind, more] of [
        ["training", { goals: "run ten kilometres", equipment: "dumbbells" }],
        ["nutrition", { goals: "more protein", diet: "vegetarian" }],
    ])
        made[kind] = await page.evaluate(
            async (body) => {
                const headers = { "Content-Type": "application/json" };
                const reply = await fetch("/api/plans", {
                    method: "POST",
                    headers,
                    body: JSON.stringify(body),
                });
                const { task_id } = await reply.json();
                for (;;) {
                    const task = await (await fetch(`/api/generation/${task_id}`)).json();
                    if (task.plan_id) return task.plan_id;
                    await new Promise((done) => setTimeout(done, 300));
                }
            },
            { kind, variables: { ...more, weeks: 4, start_date } },
        );
    return { ...made, date: start_date };
}

async function planTour(page, tag, plans) {
    await page.goto("/#/plans/new");
    await page.fill("#variable-goals", "run ten kilometres in spring");
    await page.locator(at("limit")).first().waitFor();
    await shoot(page, `plan-new-${tag}`);
    await page.click(at("make-plan"));
    await page.waitForFunction(
        () => Number(document.querySelector("[role=progressbar]")?.ariaValueNow) >= 5,
    );
    await page.locator(".toast.good button").click();
    await shoot(page, `plans-${tag}`);
    await page.click(at("cancel-task"));
    await page.locator(".toast.good button").click();
    await page.goto(`/#/plans/${plans.training}?week=1`);
    await page.locator(".week li").nth(6).waitFor();
    await shoot(page, `plan-week-${tag}`);
    await page.goto(`/#/plans/${plans.nutrition}?day=${plans.date}`);
    await page.locator(at("food")).first().waitFor();
    await shoot(page, `plan-day-${tag}`);
    await page.goto(`/#/plans/${plans.training}?day=${plans.date}`);
    await page.click(at("edit-day"));
    await page.waitForSelector(at("editor"));
    await shoot(page, `plan-edit-${tag}`);
}

/* Trials as the simulated AI can read them; the second says two things of its dose. */
const TRIALS = [
    ["Larsen 2019", 214, "81.5", "2017-03-01", "Denmark, Norway and Sweden", ""],
    ["Okafor 2020", 96, "75", "2018-09-12", "Nigeria", "The dose was 100 mg."],
    ["Li 2021", 1204, "100", "2019-01-05", "China", ""],
    ["Garcia 2021", 388, "162.5", "2018-11-20", "", ""],
    ["Smith 2022", 57, "81.5", "2020-02", "United Kingdom", ""],
    ["Sato 2023", 640, "300", "2021-06-30", "Japan, Korea", ""],
];
const REST = "Aspirin was taken with water each morning; pain was noted in a diary. ".repeat(45);
const trial = ([name, size, dose, began, countries, more]) =>
    `${name}: aspirin against headache\n\nMethods\n\nSample size: ${size}. The dose was ` +
    `${dose} mg. Randomised: yes. Began: ${began}.` +
    (countries ? ` Countries: ${countries}.` : "") +
    ` Primary endpoint was freedom from pain after two hours.\n\nResults\n\n` +
    `${more ? REST : REST.slice(0, 600)}\n\nDiscussion\n\n${more}\n`;
const TRIAL_FIELDS = [
    { name: "Sample size", type: "integer", required: true, instruction: "Over all arms." },
    { name: "Dose", type: "number", unit: "mg", instruction: "A single dose." },
    { name: "Randomised", type: "boolean" },
    { name: "Began", type: "date", instruction: "When the first participant was enrolled." },
    { name: "Countries", type: "list", of: "text" },
    { name: "Primary endpoint", type: "text", required: true },
];

/* By the API: a template, documents, a task that has ended with an error and an edit. Its id. */
async function makeExtraction(page) {
    const call = async (method, path, data, type = "application/json") => {
        const headers = { "Content-Type": type, Origin: new URL(page.url()).origin };
        const reply = await page.request.fetch(`/api/${path}`, { method, data, headers });
        if (!reply.ok()) throw new Error(`${method} ${path}: ${await reply.text()}`);
        return reply.json();
    };
    const files = TRIALS.map((x) => [`${x[0]}.txt`, trial(x)]);
    files.push(["Scan 1998.pdf", "%PDF-1.4\nno more"]);
    const document_ids = [];
    for (const [name, text] of files) {
        const path = `documents?name=${encodeURIComponent(name)}`;
        const kind = "application/octet-stream";
        document_ids.push((await call("POST", path, Buffer.from(text), kind)).document_id);
    }
    const { template_id } = await call("POST", "templates", {
        name: "Aspirin trials",
        fields: TRIAL_FIELDS,
    });
    const { taskId: id } = await call("POST", "tasks", {
        template_id,
        document_ids,
        name: "Aspirin against headache",
        request_id: "screens",
    });
    while ((await call("GET", `tasks/${id}/status`)).status === "processing")
        await page.waitForTimeout(500);
    await call("PUT", `tasks/${id}/rows/3`, { version: 1, field: "Sample size", value: 1240 });
    return { id, template: template_id };
}

async function extractTour(page, tag, made) {
    await page.goto("/#/extract");
    await page.locator(at("extraction")).first().waitFor();
    await shoot(page, `extractions-${tag}`);
    await page.goto("/#/extract/templates");
    await page.locator(at("template")).nth(4).waitFor();
    await shoot(page, `extract-templates-${tag}`);
    await page.goto(`/#/extract/templates/${made.template}`);
    await page.waitForSelector(at("field-1-name"));
    await shoot(page, `extract-template-${tag}`);
    await page.goto("/#/extract/documents");
    await page.locator(at("document")).first().waitFor();
    await shoot(page, `extract-documents-${tag}`);
    await page.goto("/#/extract/new?template=trial");
    await page.check(at("all-documents"));
    await page.waitForSelector(`${at("start-extraction")}:not([disabled])`);
    await shoot(page, `extract-new-${tag}`);
    await page.goto(`/#/extract/tasks/${made.id}`);
    await page.locator(".extract-table .value").first().waitFor();
    await shoot(page, `extract-table-${tag}`);
    await page.goto(`/#/extract/tasks/${made.id}?row=2&field=Dose`);
    await page.locator(at("quote-mark")).first().waitFor();
    await shoot(page, `extract-cell-${tag}`);
}

/* A run in motion, which goes on behind the operators' first picture. */
async function running(page, tag, run) {
    await page.goto(`/#/runs/${run}`);
    await page.click(at("resume"));
    await state(page, "RUNNING");
    await page.click(at("filter-all"));
    await page.waitForTimeout(6000); // the rate is that of some seconds
    await shoot(page, `run-running-${tag}`);
}

/* Those after the overview and the users. */
const TABS = ["keys", "queues", "index", "templates", "switches", "admins", "audit", "account"];
/* What a tab has when it is loaded, unless that is a table. */
const SEEN = { index: at("journal"), switches: "li .switch", account: at("session") };

async function adminTour(page, tag, pause) {
    await page.goto("/admin/login.html");
    await page.waitForSelector("#name");
    await shoot(page, `admin-login-${tag}`);
    await adminLogin(page, "root");
    await page.waitForTimeout(2500);
    await shoot(page, `admin-overview-${tag}`);
    await pause();
    await page.click(at("nav-users"));
    await page.click(at("user-demo"));
    await page.waitForSelector(at("recharge"));
    await shoot(page, `admin-users-${tag}`);
    for (const tab of TABS) {
        await page.click(at(`nav-${tab}`));
        await page
            .locator(SEEN[tab] ?? "table tbody tr")
            .first()
            .waitFor();
        await shoot(page, `admin-${tab}-${tag}`);
    }
    await page.click(at("nav-templates"));
    await page.click(at("edit-template-1"));
    await page.fill("#value-goals", "run ten kilometres");
    await page.locator(at("tokens"), { hasText: /\d/ }).waitFor();
    await page.evaluate(() => window.scrollTo(0, 0));
    await shoot(page, `admin-template-${tag}`);
}

async function poolTour(page, tag) {
    await adminLogin(page, "root");
    await page.click(at("nav-pools"));
    await page.locator(".groups li").first().waitFor();
    await shoot(page, `admin-pools-${tag}`);
}

/* Chosen, asked, and seen on its page. */
async function submit(page, fields, question) {
    await page.goto("/#/");
    await page.waitForSelector(".tags .chip");
    await page.evaluate(() =>
        document
            .querySelectorAll(".tags .chip[aria-pressed=true], .picker .head .link")
            .forEach((x) => x.click()),
    );
    if (fields === "all") {
        await page.locator(".picker .head input[type=checkbox]").check();
        await page.waitForSelector(`dl:not(.stale) ${at("cost")}`);
    } else await choose(page, { field: fields });
    await start(page, question);
    return page.url().split("/").pop();
}

async function pauseAt(page, papers) {
    await page.waitForFunction(
        (n) =>
            Number(
                document
                    .querySelector('[data-test="finished"]')
                    .textContent.match(/[\d,]+/)[0]
                    .replace(",", ""),
            ) >= n,
        papers,
    );
    await page.click(at("pause"));
    await state(page, "PAUSED");
}

/* Groups: one that is full, one in use, one that runs out. */
async function fillPools(m, token) {
    const texts = join(m.data, "texts.jsonl");
    for (const [type, group, items, pops] of [
        ["titles", 7, 18000, 60],
        ["titles", 12, 640, 0],
        ["contents", 7, 2600, 21],
    ]) {
        writeFileSync(texts, Array.from({ length: items }, (_, i) => `"text ${i}"\n`).join(""));
        m.cli("pool", "import", type, String(group), texts);
        for (let i = 0; i < pops; i++)
            await fetch(`${m.url}/api/pools/${type}/${group}/pop`, {
                method: "POST",
                headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
                body: JSON.stringify({ count: 100 }),
            });
    }
}

const POST = `Nitrate leaves a soil by two ways: plants take it up, and bacteria breathe it.
**Iron** decides which of them is faster.

## What was measured

| Soil | Iron, g/kg | Nitrate after 10 days |
|------|-----------:|----------------------:|
| loam | 12.4 | 38 % |
| clay | 31.0 | 11 % |

1. Samples of the same field, *not dried*.
2. Kept at 20 °C in the dark.

> With little iron the nitrate stays for weeks.

See also [the data](https://example.org/soils).
`;

/* The id of the last one. */
async function makePosts(page) {
    await send(page, "POST", "posts", { title: "Reading list, autumn", content: "To be read." });
    await send(page, "POST", "posts", {
        title: "光催化分解水的笔记",
        content: "可见光下的**量子效率**。",
        hide: true,
    });
    const title = "Iron in soils, and what it does to nitrate";
    return (await send(page, "POST", "posts", { title, content: POST })).post.id;
}

async function postTour(page, tag, id) {
    await page.goto("/#/posts");
    await page.locator(at("post")).nth(2).waitFor();
    await page.waitForFunction(() => !document.querySelector("[data-status=pending]"));
    await shoot(page, `posts-${tag}`);
    await page.goto(`/#/posts/${id}`);
    await page.waitForSelector(at("post-content"));
    await shoot(page, `post-${tag}`);
    await page.goto(`/#/posts/${id}/edit`);
    await page.waitForSelector("#post-content");
    await shoot(page, `post-edit-${tag}`);
}

/* What is asked in either language finds the same. */
async function searchTour(page, tag) {
    await page.goto("/#/search?q=photocatalysts+for+water+splitting+under+visible+light");
    await page.locator(at("hit")).nth(3).waitFor();
    if (await page.locator(at("search-lack")).count()) throw new Error("a search lacks something");
    await shoot(page, `search-${tag}`);
    await page.click(at("kind-paper"));
    await page.waitForURL(/kind=paper/);
    await page.locator(at("open-hit")).first().click();
    await page.locator(at("abstract"), { hasText: /.{40}/ }).waitFor();
    await shoot(page, `search-paper-${tag}`);
    await page.click(at("close-paper"));
    await page.click(at("screen-these"));
    await page.fill("#nearest-n", "200");
    await page.locator(`dl:not(.stale) ${at("papers")}`, { hasText: /^200$/ }).waitFor();
    await shoot(page, `search-screen-${tag}`);
}

/* Something for the audit log. */
async function adminDeeds(page) {
    await adminLogin(page, "root");
    await page.evaluate(async () => {
        const send = (path, body) =>
            fetch(`/api/admin/${path}`, {
                method: "POST",
                headers: { "Content-Type": "application/json" },
                body: JSON.stringify(body),
            });
        await send("users/2/recharge", {
            amount: "600.00",
            request_id: "first",
            reason: "invoice 2026-118",
        });
        await send("users/3/permission", { permission: 25, reason: "deadline" });
        await send("users/3/deduct", {
            amount: "9000.00",
            request_id: "second",
            reason: "typed by mistake",
        });
        await send("users/4/ban", { banned: true, reason: "shared password" });
        await send("prompts/reload", {});
        const { journals } = await (await fetch("/api/admin/embedding/journals?limit=7")).json();
        await send("embedding/papers", { journals: journals.map((x) => x.journal) });
    });
}

/* What is made by the API before the pictures are taken. */
async function prepareOthers(browser, m) {
    m.user("demo", "100000.00", 20);
    const context = await person(browser, m.url);
    const page = await context.newPage();
    await login(page, "demo");
    const plans = await makePlans(page);
    const extraction = await makeExtraction(page);
    await embeddingKey(m, browser);
    const posts = await makePosts(page);
    await context.close();
    return { plans, extraction, posts };
}

async function prepare(browser, m) {
    for (const [name, balance] of [
        ["chen-yu", "2400.00"],
        ["garcia", "310.50"],
        ["研究者", "12000.00"],
    ])
        m.user(name, balance);
    m.cli("admin", "add", "root", "--super");
    const context = await person(browser, m.url);
    const page = await context.newPage();
    const token = m.cli("token", "add", "demo", "site", "--scope", "pool").trim();
    if (operators) {
        await adminDeeds(page);
        await context.close();
        return { token };
    }
    await login(page, "demo");
    const runs = {
        token,
        done: await submit(
            page,
            0,
            "Does the paper report a randomised controlled trial in children or adolescents?",
        ),
    };
    await state(page, "DONE");
    await page.click(at("distill"));
    await page.locator(at("distill-estimate")).waitFor();
    await page.fill("#distill-question", "Were groups compared?");
    await page.click(at("distill-start"));
    await page.waitForURL((url) => !url.hash.includes(runs.done));
    await state(page, "DONE");
    runs.distilled = page.url().split("/").pop();
    runs.moving = await submit(
        page,
        "all",
        "Does it report long-term exposure to fine particulate matter?",
    );
    await pauseAt(page, 900);
    await m.ai({ latency: 700, jitter: 300 }); // or it is done before anybody can pause it
    runs.paused = await submit(
        page,
        2,
        "Does it study photocatalysts for water splitting under visible light?",
    );
    await pauseAt(page, 160);
    const storage = await page.evaluate(() => ({ ...localStorage }));
    runs.key = Object.keys(storage).find((k) => k.startsWith("millrace.draft"));
    runs.draft = JSON.stringify({
        ...JSON.parse(storage[runs.key]),
        question: "Does it study photocatalysts for water splitting under visible light?",
    });
    await adminDeeds(await context.newPage());
    await context.close();
    return runs;
}

async function everyone(browser, m, visit) {
    for (const [locale, suffix, themes] of [
        ["en-US", "", ["light", "dark"]],
        ["zh-CN", "-zh", ["light"]],
    ])
        for (const [width, height] of Object.entries(WIDTHS))
            for (const theme of themes) {
                const context = await person(browser, m.url, {
                    locale,
                    colorScheme: theme,
                    viewport: { width: Number(width), height },
                });
                await visit(context, `${width}-${theme}${suffix}`);
                await context.close();
            }
}

async function screenings(browser, m) {
    const runs = await prepare(browser, m);
    await m.ai({ latency: 2000, jitter: 600 });
    await everyone(browser, m, async (context, tag) => {
        if (operators) return adminTour(await context.newPage(), tag, async () => {});
        await context.addInitScript(
            ([k, d]) => localStorage.getItem(k) ?? localStorage.setItem(k, d),
            [runs.key, runs.draft],
        );
        const page = await context.newPage();
        await runTour(page, tag, runs);
        await running(page, tag, runs.moving);
        await adminTour(await context.newPage(), tag, async () => {
            await page.click(at("pause"));
            await state(page, "PAUSED");
        });
    });
    /* Last: a group that runs out is an alert on every overview. */
    await fillPools(m, runs.token);
    await everyone(browser, m, async (context, tag) => poolTour(await context.newPage(), tag));
}

mkdirSync(FOLDER, { recursive: true });
const m = await Millrace.start({ latency: 100, jitter: 60 });
const browser = await launch();
try {
    const { plans, extraction, posts } = await prepareOthers(browser, m);
    const one = /^(plan|extract|post|search)/.exec(only)?.[0];
    const tours = {
        extract: (page, tag) => extractTour(page, tag, extraction),
        plan: (page, tag) => planTour(page, tag, plans),
        post: (page, tag) => postTour(page, tag, posts),
        search: async (page, tag) => {
            await m.ai({}); // or it is away for searches
            await searchTour(page, tag);
            await m.ai(SLOW);
        },
    };
    if (!one) await screenings(browser, m);
    if (!one || one === "search") m.cli("embed", "--all", "--wait");
    await m.ai(SLOW);
    if (!operators)
        await everyone(browser, m, async (context, tag) => {
            const page = await context.newPage();
            await login(page, "demo");
            for (const [name, tour] of Object.entries(tours))
                if (!one || one === name) await tour(page, tag);
        });
} finally {
    await browser.close();
    await m.stop();
}
if (large.length) {
    console.error("larger than they should be:", large.join(" "));
    process.exit(1);
}
