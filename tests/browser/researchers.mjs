// What researchers do.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { at, choose, download, login, PASSWORD, person, register, start, state } from "./flow.mjs";
import { clean, equal, ok, smoke, test } from "./tap.mjs";

const WORDS = {
    "en-US": {
        start: "Start screening",
        relevant: "Relevant",
        csv: "doi,title",
        simulated: "Simulated",
    },
    "zh-CN": { start: "开始筛选", relevant: "相关", csv: "doi,title", simulated: "模拟" },
};

const count = async (page, name) => Number((await page.textContent(at(name))).replace(/\D/g, ""));

/* Starts what is chosen, waits for its end, opens a paper. Returns how many papers there are, and
 * how many are relevant. */
async function screen(page, question) {
    await start(page, question);
    await state(page, "DONE");
    const [done, all] = (await page.textContent(at("finished"))).match(/[\d,]+/g);
    equal(done, all, "all papers are judged");
    const relevant = await count(page, "relevant");
    ok(relevant > 0, "some are relevant");
    await page.locator("[data-row]").first().click();
    await page.waitForSelector(at("abstract"));
    ok((await page.textContent(at("abstract"))).length > 80, "a paper shows its abstract");
    await clean(page, "run");
    await page.click(at("close-paper"));
    return { all: Number(all.replace(",", "")), relevant };
}

/* The AI of these tests is simulated, and every place that shows its verdicts says so. */
async function simulated(page, word) {
    const marks = (where) => page.locator(`${where} ${at("simulated")}`).allTextContents();
    equal(await marks(".page header"), [word], "the run is marked as simulated");
    ok((await page.locator(".made-up").count()) === 1, "and a line says what that means");
    ok((await marks(".history")).includes(word), "so it is in the history");
    ok((await page.textContent("[data-row]")).includes(word), "so is each verdict");
}

/* What the run is about; and the form is filled with it again. */
async function screenAgain(page, { question, from }) {
    await page.click(`${at("scope")} > summary`);
    await page.waitForSelector(at("scope-years"));
    ok((await page.textContent(at("scope-years"))).includes(from), "its scope: the years");
    const text = await page.textContent(at("scope"));
    ok(text.includes("default") && text.includes("SHA-256"), "the model, the prompt, its digest");
    const journals = await page.locator(`${at("scope")} tbody tr`).count();
    ok(journals > 0, "and the journals");
    await clean(page, "scope");
    await page.click(at("screen-again"));
    await page.waitForSelector(`dl:not(.stale) ${at("cost")}`);
    equal(
        [await page.inputValue("#question"), await page.inputValue(at("year-from"))],
        [question, from],
        "screen again: the same question and years",
    );
    equal(
        await page.locator(".picker li input[type=checkbox]:checked").count(),
        journals,
        "and the same journals",
    );
}

smoke("from log-in to a result", async ({ m, browser }) => {
    m.user("early");
    const context = await person(browser, m.url);
    const page = await context.newPage();
    await login(page, "early");
    await choose(page, { from: 2024 });
    const question = "Does the abstract mention a randomised trial?";
    await screen(page, question);
    await simulated(page, "Simulated");
    await screenAgain(page, { question, from: "2024" });
    equal(
        [context.wrong, context.elsewhere],
        [[], []],
        "no error in the console, and nothing was asked of another host",
    );
    await context.close();
});

/* An admin's hand, without a page. */
async function turn(m, body) {
    const send = (path, value, token) =>
        fetch(m.url + path, {
            method: "POST",
            headers: { "Content-Type": "application/json", Authorization: `Bearer ${token}` },
            body: JSON.stringify(value),
        }).then((r) => r.json());
    const admin = { username: "doorkeeper", password: PASSWORD };
    const { token } = await send("/api/admin/login", admin, "");
    return (await send("/api/admin/switches", body, token)).success;
}

const TOLD = {
    "en-US": { money: "Ask Li Ming", banned: "account is banned", closed: "cannot be created" },
    "zh-CN": { money: "请联系：Li Ming", banned: "账户已被封禁", closed: "不开放注册" },
};

