// Plans on the pages: made, watched, read, changed, also when another one was faster, and what is
// said when something is missing.
import { adminLogin, at, open, refusal, send } from "./flow.mjs";
import { clean, equal, ok, test } from "./tap.mjs";

const SLOW_MS = 60000;
const SOME_DAY = "2031-03-03";

/* By the API, and waited for: its id. */
async function make(page, kind, weeks = 1) {
    const variables = { goals: "to be tested", weeks, start_date: SOME_DAY };
    const { task_id } = await send(page, "POST", "plans", { kind, variables });
    for (const end = Date.now() + SLOW_MS; Date.now() < end; await page.waitForTimeout(300)) {
        const task = await send(page, "GET", `generation/${task_id}`);
        if (task.status !== "generating") return task.plan_id;
    }
    throw new Error(`${task_id} is not made`);
}

const field = (name) => `#day-field-${name}`;

test("plans: one is made, and watched", async ({ m, browser }) => {
    const { context, page } = await open(m, browser, "planner");
    await page.click("nav >> text=Plans");
    await page.locator("text=No plans yet").waitFor();
    await clean(page, "no plans");
    await page.click(at("new-plan"));
    await page.waitForSelector("#variable-goals");
    equal((await page.textContent(at("plan-price"))).trim(), "1.00", "the price comes first");
    equal(await page.locator(at("limit")).count(), 3, "and what may be started yet");
    await page.click(at("kind-nutrition"));
    await page.waitForSelector("#variable-daily_calories");
    await page.click(at("kind-training"));
    await page.fill("#variable-weeks", "13");
    await page.click(at("make-plan"));
    await page.locator("#variable-weeks-wrong", { hasText: "from 1 to 12" }).waitFor();
    await page.locator("#variable-goals-wrong").waitFor();
    ok(true, "what is wrong is said at its field");
    await clean(page, "the form of a plan");
    await page.fill("#variable-weeks", "2");
    await page.fill("#variable-goals", "run ten kilometres");
    await page.fill("#variable-start_date", SOME_DAY);
    await page.reload();
    await page.waitForSelector("#variable-goals");
    equal(await page.inputValue("#variable-goals"), "run ten kilometres", "a reload loses nothing");
    await m.ai({ latency: 2500 });
    await page.dblclick(at("make-plan"));
    const bar = page.locator(`${at("task-generating")} [role=progressbar]`);
    await bar.waitFor();
    equal((await send(page, "GET", "generation")).tasks.length, 1, "two clicks make one plan");
    await page.waitForFunction(
        () => Number(document.querySelector("[role=progressbar]")?.ariaValueNow) >= 5,
    );
    ok(true, "it is seen to be asked");
    await clean(page, "a plan that is made");
    const made = page.locator(at("task-completed"));
    await made.waitFor({ timeout: SLOW_MS });
    equal(await page.locator(at("plan")).count(), 1, "and is among the plans");
    ok((await page.textContent(at("plan"))).includes("Active"), "the first one is active");
    await m.ai({});
    await page.click(at("task-plan"));
    await page.locator(".week li").nth(6).waitFor();
    equal((await page.textContent(at("where"))).trim(), "Week 1 of 2", "it is a calendar");
    await clean(page, "a week");
    await page.focus(at("after"));
    await page.keyboard.press("Enter");
    await page.waitForURL(/week=2/);
    await page.focus(at("day-2031-03-10"));
    await page.keyboard.press("Enter");
    await page.waitForURL(/day=2031-03-10/);
    await page.locator(at("exercise")).first().waitFor();
    equal((await page.textContent(at("where"))).trim(), "Week 2 of 2", "by keyboard, to a day");
    await clean(page, "a day of training");
    await page.reload();
    await page.locator(at("exercise")).first().waitFor();
    ok(true, "whose address shows it again");
    await page.click("text=What it was made from");
    await page.locator("dd", { hasText: "run ten kilometres" }).waitFor();
    equal((await send(page, "GET", "me")).balance, "99.00", "it was paid once");
    equal(context.wrong, [], "no error in the console");
});

