// Takes the pictures of docs/screens/: every page, wide and narrow, light and dark, and in Chinese.
// Needs Debian's pngquant besides, which makes them small enough to keep.
import { execFileSync } from "node:child_process";
import { mkdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { adminLogin, at, choose, launch, login, person, start, state } from "./flow.mjs";
import { Millrace, ROOT } from "./millrace.mjs";

const FOLDER = join(ROOT, "docs/screens");
const BYTES_MAX = 150 * 1024;
const WIDTHS = { 1440: 900, 390: 844 };
const large = [];

async function shoot(page, name) {
    await page.mouse.move(0, 0); // nothing is pointed at
    await page.waitForTimeout(350); // what fades in
    const path = join(FOLDER, `${name}.png`);
    await page.screenshot({ path, animations: "disabled" });
    execFileSync("pngquant", ["--force", "--ext", ".png", "--speed", "1", "--nofs", "128", path]);
    if (statSync(path).size > BYTES_MAX) large.push(path);
}

async function tour(page, tag, runs) {
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

/* A run in motion, which goes on behind the operators' first picture. */
async function running(page, tag, run) {
    await page.goto(`/#/runs/${run}`);
    await page.click(at("resume"));
    await state(page, "RUNNING");
    await page.click(at("filter-all"));
    await page.waitForTimeout(6000); // the rate is that of some seconds
    await shoot(page, `run-running-${tag}`);
}

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
    for (const tab of ["keys", "switches", "admins", "audit", "account"]) {
        await page.click(at(`nav-${tab}`));
        await page
            .locator({ switches: "li .switch", account: at("session") }[tab] ?? "table tbody tr")
            .first()
            .waitFor();
        await shoot(page, `admin-${tab}-${tag}`);
    }
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
    });
}

async function prepare(browser, m) {
    m.user("demo", "100000.00", 20);
    for (const [name, balance] of [
        ["chen-yu", "2400.00"],
        ["garcia", "310.50"],
        ["研究者", "12000.00"],
    ])
        m.user(name, balance);
    m.cli("admin", "add", "root", "--super");
    const context = await person(browser, m.url);
    const page = await context.newPage();
    await login(page, "demo");
    const runs = {
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

mkdirSync(FOLDER, { recursive: true });
const m = await Millrace.start({ latency: 100, jitter: 60 });
const browser = await launch();
try {
    const runs = await prepare(browser, m);
    await m.ai({ latency: 2000, jitter: 600 });
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
                await context.addInitScript(
                    ([k, d]) => localStorage.getItem(k) ?? localStorage.setItem(k, d),
                    [runs.key, runs.draft],
                );
                const tag = `${width}-${theme}${suffix}`;
                const page = await context.newPage();
                await tour(page, tag, runs);
                await running(page, tag, runs.moving);
                await adminTour(await context.newPage(), tag, async () => {
                    await page.click(at("pause"));
                    await state(page, "PAUSED");
                });
                await context.close();
            }
} finally {
    await browser.close();
    await m.stop();
}
if (large.length) {
    console.error("larger than they should be:", large.join(" "));
    process.exit(1);
}