smoke("no money, banned, registration closed", async ({ m, browser }) => {
    m.cli("admin", "add", "doorkeeper");
    for (const locale of ["en-US", "zh-CN"]) {
        const name = `barred-${locale}`;
        m.user(name, "0.00");
        const context = await person(browser, m.url, { locale });
        const page = await context.newPage();
        await login(page, name);
        const note = await page.textContent(at("no-money"));
        ok(
            note.includes(TOLD[locale].money),
            `${locale}: a user with 0.00 is told whom to ask`,
            note,
        );
        m.cli("user", "ban", name);
        await page.goto("/#/account");
        const why = await page.textContent(at("banned"));
        ok(
            why.includes(TOLD[locale].banned) && why.includes("li@uni.example"),
            `${locale}: a ban is told to the page that is open`,
            why,
        );
        equal(await page.locator(".toast").count(), 0, "and not called the end of a session");
        await page.waitForSelector(at("swap"));
        ok(await turn(m, { name: "registration", on: false }), "registration is closed");
        await page.reload();
        const closed = await page.textContent(at("closed"));
        ok(closed.includes(TOLD[locale].closed), `${locale}: the page says so`, closed);
        equal(await page.locator(at("swap")).count(), 0, "and offers no account");
        ok(await turn(m, { name: "registration", on: true }), "it is opened again");
        equal(context.wrong, [], "no error in the console");
        await context.close();
    }
});