test("plans: a day is changed, also elsewhere", async ({ m, browser }) => {
    const { context, page } = await open(m, browser, "changer");
    const id = await make(page, "training");
    const day = `plans/${id}/days/${SOME_DAY}`;
    await page.goto(`/#/plans/${id}?day=${SOME_DAY}`);
    await page.click(at("edit-day"));
    await page.fill(field("duration"), "long");
    await page.locator(at("remove-item")).first().click();
    await page.click(at("add-exercises"));
    await page.keyboard.type("Rope skipping");
    await clean(page, "the fields of a day");
    await page.click(at("save-day"));
    await page.locator(`${field("duration")}-wrong`).waitFor();
    equal(
        await page.evaluate(() => document.activeElement.id),
        "day-field-duration",
        "the field that is wrong says so, and is gone to",
    );
    await page.fill(field("duration"), "45");
    await page.click(at("save-day"));
    await page.locator(at("exercise"), { hasText: "Rope skipping" }).waitFor();
    ok((await page.textContent("section.sheet")).includes("45 min"), "a day is changed");
    const saved = await send(page, "GET", day);
    equal([saved.day.duration, saved.version], [45, 2], "and stored");

    await page.click(at("edit-day"));
    await page.fill(field("focus_area"), "mine");
    const theirs = { ...saved.day, focus_area: "theirs" };
    await send(page, "PUT", day, { version: 2, day: theirs });
    await page.click(at("save-day"));
    const told = page.locator(at("changed-elsewhere"));
    await told.waitFor();
    ok((await told.textContent()).includes("theirs"), "a change from elsewhere is shown");
    equal(await page.inputValue(field("focus_area")), "mine", "beside what was typed");
    equal((await send(page, "GET", day)).day.focus_area, "theirs", "and not written over");
    await clean(page, "two changes of a day");
    await page.click(at("take-newer"));
    equal(await page.inputValue(field("focus_area")), "theirs", "the newer one can be taken");
    await page.click(at("take-mine"));
    equal(await page.inputValue(field("focus_area")), "mine", "and what was typed be put back");
    await page.reload();
    await page.waitForSelector(at("editor"));
    equal(await page.inputValue(field("focus_area")), "mine", "a reload loses nothing");
    await page.click(at("save-day"));
    await page.locator(at("exercise")).first().waitFor();
    equal((await send(page, "GET", day)).day.focus_area, "mine", "then it is saved");

    await page.click(at("edit-day"));
    await page.check(at("rest"));
    await send(page, "PUT", day, { version: 4, day: theirs });
    await page.click(at("save-day"));
    await page.click(at("save-mine"));
    await page.locator("text=No exercises on this day.").waitFor();
    equal((await send(page, "GET", day)).day.day_type, "rest", "or saved over the newer one");
    equal(context.wrong, [], "no error in the console");
});

