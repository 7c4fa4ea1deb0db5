// Prompt templates: found, written with a preview beside it, versions, the default; in both
// languages and on a small screen.
import { adminLogin, at, person } from "./flow.mjs";
import { clean, equal, ok, test } from "./tap.mjs";

async function open(m, browser, name, options = {}) {
    m.cli("admin", "add", name);
    const context = await person(browser, m.url, options);
    const page = await context.newPage();
    await adminLogin(page, name);
    await page.click(at("nav-templates"));
    await page.waitForSelector(at("template-1"));
    return { context, page };
}
const prompt = (page, text) => page.locator(at("prompt"), { hasText: text }).waitFor();
const saved = async (page) => {
    await page.locator(".toast.good").last().waitFor();
    await page.waitForFunction(
        () => document.querySelector('[data-test="save-template"]')?.disabled,
    );
};

test("a template is written", async ({ m, browser }) => {
    const { context, page } = await open(m, browser, "writer");
    await clean(page, "templates");
    equal(
        await page.locator("tbody th").allInnerTexts(),
        ["Nutrition plans", "Training plans"],
        "by category",
    );
    await page.click(at("add-template"));
    await page.fill("#t-name", "Short and hard");
    await page.locator("#t-text").press("End");
    const head = await page.inputValue("#t-text");
    await page.fill("#t-text", `${head}- Goal: {{goal}}\n`);
    await page.locator(at("preview-problem"), { hasText: "goal" }).waitFor();
    ok(true, "what is wrong is told while it is typed");
    await page.click(at("add-variable"));
    const row = page.locator("tbody tr").last();
    await row.locator("input").nth(0).fill("goal");
    await row.locator("input").nth(1).fill("Goal");
    await row.locator("input[type=checkbox]").check();
    await page.locator(at("preview-problem"), { hasText: "goal: is missing" }).waitFor();
    await page.fill("#value-goal", "run {{weeks}}");
    await prompt(page, "- Goal: run ((weeks))");
    await prompt(page, "Weeks: 4");
    ok(/about \d+ tokens/.test(await page.innerText(at("tokens"))), "the prompt, with its tokens");
    await clean(page, "a new template");
    await page.reload();
    await page.click(at("add-template"));
    await page.waitForFunction(() => document.querySelector("#t-name")?.value.startsWith("Short"));
    ok(true, "what was typed survives a reload");
    await page.click(at("save-template"));
    await page.waitForSelector(at("make-default"));
    await page.fill("#t-name", "Shorter");
    await page.click(at("save-template"));
    await saved(page);
    await page.click(at("versions"));
    await page.click(at("restore-1"));
    await page.waitForFunction(() => document.querySelector("#t-name").value.startsWith("Short a"));
    ok(true, "an old version comes into the editor");
    await page.click(at("templates-back"));
    await page.click(at("sure"));
    const made = page.locator("tr", { hasText: "Shorter" });
    await made.waitFor();
    ok(true, "and counts only when it is saved");
    await made.locator("button", { hasText: "Make default" }).click();
    await made.locator(".mark").waitFor();
    equal(await page.locator(".mark").count(), 2, "one default for each category");
    await page.click(at("default-template-1"));
    await page.locator(`${at("template-1")} .mark`).waitFor();
    await made.locator("button", { hasText: "Delete" }).click();
    await page.click(at("sure"));
    await made.waitFor({ state: "detached" });
    ok(true, "the default goes back, and the new one is deleted");
    equal(context.wrong, [], "no error in the console");
    await context.close();
});

test("two admins write the same template", async ({ m, browser }) => {
    const { context, page } = await open(m, browser, "first");
    const { context: theirs, page: other } = await open(m, browser, "second");
    for (const p of [page, other]) {
        await p.click(at("edit-template-2"));
        await p.waitForSelector("#t-subcategory");
    }
    await other.fill("#t-subcategory", "theirs");
    await other.click(at("save-template"));
    await saved(other);
    await page.fill("#t-subcategory", "mine");
    await page.click(at("save-template"));
    await page.waitForSelector(at("take-newer"));
    equal(await page.inputValue("#t-subcategory"), "mine", "the second is told, and loses nothing");
    await clean(page, "a template that was changed meanwhile");
    await page.click(at("take-newer"));
    await page.waitForFunction(() => document.querySelector("#t-subcategory").value === "theirs");
    ok(true, "until the new version is taken");
    context.wrong.length = 0; // the refusal is one
    await theirs.close();
    await context.close();
});

test("templates in Chinese, on a small screen", async ({ m, browser }) => {
    const { context, page } = await open(m, browser, "small", {
        locale: "zh-CN",
        viewport: { width: 390, height: 800 },
    });
    await page.locator("h2", { hasText: "模板" }).waitFor();
    await page.click(at("edit-template-1"));
    await page.fill("#value-goals", "跑步");
    await prompt(page, "- Goals: 跑步");
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    ok(wide <= 390, "nothing is wider than the screen", wide);
    await clean(page, "a template on a small screen");
    equal(context.wrong, [], "no error in the console");
    await context.close();
});