for (const locale of ["en-US", "zh-CN"])
    test(`from registration to download, ${locale}`, async ({ m, browser }) => {
        const name = locale === "en-US" ? "grace" : "研究者";
        const context = await person(browser, m.url, { locale });
        const page = await context.newPage();
        await page.goto("/");
        await page.waitForSelector("#name");
        await clean(page, "log-in");
        await register(page, name);
        equal(
            (await page.textContent(at("start"))).trim(),
            WORDS[locale].start,
            "the language is the browser's",
        );
        equal(
            await page.getAttribute("html", "lang"),
            locale === "en-US" ? "en" : "zh-CN",
            "and the page says so",
        );
        await choose(page, { from: 2024 });
        const cost = (await page.textContent(at("cost"))).trim();
        await clean(page, "home");

        await page.fill("#question", "Does the abstract mention a randomised trial?");
        await page.waitForSelector(at("not-enough"));
        ok(await page.isDisabled(at("start")), "too little money: it says so, and cannot start");
        await page.reload();
        await page.waitForSelector(`dl:not(.stale) ${at("cost")}`);
        equal(
            [await page.inputValue("#question"), (await page.textContent(at("cost"))).trim()],
            ["Does the abstract mention a randomised trial?", cost],
            "and after a reload, with the selection",
        );
        m.cli("user", "recharge", name, "20000.00");
        await page.reload();
        await page.locator(".balance strong", { hasText: "20,000.00" }).waitFor();
        ok(true, "a recharge is seen");

        const { all, relevant } = await screen(
            page,
            "Does the abstract mention a randomised trial?",
        );
        await simulated(page, WORDS[locale].simulated);
        const csv = await download(page, "relevant-csv");
        ok(csv.text.trimEnd().endsWith(",yes"), "each verdict is marked in it");
        const scope = JSON.parse((await download(page, "scope")).text);
        equal([scope.year_from, scope.simulated], [2024, true], "the scope as a file");
        ok(
            csv.name.endsWith(".csv") &&
                csv.text.replace("\ufeff", "").startsWith(WORDS[locale].csv),
            "CSV",
            csv.name,
        );
        const bib = await download(page, "all-bib");
        equal(
            bib.text.match(/^@(?!string|comment)\w+\{/gim)?.length,
            all,
            "BibTeX has every paper",
        );
        const ris = await download(page, "relevant-ris");
        equal(ris.text.match(/^TY {2}- /gm)?.length, relevant, "RIS has the relevant ones");

        await page.click(at("tab-charts"));
        await page.locator(".plot svg").nth(1).waitFor();
        await clean(page, "charts");
        await page.click(at("tab-flow"));
        const [svg] = await Promise.all([
            page.waitForEvent("download"),
            page.click(at("save-svg")),
        ]);
        const drawing = readFileSync(await svg.path(), "utf8");
        ok(
            drawing.includes("<svg") &&
                drawing.includes(`n = ${relevant}`) &&
                drawing.includes(WORDS[locale].simulated),
            "the flow diagram is saved",
        );
        await clean(page, "flow");
        await page.click(at("tab-results"));
        await distil(page, relevant);

        await page.goto("/#/account");
        const entries = page.locator(at("ledger-entry"));
        await entries.nth(1).waitFor();
        await clean(page, "account");
        await page.check(at("only-moves"));
        await entries.nth(1).waitFor({ state: "detached" });
        equal(await entries.count(), 1, "the ledger without the papers has one entry");
        ok((await entries.textContent()).includes("+20,000.00"), "the recharge");
        equal(context.wrong, [], "no error in the console");
        equal(context.elsewhere, [], "nothing was asked of another host");
        await context.close();
    });

async function distil(page, relevant) {
    await page.click(at("distill"));
    await page.locator(at("distill-estimate")).waitFor();
    ok(
        (await page.textContent(at("distill-estimate"))).includes(String(relevant)),
        "the estimate of a distillation",
    );
    await page.fill("#distill-question", "Were groups compared?");
    await page.click(at("distill-start"));
    await page.waitForFunction(
        (n) => document.querySelector('[data-test="finished"]')?.textContent?.includes(String(n)),
        relevant,
    );
    await state(page, "DONE");
    await page.click(at("tab-flow"));
    await page.locator(".drawing g").nth(5).waitFor();
    equal(await page.locator(".drawing g").count(), 6, "the flow diagram has both questions");
    ok(
        (await page.locator(".history li a svg").count()) > 0,
        "and the history shows where it came from",
    );
    const left = await count(page, "relevant");
    ok(left > 0 && left < relevant, "some are left", { left, relevant });
    const ris = await download(page, "relevant-ris");
    equal(ris.text.match(/^TY {2}- /gm)?.length, left, "those are downloaded");
}

test("what unfinished screenings may cost is not free", async ({ m, browser }) => {
    m.user("thrifty", "100000.00", 2);
    const context = await person(browser, m.url);
    const page = await context.newPage();
    const asked = [];
    let lost = true;
    await page.route("**/api/queries", async (route) => {
        if (route.request().method() !== "POST") return route.continue();
        asked.push(route.request().postDataJSON().request_id);
        const reply = await route.fetch();
        if (lost) {
            lost = false;
            return route.abort("connectionreset");
        }
        return route.fulfill({ response: reply });
    });
    const me = () => page.evaluate(() => fetch("/api/me").then((r) => r.json()));
    await login(page, "thrifty");
    await choose(page, { field: 4 });
    const cost = Number((await page.textContent(at("cost"))).replace(",", ""));
    await page.fill("#question", "Is it about water?");
    await page.click(at("start"));
    await page.locator(".toast.bad").waitFor();
    await page.click(at("start"));
    await page.waitForURL(/#\/runs\//);
    equal([asked.length, new Set(asked).size], [2, 1], "a reply that was lost is asked for again");
    await state(page, "RUNNING");
    await page.click(at("pause"));
    await state(page, "PAUSED");
    ok(
        (await page.textContent(at("at-most"))).includes(cost.toFixed(2).slice(-6)),
        "its page says what it costs at most",
    );
    const runs = await page.evaluate(() => fetch("/api/queries").then((r) => r.json()));
    equal(runs.queries.length, 1, "and one run was made");
    m.cli("user", "deduct", "thrifty", (Number((await me()).free) - cost).toFixed(2));
    await page.goto("/#/");
    await page.reload();
    await page.waitForSelector(`dl:not(.stale) ${at("cost")}`);
    await page.locator(at("free"), { hasText: cost.toFixed(2).slice(-6) }).waitFor();
    ok(!(await page.isDisabled(at("start"))), "what is free suffices");
    equal((await page.textContent(at("left"))).trim(), "0.00", "and nothing is left afterwards");
    m.cli("user", "deduct", "thrifty", "1.00");
    await page.click(at("update"));
    await page.waitForSelector(at("not-enough"));
    ok(await page.isDisabled(at("start")), "one less does not, and the page says why");
    await page.goto("/#/account");
    const { reserved, free } = await me();
    await page.locator(at("account-free"), { hasText: free.slice(-6) }).waitFor();
    ok(
        (await page.textContent(at("account-reserved"))).includes(reserved.slice(-6)),
        "the account shows both",
    );
    equal(context.wrong, [], "no error in the console");
    await context.close();
});

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
    await Promise.all(
        people.map(({ page, name }) => start(page, `A question of ${name} about trials`)),
    );
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
    await two.waitForFunction(() =>
        /\/s/.test(document.querySelector(".progress")?.textContent ?? ""),
    );
    ok(true, "the rate is shown");
    await one.click(at("pause"));
    await state(two, "PAUSED", 5000);
    ok(true, "paused in both");
    await clean(two, "paused run");
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

/* Rows of a filter, as far as they are in the page. */
async function filtered(page, verdict) {
    const asked = [];
    const note = (r) =>
        r.url().includes("/results?") && asked.push(new URL(r.url()).searchParams.get("verdict"));
    page.on("request", note);
    await page.click(at(`filter-${verdict}`));
    await page.locator("[data-row] .word:not(:empty)").first().waitFor();
    /* Rows of the list before are seen until this one begins, then rows that wait for it. */
    for (const end = Date.now() + 20000; !asked.includes(verdict) && Date.now() < end; )
        await page.waitForTimeout(50);
    await page.locator("[data-row].waiting").first().waitFor({ state: "detached" });
    page.off("request", note);
    const kinds = await page
        .locator("[data-row]")
        .evaluateAll((rows) => [...new Set(rows.map((r) => r.className.replace("line ", "")))]);
    return { kinds, wholly: asked.includes(null), asked: asked.includes(verdict) };
}

test("failed papers", async ({ m, browser }) => {
    m.user("unlucky");
    await m.ai({ fail: 0.75, kinds: "unreadable" });
    const context = await person(browser, m.url);
    const page = await context.newPage();
    await login(page, "unlucky");
    await choose(page, { field: 1, from: 2024 });
    await start(page, "Does it report a randomised controlled trial?");
    await state(page, "DONE");
    const failed = await count(page, "failed");
    ok(failed > 0, "some papers have failed");
    equal(
        await filtered(page, "failed"),
        { kinds: ["failed"], wholly: false, asked: true },
        "only those are asked for and shown",
    );
    ok(
        (await page.locator("[data-row] .paper .soft").first().textContent()).length > 10,
        "each says why",
    );
    equal(
        await filtered(page, "irrelevant"),
        { kinds: ["irrelevant"], wholly: false, asked: true },
        "so are those that are not relevant",
    );
    await page.click(at("filter-failed"));
    await clean(page, "failed papers");
    await m.ai({});
    await page.click(at("retry"));
    await state(page, "DONE");
    await page.waitForFunction(
        () => document.querySelector('[data-test="failed"]').textContent === "0",
    );
    ok(true, "tried again, each has a verdict");
    await page.locator(".empty.frame").waitFor();
    equal(await page.locator(at("retry")).count(), 0, "nothing is left to try again");
    equal(context.wrong, [], "no error in the console");
    await context.close();
});

test("out of money", async ({ m, browser }) => {
    m.user("poor", "100000.00", 2);
    const context = await person(browser, m.url);
    const page = await context.newPage();
    await login(page, "poor");
    await choose(page, { field: 4 });
    await start(page, "Is it about water?");
    await state(page, "RUNNING");
    await page.click(at("pause"));
    await state(page, "PAUSED");
    const left = (await page.evaluate(() => fetch("/api/me").then((r) => r.json()))).balance;
    m.cli("user", "deduct", "poor", (Number(left) - 40).toFixed(2));
    await page.click(at("resume"));
    await page.locator(".progress .note", { hasText: "balance ran out" }).waitFor();
    ok(true, "the run pauses itself, and the page says why");
    m.cli("user", "recharge", "poor", "50000");
    await page.click(at("resume"));
    await state(page, "RUNNING");
    await page.locator(".progress .note").waitFor({ state: "detached" });
    ok(true, "after a recharge it goes on");
    await page.click(at("terminate"));
    await page.click(at("terminate-sure"));
    await state(page, "CANCELLED");
    await context.close();
});

test("sessions and password", async ({ m, browser }) => {
    m.user("mover");
    const here = await person(browser, m.url);
    const there = await person(browser, m.url);
    const page = await here.newPage();
    const other = await there.newPage();
    await login(page, "mover");
    await login(other, "mover");
    await page.goto("/#/account");
    await page.locator(at("session")).nth(1).waitFor();
    equal(await page.locator(at("session")).count(), 2, "both sessions are listed");
    await page.locator(at("end-session")).click();
    await page.waitForFunction(
        () => document.querySelectorAll('[data-test="session"]').length === 1,
    );
    await other.goto("/#/account");
    await other.waitForSelector("#name");
    ok(true, "the one that was ended is sent to the log-in");
    await login(other, "mover");

    const change = async (old, fresh, again = fresh) => {
        await page.fill("#p-old", old);
        await page.fill("#p-new", fresh);
        await page.fill("#p-again", again);
        await page.click(at("change-password"));
    };
    await change(PASSWORD, "something else", "something other");
    await page.locator(".form .wrong").waitFor();
    ok(true, "two that differ are not sent");
    await change("not my password", "something else");
    await page
        .locator("#p-old >> xpath=ancestor::*[contains(@class, 'field')] >> .wrong")
        .waitFor();
    equal(
        await page.inputValue("#p-new"),
        "something else",
        "a wrong one is told at its field, and nothing typed is lost",
    );
    await change(PASSWORD, "something else");
    await page.locator(".toast.good", { hasText: "password" }).waitFor();
    equal(await page.inputValue("#p-new"), "", "changed");
    await other.goto("/#/account");
    await other.waitForSelector("#name");
    await other.fill("#name", "mover");
    await other.fill("#password", PASSWORD);
    await other.click(at("submit"));
    await other.locator("form .wrong").waitFor();
    await other.fill("#password", "something else");
    await other.click(at("submit"));
    await other.waitForSelector("main [data-test=start], main dl");
    ok(true, "other sessions were ended; only the new one opens the door");
    equal([here.wrong, there.wrong], [[], []], "no error in the console");
    await here.close();
    await there.close();
});

test("by keyboard alone", async ({ m, browser }) => {
    m.user("keys");
    const context = await person(browser, m.url);
    const page = await context.newPage();
    const key = (k) => page.keyboard.press(k);
    const tabTo = async (selector) => {
        for (let i = 0; i < 200; i++) {
            if (await page.evaluate((s) => document.activeElement?.matches(s) ?? false, selector))
                return true;
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
    await page.keyboard.type("Does it report a randomised controlled trial?");
    await tabTo(at("start"));
    await key("Enter");
    await page.waitForURL(/#\/runs\//);
    await state(page, "DONE");
    equal(
        await page.evaluate(() => {
            const title = document.querySelector(".page h1");
            return title.scrollHeight - title.clientHeight;
        }),
        0,
        "a title that fits is no scroller, where Tab would stop",
    );
    await tabTo("[data-row]");
    await key("ArrowDown");
    await key("ArrowDown");
    await key("Enter");
    await page.waitForSelector(at("abstract"));
    ok(true, "from log-in to an abstract");
    await key("Escape");
    ok(
        await page.evaluate(() => document.activeElement?.getAttribute("data-row") === "2"),
        "and back to its row",
    );
    await key("End");
    ok(
        await page.evaluate(() => Number(document.activeElement?.getAttribute("data-row")) > 10),
        "End goes to the last row",
    );
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

/* Also in the events of a run: no other request is made while its page is looked at. */
test("a database that does not answer", async ({ m, browser }) => {
    m.user("calm", "100000.00", 2);
    const context = await person(browser, m.url);
    const page = await context.newPage();
    await login(page, "calm");
    await choose(page, { field: 3 });
    await start(page, "Is it about the sea?");
    await state(page, "RUNNING");
    const bar = page.locator(".bar[role=alert]");
    const database = Number(readFileSync(join(m.data, "run/mariadb.pid"), "utf8"));
    process.kill(database, "SIGSTOP");
    try {
        await bar.waitFor({ timeout: 8000 });
        ok((await bar.textContent()).includes("can be paused"), "the page says what still works");
        await page.click(at("pause"));
        await state(page, "PAUSED", 5000);
        ok(true, "a pause is one of it");
        await page.reload();
        await state(page, "PAUSED", 5000);
        await bar.waitFor({ timeout: 5000 });
        ok(true, "the run is shown, and that it is paused");
    } finally {
        process.kill(database, "SIGCONT");
    }
    await page.reload();
    await state(page, "PAUSED", 10000);
    await bar.waitFor({ state: "detached", timeout: 20000 });
    await page.click(at("resume"));
    await state(page, "DONE", 90000);
    ok(true, "and goes on when the database is back, to the end");
    equal(context.wrong, [], "no error in the console");
    await context.close();
});