test("plans: meals add up; another one becomes active; one is deleted", async ({ m, browser }) => {
    const { context, page } = await open(m, browser, "eater");
    const first = await make(page, "nutrition");
    const id = await make(page, "nutrition");
    await page.goto(`/#/plans/${id}`);
    await page.locator(".week li").nth(6).waitFor();
    await clean(page, "a week of meals");
    await page.click(at(`day-${SOME_DAY}`));
    await page.locator(at("food")).first().waitFor();
    await clean(page, "a day of meals");
    await page.click(at("edit-day"));
    await page.click(at("add-meals.snacks"));
    await page.keyboard.type("Cake");
    await page.keyboard.press("Tab");
    await page.keyboard.type("900");
    await page.click(at("save-day"));
    await page.locator(`${field("target_calories")}-wrong`).waitFor();
    ok(true, "meals that miss the target are not sent");
    await page.click("text=Use this as the target");
    await page.click(at("save-day"));
    await page.locator(at("food"), { hasText: "Cake" }).waitFor();
    ok(true, "with another target they are");
    await page.click(at("activate"));
    await page.waitForSelector(at("plan-active"));
    const active = await send(page, "GET", "plans/active?kind=nutrition");
    equal(active.plan.plan_id, id, "another plan is the active one");
    await page.click(at("delete-plan"));
    await page.waitForSelector(at("sure"));
    await page.keyboard.press("Escape");
    await page.waitForSelector(at("sure"), { state: "detached" });
    equal((await send(page, "GET", "plans")).plans.length, 2, "Escape deletes nothing");
    await page.click(at("delete-plan"));
    await page.click(at("sure"));
    await page.waitForURL(/#\/plans$/);
    await page.locator(at("plan")).waitFor();
    equal((await send(page, "GET", "plans")).plans[0].plan_id, first, "a plan is deleted");
    await page.goto(`/#/plans/${id}`);
    await page.locator("text=There is no such plan").waitFor();
    ok(true, "and its address says so");
    equal(context.wrong, [], "no error in the console");
});

for (const [locale, plan, taken] of [
    ["en-US", "Plan", "Deduction"],
    ["zh-CN", "计划", "扣除"],
])
    test(`plans: the ledger says what one has cost, ${locale}`, async ({ m, browser }) => {
        const name = `payer${locale.slice(0, 2)}`;
        const { context, page } = await open(m, browser, name, { locale });
        await make(page, "training");
        m.cli("user", "deduct", name, "0.30", "--request", "plan:by-hand");
        m.cli("admin", "add", `of-${name}`);
        const admin = await context.newPage();
        await adminLogin(admin, `of-${name}`);
        await admin.click(at("nav-users"));
        await admin.fill(".find input", name);
        await admin.click(at(`user-${name}`));
        await page.goto("/#/account");
        for (const [view, of] of [
            [page, "the user"],
            [admin, "admins"],
        ]) {
            const rows = view.locator(at("ledger-entry"));
            await rows.nth(2).waitFor();
            const said = await rows.allTextContents();
            ok(said[0].includes(taken) && said[0].includes("0.30"), `${of}: a deduction`, said);
            ok(said[1].includes(plan) && said[1].includes("1.00"), `${of}: a plan`, said);
            ok(!said[1].includes(taken), `${of}: which is not called a deduction`, said);
        }
        equal(context.wrong, [], "no error in the console");
    });

test("plans: one waits for the AI, and is cancelled", async ({ m, browser }) => {
    const { context, page } = await open(m, browser, "waiting");
    await m.endAi();
    try {
        await send(page, "POST", "plans", { kind: "training", variables: { goals: "wait" } });
        await page.goto("/#/plans");
        const story = page.locator(at("task-story"), { hasText: "Waits for the AI service" });
        await story.waitFor({ timeout: SLOW_MS });
        ok(true, "it says what it waits for");
        await clean(page, "a plan that waits");
        await page.click(at("cancel-task"));
        await page.locator(at("task-generating")).waitFor({ state: "detached" });
        equal((await send(page, "GET", "generation")).tasks, [], "it is cancelled");
        await page.locator(at("bar-free")).waitFor({ state: "detached" });
        equal((await send(page, "GET", "me")).balance, "100.00", "and costs nothing");
    } finally {
        await m.ai({});
    }
    equal(context.wrong, [], "no error in the console");
});

/* Answers to a submitted plan, and what is said in English and Chinese. */
const REFUSALS = [
    [refusal(402, "funds"), "less than the price", "低于价格"],
    [
        refusal(429, "rate", "no", { "Retry-After": "7200" }),
        "as many plans as you may. Try again in 2 h",
        "已达上限，请在 2 小时",
    ],
    [refusal(429, "rate"), "Too many of your plans", "正在生成的计划过多"],
    [refusal(404, "not_found"), "does not exist any more", "此模板已不存在"],
    [refusal(503, "unavailable"), "cannot do this right now", "暂时无法处理"],
];
/* Tasks by status, reason and message, and what is said of each. A reason without words here is of
 * a later server. */
const DOWN = "the AI service cuts the connection";
const UNUSABLE = "the AI gave no plan that can be used: no days";
const STORIES = [
    ["generating", "service_down", DOWN, "does not work at", "目前无法使用"],
    ["generating", "no_key", "x", "no key for", "没有 AI 服务的密钥"],
    ["generating", "no_money", "x", "after a recharge", "充值后自动继续"],
    ["generating", "account_stopped", "x", "Your account is stopped", "账户已暂停"],
    ["generating", "no_permission", "x", "may not have the AI work", "目前不能使用 AI"],
    ["generating", "permission_used", "x", "your other screenings", "其他筛选和计划"],
    ["generating", "too_slow", "x", "asked again automatically", "自动重新请求"],
    ["generating", "other", "odd", "The server says: odd", "服务器提示：odd"],
    ["generating", "of_tomorrow", "new", "The server says: new", "服务器提示：new"],
    ["failed", "service_down", DOWN, "did not work (the AI", "AI 服务无法使用（the AI"],
    ["failed", "refused", "bad model", "refused what it was asked (bad", "拒绝了请求（bad"],
    ["failed", "bad_answer", UNUSABLE, "The last mistake: no days", "错误：no days"],
    ["failed", "too_slow", "x", "took too long each time", "每次都用时过长"],
    ["failed", "too_old", "it was not made", "within 24 hours", "24 小时内"],
    ["failed", "node_lost", "x", "the server stopped at each try", "服务器每次都中断了"],
    ["failed", "other", "ill", "The server says: ill", "服务器提示：ill"],
    ["failed", null, null, "nothing was charged. Try again", "没有扣费。请重试"],
];
const story = ([status, reason_code, message], i) => ({
    success: true,
    task_id: `1-${i}`,
    kind: "training",
    status,
    progress: 10,
    message,
    reason_code,
    created_at: new Date().toISOString(),
});

for (const [locale, column] of [
    ["en-US", 0],
    ["zh-CN", 1],
])
    test(`plans: what is said when they cannot be made, ${locale}`, async ({ m, browser }) => {
        const { context, page } = await open(m, browser, `refused${column}`, { locale }, "0.50");
        await page.goto("/#/plans/new");
        await page.waitForSelector("#variable-goals");
        await page.waitForSelector(at("plan-short"));
        ok(await page.isDisabled(at("make-plan")), `without money nothing is sent, ${locale}`);
        await page.route("**/api/me", async (route) => {
            const reply = await route.fetch();
            await route.fulfill({ json: { ...(await reply.json()), free: "50.00" } });
        });
        let answer;
        await page.route("**/api/plans", (route) => route.fulfill(answer));
        await page.fill("#variable-goals", "x");
        await page.reload();
        await page.waitForSelector("#variable-goals");
        for (const row of REFUSALS) {
            answer = row[0];
            await page.click(at("make-plan"));
            const said = page.locator(at("plan-refused"), { hasText: row[1 + column] });
            await said.waitFor({ timeout: 8000 }).catch(() => {});
            equal(await said.count(), 1, `${row[0].status}: ${row[1 + column]}`);
        }
        await page.route("**/api/generation**", (route) => {
            const id = new URL(route.request().url()).pathname.split("/")[3];
            const all = STORIES.map(story);
            const tasks = all.filter((x) => x.status === "generating");
            return route.fulfill({
                json: id ? all.find((x) => x.task_id === id) : { success: true, tasks },
            });
        });
        await page.evaluate((ids) => {
            const name = Object.keys(localStorage).find((k) => k.includes("plan-draft"));
            localStorage.setItem(name.replace("draft", "tasks"), JSON.stringify(ids));
        }, STORIES.map((_, i) => `1-${i}`));
        await page.goto("/#/plans");
        const failed = STORIES.filter((x) => x[0] === "failed").length;
        await page.locator(at("task-failed")).nth(failed - 1).waitFor();
        const said = await page.locator(at("task-story")).allTextContents();
        for (const row of STORIES) {
            const want = row[3 + column];
            ok(said.some((x) => x.includes(want)), `${row[1]}: ${want}`, said);
        }
        ok(!/[{}]|undefined|Invalid/.test(said.join()), `nothing is left out, ${locale}`, said);
        await page.unroute("**/api/plans");
        await page.route("**/api/plans?**", (route) =>
            route.fulfill(refusal(503, "unavailable", "MySQL does not answer")),
        );
        await page.reload();
        await page.locator(at("plans-wrong"), { hasText: REFUSALS[4][1 + column] }).waitFor();
        ok(true, `the list is not there, and it says so, ${locale}`);
        await page.goto("/#/plans/7-000");
        await page
            .locator(".empty", { hasText: ["There is no such plan", "没有这个计划"][column] })
            .waitFor();
        ok(true, `an id of another user, ${locale}`);
        equal(context.wrong, [], "no error in the console");
    });
