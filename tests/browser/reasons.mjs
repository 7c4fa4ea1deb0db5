// Why a run does not move, as people read it: the whole table with a made-up API, in both
// languages, and some of it on the real server.
import { adminLogin, at, choose, login, person, start } from "./flow.mjs";
import { clean, equal, ok, smoke, test } from "./tap.mjs";

const HOUR_MS = 3600000;
const since = new Date(Date.now() - HOUR_MS).toISOString();
const until = new Date(Date.now() + HOUR_MS).toISOString();
const QUEUED = { state: "QUEUED" };
const PAUSED = { state: "PAUSED" };
const key = (cause, more = {}) => ["no_key", { keys: cause === "none" ? 0 : 3, cause, ...more }];
const down = (cause) => ["service_down", { since, cause, words: "says no" }];

/* [code, facts], what is said in English, and in Chinese, and the rest of the run. */
const ROWS = [
    [["queued", { position: 3, of: 7, permission: 4 }], "Number 3 of 7", "第 3 位（共 7 个）", QUEUED],
    [
        ["queued", { position: 1, of: 1, others: 4, permission: 4 }],
        "your other screenings, which use all 4",
        "您的其他任务，它们占用了您账户的全部 4 个",
        QUEUED,
    ],
    [["rate_limit", { limit: 600 }], "limit of the AI service: 600", "限额：每分钟 600"],
    [["keys_resting", { keys: 3, until }], "asked us to wait until", "要求等待到"],
    [key("none"), "There is no key", "没有 AI 服务的密钥"],
    [key("refused"), "refuses all of our keys", "拒绝了我们的所有密钥"],
    [key("off"), "are switched off", "均已停用"],
    [key("capped"), "is used up. Please", "均已用尽，请联系"],
    [key("capped", { until }), "is used up until", "后自动继续"],
    [key("mixed"), "No key for the AI service can be used", "没有可用的密钥"],
    [down("dns"), "its name cannot be found", "找不到其域名"],
    [down("refused"), "it takes no connections", "它不接受连接"],
    [down("tls"), "no secure connection", "无法建立安全连接"],
    [down("timeout"), "does not answer in time", "没有及时应答"],
    [down("status_503"), "answers with error 503", "返回错误 503"],
    [down("unheard_of"), "its calls fail", "调用失败"],
    [["no_permission", { permission: 0 }], "may not have papers judged", "不能判断论文", QUEUED],
    [["new_runs_off", {}], "not being started", "不启动新的任务", QUEUED],
    [["drained", { nodes: 2 }], "No server takes work", "没有服务器接受任务"],
    [["repairing", { cause: "queue" }], "putting its records in order", "正在整理记录"],
    [["account_stopped", {}], "Your account is on hold", "您的账户已暂停使用"],
    [["funds", {}], "your balance ran out", "余额用尽", PAUSED],
    [["account", {}], "Paused because your account is on hold", "您的账户已暂停使用，任务已暂停", PAUSED],
    [["unrecorded", { words: "not JSON" }], "cannot be recorded", "结论无法记录", PAUSED],
    [["refused", { words: "no tokens" }], "requests: no tokens", "请求：no tokens", PAUSED],
];

const run = (number, [[reason_code, reason_facts], , , more = {}]) => ({
    success: true,
    query_id: `made-up-${number}`,
    state: "RUNNING",
    reason: "in English",
    reason_code,
    reason_facts,
    question: `Row ${number}?`,
    papers: 100,
    finished: 10,
    relevant: 2,
    failed: 0,
    not_judged: 0,
    withdrawn: 0,
    simulated: true,
    cost: "10.00",
    estimate: "40.00",
    reserved: "30.00",
    workers: 0,
    seconds_left_min: null,
    seconds_left_max: null,
    created_at: since,
    start_time: since,
    end_time: null,
    is_distillation: false,
    original_query_id: null,
    distillations: [],
    ...more,
});

/* The API of runs, made up; streams never say anything. */
async function makeUp(page, runs) {
    const json = (route, body) => route.fulfill({ json: body });
    await page.route("**/api/queries**", (route) => {
        const path = new URL(route.request().url()).pathname.split("/").slice(3);
        const one = runs.find((r) => r.query_id === path[0]);
        if (!path.length) return json(route, { success: true, queries: runs, next: null });
        if (path[1] === "events") return; // no answer
        if (path[1]) return json(route, { success: true, results: [], total: 0, next: null });
        return one ? json(route, one) : route.fulfill({ status: 404, json: {} });
    });
}

