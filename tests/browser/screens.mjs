// Takes the pictures of docs/screens/: every page, wide and narrow, light and dark; some in Chinese.
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
    await page.waitForTimeout(350); // what fades in
    const path = join(FOLDER, `${name}.png`);
    await page.screenshot({ path, animations: "disabled" });
    execFileSync("pngquant", ["--force", "--ext", ".png", "--speed", "1", "--nofs", "128", path]);
    if (statSync(path).size > BYTES_MAX) large.push(path);
}

async function tour(page, m, tag, runs) {
    await page.goto("/");
    await page.waitForSelector("#name");
    await shoot(page, `login-${tag}`);
    await login(page, "demo");
    await page.locator(`dl:not(.stale) ${at("cost")}`).waitFor();
    await shoot(page, `home-${tag}`);
    await page.goto(`/#/runs/${runs.paused}`);
    await page.waitForSelector(at("finished"));
    await page.waitForTimeout(1500);
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

async function adminTour(page, tag) {
    await page.goto("/admin/login.html");
    await page.waitForSelector("#name");
    await shoot(page, `admin-login-${tag}`);
    await adminLogin(page, "root");
    await page.waitForTimeout(2500);
    await shoot(page, `admin-overview-${tag}`);
    await page.click(at("nav-users"));
    await page.click(at("user-demo"));
    await page.waitForSelector(at("recharge"));
    await shoot(page, `admin-users-${tag}`);
    for (const tab of ["keys", "switches", "admins", "audit"]) {
        await page.click(at(`nav-${tab}`));
        await page.locator(`${tab === "switches" ? "li .switch" : "table tbody tr"}`).first().waitFor();
        await shoot(page, `admin-${tab}-${tag}`);
    }
}

async function prepare(browser, m, locale) {
    m.user("demo", "100000.00", 10);
    m.cli("admin", "add", "root", "--super");
    const context = await person(browser, m.url, { locale });
    const page = await context.newPage();
    await login(page, "demo");
    const ids = [];
    for (const [field, question] of [[0, "Does the paper report a randomised controlled trial in children or adolescents?"], [2, "Does it study catalysts that split water under visible light?"]]) {
        await page.goto("/#/");
        await page.waitForSelector(".tags .chip");
        await page.evaluate(() => document.querySelectorAll(".tags .chip[aria-pressed=true], .picker .head .link").forEach((x) => x.click()));
        await choose(page, { field });
        await start(page, question);
        ids.push(page.url().split("/").pop());
        if (!ids[1]) {
            await state(page, "DONE");
            await page.click(at("distill"));
            await page.locator(at("distill-estimate")).waitFor();
            await page.fill("#distill-question", "Were its results blinded?");
            await page.click(at("distill-start"));
            await page.waitForURL((url) => !url.hash.includes(ids[0]));
            await state(page, "DONE");
            ids.distilled = page.url().split("/").pop();
        }
    }
    const storage = await page.evaluate(() => ({ ...localStorage }));
    const key = Object.keys(storage).find((k) => k.startsWith("millrace.draft"));
    const draft = JSON.stringify({ ...JSON.parse(storage[key]), question: "Does it study catalysts that split water under visible light?" });
    await page.click(at("pause"));
    await context.close();
    return { done: ids[0], paused: ids[1], distilled: ids.distilled, key, draft };
}

mkdirSync(FOLDER, { recursive: true });
const m = await Millrace.start({ latency: 100, jitter: 60 });
const browser = await launch();
try {
    const runs = await prepare(browser, m, "en-US");
    for (const [locale, suffix, themes] of [["en-US", "", ["light", "dark"]], ["zh-CN", "-zh", ["light"]]])
        for (const [width, height] of Object.entries(WIDTHS))
            for (const theme of themes) {
                const context = await person(browser, m.url, { locale, colorScheme: theme, viewport: { width: Number(width), height } });
                await context.addInitScript(([k, d]) => localStorage.getItem(k) ?? localStorage.setItem(k, d), [runs.key, runs.draft]);
                await tour(await context.newPage(), m, `${width}-${theme}${suffix}`, runs);
                const admin = await context.newPage();
                if (locale === "en-US") await adminTour(admin, `${width}-${theme}`);
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
