// Prints TAP: whole flows on real Chromium against a real server.
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { adminLogin, at, choose, download, findings, launch, login, person, register, start, state } from "./flow.mjs";
import { Millrace, ROOT } from "./millrace.mjs";

let count = 0;
let failed = 0;
function ok(held, name, ...details) {
    count++;
    if (!held) failed++;
    console.log(`${held ? "ok" : "not ok"} ${count} - ${name}`);
    if (!held) for (const d of details) for (const l of String(typeof d === "string" ? d : JSON.stringify(d)).split("\n")) console.log("#", l);
    return held;
}
const equal = (got, want, name) => ok(JSON.stringify(got) === JSON.stringify(want), name, { got, want });
const tests = [];
const test = (name, fn) => tests.push({ name, fn });

async function clean(context, page, name) {
    equal(await findings(page), [], `${name}: axe-core has no serious findings`);
}

const WORDS = {
    "en-US": { start: "Start screening", relevant: "Relevant", csv: "doi,title" },
    "zh-CN": { start: "开始筛选", relevant: "相关", csv: "doi,title" },
};

for (const locale of ["en-US", "zh-CN"])
    test(`from registration to download, ${locale}`, async ({ m, browser }) => {
        const name = locale === "en-US" ? "grace" : "研究者";
        const context = await person(browser, m.url, { locale });
        const page = await context.newPage();
        await page.goto("/");
        await page.waitForSelector("#name");
        await clean(context, page, "log-in");
        await register(page, name);
        equal((await page.textContent(at("start"))).trim(), WORDS[locale].start, "the language is the browser's");
        equal(await page.getAttribute("html", "lang"), locale === "en-US" ? "en" : "zh-CN", "and the page says so");
        await choose(page, { from: 2024 });
        const cost = (await page.textContent(at("cost"))).trim();
        await clean(context, page, "home");

        await page.fill("#question", "Does the abstract mention a randomised trial?");
        await page.click(at("start"));
        await page.locator(".toast.bad").waitFor();
        ok((await page.inputValue("#question")).length > 10, "too little money: the question is still there");
        await page.reload();
        await page.waitForSelector(`dl:not(.stale) ${at("cost")}`);
        equal([await page.inputValue("#question"), (await page.textContent(at("cost"))).trim()], ["Does the abstract mention a randomised trial?", cost], "and after a reload, with the selection");
        m.cli("user", "recharge", name, "20000.00");
        await page.reload();
        await page.locator(".balance strong", { hasText: "20,000.00" }).waitFor();
        ok(true, "a recharge is seen");

        await start(page, "Does the abstract mention a randomised trial?");
        await state(page, "DONE");
        const [done, all] = (await page.textContent(at("finished"))).match(/[\d,]+/g);
        equal(done, all, "all papers are judged");
        const relevant = Number((await page.textContent(at("relevant"))).replace(/\D/g, ""));
        ok(relevant > 0, "some are relevant");
        await page.locator("[data-row]").first().click();
        await page.waitForSelector(at("abstract"));
        ok((await page.textContent(at("abstract"))).length > 80, "a paper shows its abstract");
        await clean(context, page, "run");
        await page.click(at("close-paper"));

        const csv = await download(page, "relevant-csv");
        ok(csv.name.endsWith(".csv") && csv.text.replace("\ufeff", "").startsWith(WORDS[locale].csv), "CSV", csv.name);
        const bib = await download(page, "all-bib");
        equal(bib.text.match(/^@(?!string|comment)\w+\{/gim)?.length, Number(all.replace(",", "")), "BibTeX has every paper");
        const ris = await download(page, "relevant-ris");
        equal(ris.text.match(/^TY {2}- /gm)?.length, relevant, "RIS has the relevant ones");

        await page.click(at("tab-charts"));
        await page.locator(".plot svg").nth(1).waitFor();
        await clean(context, page, "charts");
        await page.click(at("tab-flow"));
        const [svg] = await Promise.all([page.waitForEvent("download"), page.click(at("save-svg"))]);
        const drawing = readFileSync(await svg.path(), "utf8");
        ok(drawing.includes("<svg") && drawing.includes(`n = ${relevant}`), "the flow diagram is saved");
        await clean(context, page, "flow");
        await page.click(at("tab-results"));
        await distil(page, relevant);

        await page.goto("/#/account");
        await page.locator("table tbody tr").first().waitFor();
        await clean(context, page, "account");
        await page.check(at("only-moves"));
        await page.waitForFunction(() => document.querySelectorAll("table tbody tr").length === 1);
        ok((await page.textContent("table tbody tr")).includes("+20,000.00"), "the ledger has the recharge");
        equal(context.wrong, [], "no error in the console");
        equal(context.elsewhere, [], "nothing was asked of another host");
        await context.close();
    });

async function distil(page, relevant) {
    await page.click(at("distill"));
    await page.locator(at("distill-estimate")).waitFor();
    ok((await page.textContent(at("distill-estimate"))).includes(String(relevant)), "the estimate of a distillation");
    await page.fill("#distill-question", "Is it about children?");
    await page.click(at("distill-start"));
    await page.waitForFunction((n) => document.querySelector('[data-test="finished"]')?.textContent?.includes(String(n)), relevant);
    await state(page, "DONE");
    await page.click(at("tab-flow"));
    await page.locator(".drawing g").nth(5).waitFor();
    equal(await page.locator(".drawing g").count(), 6, "the flow diagram has both questions");
    ok((await page.locator(".history li a svg").count()) > 0, "and the history shows where it came from");
}

test("two users at once", async ({ m, browser }) => {
    const people = await Promise.all(
        ["ada", "bob"].map(async (name, i) => {
            m.user(name);
            const context = await person(browser, m.url);
            const page = await context.newPage();
            await login(page, name);
            await choose(page, { field: i, from: 2022 });
            return { name, context, page };
        }),
    );
    await Promise.all(people.map(({ page, name }) => start(page, `A question of ${name} about trials`)));
    await Promise.all(people.map(({ page }) => state(page, "DONE")));
    for (const { page, name, context } of people) {
        equal(await page.locator(".history li").count(), 1, `${name} sees one run`);
        ok((await page.textContent(".history")).includes(name), "their own");
        equal((await page.textContent(at("who"))).trim(), name, "in their own account");
        equal(context.wrong, [], "no error in the console");
    }
    const theirs = people[0].page.url();
    await people[1].page.goto(theirs);
    await people[1].page.reload();
    await people[1].page.locator(".card.empty").waitFor();
    ok(true, "one of another's is not there");
    for (const { context } of people) await context.close();
});

test("a pause in one tab is seen in the other", async ({ m, browser }) => {
    m.user("tabs", "100000.00", 2);
    const context = await person(browser, m.url);
    const one = await context.newPage();
    await login(one, "tabs");
    await choose(one, { field: 2 });
    await start(one, "Is it about batteries?");
    const two = await context.newPage();
    await two.goto(one.url());
    await state(two, "RUNNING");
    await two.waitForFunction(() => /\/s/.test(document.querySelector(".progress")?.textContent ?? ""));
    ok(true, "the rate is shown");
    await one.click(at("pause"));
    await state(two, "PAUSED", 5000);
    ok(true, "paused in both");
    await clean(context, two, "paused run");
    await two.click(at("resume"));
    await state(one, "RUNNING", 8000);
    ok(true, "resumed in both");
    await one.click(at("terminate"));
    await one.click(at("terminate-sure"));
    await state(two, "CANCELLED", 8000);
    ok(true, "terminated in both");
    equal(context.wrong, [], "no error in the console");
    await context.close();
});

test("by keyboard alone", async ({ m, browser }) => {
    m.user("keys");
    const context = await person(browser, m.url);
    const page = await context.newPage();
    const key = (k) => page.keyboard.press(k);
    const tabTo = async (selector) => {
        for (let i = 0; i < 200; i++) {
            if (await page.evaluate((s) => document.activeElement?.matches(s) ?? false, selector)) return true;
            await key("Tab");
        }
        return ok(false, `${selector} cannot be reached by Tab`);
    };
    await page.goto("/");
    await page.waitForSelector("#name");
    await tabTo("#name");
    await page.keyboard.type("keys");
    await key("Tab");
    await page.keyboard.type("correct horse");
    await key("Enter");
    await page.waitForSelector(".tags .chip");
    await tabTo(".tags .chip");
    await key("Space");
    await page.locator(".tags .chip[aria-pressed=true]").waitFor();
    await tabTo(".picker .head input");
    await key("Space");
    await page.waitForSelector(at("cost"));
    await tabTo("#question");
    await page.keyboard.type("Is a trial reported?");
    await tabTo(at("start"));
    await key("Enter");
    await page.waitForURL(/#\/runs\//);
    await state(page, "DONE");
    await tabTo("[data-row]");
    await key("ArrowDown");
    await key("ArrowDown");
    await key("Enter");
    await page.waitForSelector(at("abstract"));
    ok(true, "from log-in to an abstract");
    await key("Escape");
    ok(await page.evaluate(() => document.activeElement?.getAttribute("data-row") === "2"), "and back to its row");
    await key("End");
    ok(await page.evaluate(() => Number(document.activeElement?.getAttribute("data-row")) > 10), "End goes to the last row");
    await context.close();
});

function killRedis(m) {
    try {
        process.kill(Number(readFileSync(join(m.data, "run/redis.pid"), "utf8")), "SIGKILL");
    } catch {
        /* it is down */
    }
}

test("a server that goes away and comes back", async ({ m, browser }) => {
    m.user("patient", "100000.00", 2);
    const context = await person(browser, m.url);
    const page = await context.newPage();
    await login(page, "patient");
    await choose(page, { field: 3 });
    await start(page, "Is it about stars?");
    await state(page, "RUNNING");
    const told = page.locator(".bar[role=alert], .progress .note").first();
    /* The supervisor brings it back within a second: kept down until somebody has noticed. */
    const killer = setInterval(() => killRedis(m), 200);
    await told.waitFor({ timeout: 20000 }).finally(() => clearInterval(killer));
    ok(true, "Redis dies: the page says so");
    await told.waitFor({ state: "detached", timeout: 60000 });
    await state(page, "DONE", 90000);
    ok(true, "and goes on when it is back, to the end");
    equal(context.wrong, [], "no error in the console");
    await context.close();
});

test("an admin at work", async ({ m, browser }) => {
    m.user("client", "5.00");
    m.cli("admin", "add", "root", "--super");
    const context = await person(browser, m.url);
    const page = await context.newPage();
    await page.goto("/admin/control.html");
    await page.waitForURL(/login\.html/);
    ok(true, "who is not logged in is sent to the log-in");
    await clean(context, page, "admin log-in");
    await adminLogin(page, "root");

    await page.goto("/admin/control.html#overview");
    await page.locator(".board svg rect").nth(59).waitFor({ state: "attached" });
    await clean(context, page, "overview");
    await page.click(at("nav-users"));
    await page.fill(".find input", "clie");
    await page.click(at("user-client"));
    await page.waitForSelector(at("recharge"));
    await page.fill("#amount", "12.34");
    await page.fill("#reason", "a gift");
    await page.click(at("recharge"));
    await page.locator(at("user-balance"), { hasText: "17.34" }).waitFor();
    ok(true, "a recharge");
    await page.fill("#amount", "100.00");
    await page.click(at("deduct"));
    await page.locator(".toast.bad").waitFor();
    equal([await page.inputValue("#amount"), (await page.textContent(at("user-balance"))).trim()], ["100.00", "17.34"], "more than there is cannot be taken; the amount is still there");
    await clean(context, page, "users");
    const theirs = await person(browser, m.url);
    const other = await theirs.newPage();
    await login(other, "client");
    await page.click(at("ban"));
    await page.click(at("sure"));
    await page.waitForSelector(at("unban"));
    await other.goto("/#/account");
    await other.reload();
    await other.waitForSelector("#name");
    ok(true, "a ban ends the user's sessions");

    await page.click(at("nav-switches"));
    await page.click(at("switch-registration"));
    await page.locator(`${at("switch-registration")}[aria-checked=false]`).waitFor();
    await clean(context, page, "switches");
    await other.waitForTimeout(1500); // all nodes know within a second
    await other.click(at("swap"));
    await other.fill("#name", "latecomer");
    await other.fill("#password", "correct horse");
    await other.click(at("submit"));
    await other.locator("form .wrong").waitFor();
    equal(await other.inputValue("#name"), "latecomer", "registration is closed, and what was typed is still there");
    await page.click(at("switch-registration"));
    await page.locator(`${at("switch-registration")}[aria-checked=true]`).waitFor();
    for (const tab of ["keys", "admins", "audit"]) {
        await page.click(at(`nav-${tab}`));
        await page.locator("table tbody tr, .empty").first().waitFor();
        await clean(context, page, tab);
    }
    const log = await page.textContent("table tbody");
    ok(["user.recharge", "user.deduct", "user.ban", "a gift"].every((w) => log.includes(w)), "all of it is in the audit log", log);
    equal(context.wrong, [], "no error in the console");
    await theirs.close();
    await context.close();
});

test("what is loaded", async ({ m, browser }) => {
    const context = await person(browser, m.url);
    const page = await context.newPage();
    let bytes = 0;
    const answers = [];
    page.on("response", (r) => answers.push(r));
    await page.goto("/");
    await page.waitForSelector("#name");
    for (const r of answers) bytes += (await r.request().sizes()).responseBodySize;
    ok(bytes < 300 * 1024, `the first page is ${Math.round(bytes / 1024)} KB compressed`, answers.map((r) => r.url()));
    const page_ = answers.find((r) => new URL(r.url()).pathname === "/");
    const policy = (await page_.allHeaders())["content-security-policy"] ?? "";
    ok(/script-src 'self'(;|$)/.test(policy) && /frame-ancestors 'none'/.test(policy), "its policy allows scripts from files only", policy);
    const ms = await page.evaluate(() => Math.round(performance.now()));
    console.log("#", `ready after ${ms} ms`);
    const script = answers.find((r) => r.url().endsWith(".js") && r.url().includes("/assets/"));
    equal((await script.allHeaders())["content-encoding"], "br", "scripts come precompressed");
    const inline = readdirSync(join(ROOT, "web/dist")).filter((n) => n.endsWith(".html")).filter((n) => /<script(?![^>]*src=)/.test(readFileSync(join(ROOT, "web/dist", n), "utf8")));
    equal(inline, [], "no page has a script inside");
    ok(statSync(join(ROOT, "web/dist/index.html")).size < 4096, "the page itself is small");
    await context.close();
});

/* The table alone is what is measured: the rows come from the test, not from the server. */
test("a hundred thousand rows", async ({ m, browser }) => {
    m.user("many");
    const context = await person(browser, m.url);
    const page = await context.newPage();
    await login(page, "many");
    const ALL = 100000;
    const run = { success: true, query_id: "many", state: "DONE", reason: null, papers: ALL, finished: ALL, relevant: ALL, failed: 0, cost: "1.00", workers: 0, question: "Many rows", created_at: "2026-01-01T00:00:00.000Z", start_time: null, end_time: null, is_distillation: false, original_query_id: null };
    await page.route(/\/api\/queries\/many$/, (r) => r.fulfill({ json: run }));
    await page.route(/\/api\/queries\/many\/results/, (r) => {
        const from = Number(new URL(r.request().url()).searchParams.get("cursor") ?? "0");
        const results = Array.from({ length: 500 }, (_, i) => ({ doi: `10.5555/x.${from + i}`, title: `Paper ${from + i} on catalysts`, journal: "J", year: 2020, relevant: true, reason: "It says so in the abstract, at some length.", error: null }));
        return r.fulfill({ json: { success: true, results, next: from + 500 < ALL ? String(from + 500) : null, restarted: false } });
    });
    await page.goto("/#/runs/many");
    await page.locator("[data-row]").first().waitFor();
    await page.evaluate(() => {
        window.stalls = [];
        new PerformanceObserver((l) => l.getEntries().forEach((e) => window.stalls.push(Math.round(e.duration)))).observe({ entryTypes: ["longtask"] });
    });
    await page.evaluate(async () => {
        const box = document.querySelector('[data-test="grid"]');
        const until = performance.now() + 4000;
        while (performance.now() < until) {
            box.scrollTop += 900;
            await new Promise(requestAnimationFrame);
        }
    });
    const stalls = await page.evaluate(() => window.stalls);
    console.log("#", `long tasks while scrolling: ${stalls.length}, the longest ${Math.max(0, ...stalls)} ms`);
    ok(stalls.filter((x) => x > 100).length === 0, "scrolling does not stall", stalls);
    ok((await page.locator("[data-row]").count()) < 60, "few rows are in the page");
    await page.evaluate(() => (document.querySelector('[data-test="grid"]').scrollTop = 1e9));
    await page.locator('[data-row="99999"]', { hasText: "Paper 99999" }).waitFor({ timeout: 60000 });
    ok(true, "the last of a hundred thousand is shown");
    await page.fill(".find input", "paper 77777");
    await page.locator('[data-row="0"]', { hasText: "Paper 77777" }).waitFor();
    equal(await page.locator("[data-row]").count(), 1, "and one of them is found");
    await context.close();
});

const only = process.argv[2];
const began = Date.now();
const m = await Millrace.start({ latency: 60, jitter: 30 });
const browser = await launch();
try {
    for (const { name, fn } of tests) {
        if (only && !name.includes(only)) continue;
        const from = Date.now();
        try {
            await fn({ m, browser });
        } catch (e) {
            ok(false, name, e.stack ?? String(e));
        }
        for (const c of browser.contexts()) await c.close();
        console.log("#", `${name}: ${((Date.now() - from) / 1000).toFixed(1)} s`);
    }
} finally {
    await browser.close();
    await m.stop();
}
console.log("#", `${((Date.now() - began) / 1000).toFixed(0)} s in all`);
console.log(`1..${count}`);
process.exit(failed ? 1 : 0);