for (const [locale, column] of [
    ["en-US", 1],
    ["zh-CN", 2],
])
    smoke(`every reason has its sentence, ${locale}`, async ({ m, browser }) => {
        const name = locale === "en-US" ? "reader" : "reader2";
        m.user(name);
        const context = await person(browser, m.url, { locale });
        const page = await context.newPage();
        await login(page, name);
        const done = run(ROWS.length, [[null, null]]);
        const runs = ROWS.map((row, i) => run(i, row)).concat({
            ...done,
            state: "DONE",
            finished: 100,
            relevant: 0,
            failed: 56,
        });
        await makeUp(page, runs);
        for (const [i, row] of ROWS.entries()) {
            await page.goto(`/#/runs/made-up-${i}`);
            const said = page.locator(at("reason"), { hasText: row[column] });
            await said.waitFor({ timeout: 5000 }).catch(() => {});
            const text = (await page.textContent(at("reason")).catch(() => "")) ?? "";
            ok(
                text.includes(row[column]) && !/[{}]|undefined|Invalid/.test(text),
                `${row[0][0]} on the page of its run, ${locale}`,
                text,
            );
        }
        await page.goto(`/#/runs/made-up-${ROWS.length}`);
        await page.locator(at("state")).waitFor();
        const words = { "en-US": "Done, 56 failed", "zh-CN": "已完成，56 篇失败" }[locale];
        const past = await page.textContent(".history");
        const missing = ROWS.filter((row) => !past.includes(row[column])).map((row) => row[1]);
        equal(missing, [], `all of them in the history, ${locale}`);
        ok(past.includes(words), `"${words}" in the history`, past);
        ok(
            past.includes({ "en-US": "Waiting", "zh-CN": "等待中" }[locale]),
            "what stands is not called running",
        );
        equal(
            await page.evaluate(() =>
                [...document.querySelectorAll(".past, .history a")].filter(
                    (x) => x.scrollWidth > x.clientWidth,
                ).length,
            ),
            0,
            `nothing of the history is cut off, ${locale}`,
        );
        const body = page.locator("#tab-body");
        await page.click(at("filter-relevant"));
        await body.getByText(locale === "en-US" ? "56 papers failed" : "有 56 篇失败").waitFor();
        ok(
            !/wider question|放宽问题/.test(await body.textContent()),
            "no wider question is advised when papers failed",
        );
        equal(context.wrong, [], "no error in the console");
        await context.close();
    });

async function turnKeys(page, active) {
    const keys = await (await page.request.get("/api/admin/keys")).json();
    for (const k of keys.keys) {
        const reply = await page.request.post(`/api/admin/keys/${k.id}`, {
            data: { active },
            headers: { Origin: new URL(page.url()).origin },
        });
        if (!reply.ok()) throw new Error(await reply.text());
    }
}

test("a run without a key, and the overview", async ({ m, browser }) => {
    m.user("waiter", "100000.00", 1);
    m.cli("admin", "add", "keeper", "--super");
    const theirs = await person(browser, m.url);
    const page = await theirs.newPage();
    await login(page, "waiter");
    await choose(page);
    await start(page, "Does it wait for a key?");
    const ours = await person(browser, m.url);
    const board = await ours.newPage();
    await adminLogin(board, "keeper");
    await board.locator(at("well"), { hasText: "All is well." }).waitFor();
    ok(true, "all is well");
    await turnKeys(board, false);
    await page.locator(at("reason"), { hasText: "are switched off" }).waitFor({ timeout: 4000 });
    ok(true, "the page of the run says why it stands, by itself");
    const head = await page.locator(".progress .line").textContent();
    ok(!/left|papers\/s/.test(head), "and tells no rate and no time left", head);
    const standing = board.locator(at("standing"));
    await standing.getByText("all are switched off").waitFor({ timeout: 4000 });
    equal(await board.locator(at("well")).count(), 0, "and the overview does not say all is well");
    await clean(page, "a run that stands");
    await clean(board, "an overview that is not well");
    await turnKeys(board, true);
    await page.locator(at("reason")).waitFor({ state: "detached", timeout: 4000 });
    await board.locator(at("well")).waitFor({ timeout: 4000 });
    ok(true, "with keys it goes on, and all is well again");
    equal([...theirs.wrong, ...ours.wrong], [], "no error in the console");
});
