// What people do on the pages.
import { chromium } from "playwright-core";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

export const PASSWORD = "correct horse";
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
export const at = (name) => `[data-test="${name}"]`;

/* Root may run it (--no-sandbox), and it sends nothing of its own. */
const ARGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
];
export const launch = () =>
    chromium.launch({
        executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
        headless: true,
        args: ARGS,
    });

/* What a console says of answers that tests ask for, and of servers that they stop. */
const EXPECTED =
    /status of (40[0-9]|429)|ERR_CONNECTION|status of 50[0-9]|ERR_INCOMPLETE|ERR_NETWORK/;

/* A browser of its own for one person; whatever goes wrong in its pages is kept in `wrong`. */
export async function person(browser, url, options = {}) {
    const context = await browser.newContext({
        locale: "en-US",
        viewport: { width: 1440, height: 900 },
        acceptDownloads: true,
        baseURL: url,
        ...options,
    });
    context.setDefaultTimeout(20000);
    context.wrong = [];
    context.elsewhere = [];
    context.on("page", (page) => {
        page.on("pageerror", (e) => context.wrong.push(`${e.message}`));
        page.on("console", (m) => {
            if (m.type() === "error" && !EXPECTED.test(m.text())) context.wrong.push(m.text());
        });
        page.on(
            "request",
            (r) =>
                r.url().startsWith(url) ||
                r.url().startsWith("data:") ||
                r.url().startsWith("blob:") ||
                context.elsewhere.push(r.url()),
        );
    });
    return context;
}

export async function register(page, name) {
    await page.goto("/");
    await page.click(at("swap"));
    await page.fill("#name", name);
    await page.fill("#password", PASSWORD);
    await page.click(at("submit"));
    await page.waitForSelector(at("start"));
}

export async function login(page, name) {
    await page.goto("/");
    await page.fill("#name", name);
    await page.fill("#password", PASSWORD);
    await page.click(at("submit"));
    await page.waitForSelector(at("start"));
}

export async function adminLogin(page, name) {
    await page.goto("/admin/login.html");
    await page.fill("#name", name);
    await page.fill("#password", PASSWORD);
    await page.click(at("submit"));
    await page.waitForSelector(at("nav-users"));
}

/* A new user, logged in. */
export async function open(m, browser, name, options = {}, balance = "100.00") {
    m.user(name, balance);
    const context = await person(browser, m.url, options);
    context.setDefaultTimeout(30000);
    const page = await context.newPage();
    await login(page, name);
    return { context, page };
}

/* By the API, as who is logged in on the page. */
export async function send(page, method, path, data, headers = {}) {
    const reply = await page.request.fetch(`/api/${path}`, {
        method,
        data,
        headers: { Origin: new URL(page.url()).origin, ...headers },
    });
    if (!reply.ok()) throw new Error(`${method} ${path}: ${await reply.text()}`);
    return reply.json();
}

/* An answer that refuses, for page.route. */
export const refusal = (status, code, message = "no", headers = {}) => ({
    status,
    headers,
    json: { success: false, error: { code, message } },
});

/* Once for a server: without a key of the embedding service posts wait. */
export async function embeddingKey(m, browser) {
    if (m.embeds) return;
    m.embeds = true;
    m.cli("admin", "add", "embedder");
    const context = await person(browser, m.url);
    const page = await context.newPage();
    await adminLogin(page, "embedder");
    await page.click(at("nav-keys"));
    await page.click(at("add-key"));
    await page.fill("#k-key", "sk-embedding-0123456789");
    await page.selectOption("#k-service", "embedding");
    await page.click(at("save-key"));
    await page.locator("tr", { hasText: "embedding" }).first().waitFor();
    await context.close();
}

/* The first field, all of its journals, these years. */
export async function choose(page, { field = 0, from, to } = {}) {
    await page.locator(".tags .chip").nth(field).click();
    await page.waitForFunction(
        () => document.querySelectorAll(".tags .chip[aria-pressed=true]").length === 1,
    );
    await page.locator(".picker .head input[type=checkbox]").check();
    if (from) await page.selectOption(at("year-from"), String(from));
    if (to) await page.selectOption(at("year-to"), String(to));
    await page.waitForSelector(`dl:not(.stale) ${at("cost")}`);
}

export async function start(page, question) {
    await page.fill("#question", question);
    await page.click(at("start"));
    await page.waitForURL(/#\/runs\//);
    await page.waitForSelector(at("finished"));
}

export const state = (page, which, timeout = 60000) =>
    page.locator(`${at("state")}.${which}`).waitFor({ timeout });

export async function download(page, name) {
    await page.click(at("download"));
    const [file] = await Promise.all([
        page.waitForEvent("download"),
        page.click(at(`get-${name}`)),
    ]);
    return { name: file.suggestedFilename(), text: readFileSync(await file.path(), "utf8") };
}

/* Serious findings of axe-core, as texts. */
export async function findings(page) {
    if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(AXE);
    return page.evaluate(async () => {
        const { violations } = await window.axe.run(document, { resultTypes: ["violations"] });
        return violations
            .filter((v) => v.impact === "serious" || v.impact === "critical")
            .flatMap((v) =>
                v.nodes.map((n) => {
                    const why = n.failureSummary?.split("\n")[1] ?? "";
                    return `${v.id}: ${n.html.slice(0, 140)} ${why}`;
                }),
            );
    });
}
