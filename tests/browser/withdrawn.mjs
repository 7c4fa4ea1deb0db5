// Papers that leave the corpus while they are screened, and come back.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { at, login, person, state } from "./flow.mjs";
import { Millrace } from "./millrace.mjs";
import { clean, equal, ok, test } from "./tap.mjs";

const PAPERS = 12;
const SLOW_MS = 2000; /* of the AI: a run is to be seen, and paused, before it ends */
const JOURNAL = "Letters";

/* A folder as db init reads it, with so many papers of one journal. */
class Corpus {
    constructor(m) {
        this.m = m;
        this.top = mkdtempSync(join(tmpdir(), "mrcorpus"));
        for (const name of ["APIKey", "PaperAndTagInfo", `Data/${JOURNAL}`])
            mkdirSync(join(this.top, name), { recursive: true });
        writeFileSync(join(this.top, "APIKey/k.txt"), "sk-of-a-test\n");
        writeFileSync(
            join(this.top, "PaperAndTagInfo/InfoList.Paper.csv"),
            `Name,FullName,DataRange,UpdateDate,Price\n${JOURNAL},,,,1\n`,
        );
    }

    load(papers) {
        const entries = Array.from(
            { length: papers },
            (_, i) =>
                `@article{k${i}, doi = {10.5555/w${i}}, year = {2024},\n` +
                ` title = {Catalysts number ${i}}, abstract = {They split water.}}\n`,
        );
        writeFileSync(join(this.top, `Data/${JOURNAL}/a.bib`), entries.join(""));
        this.m.cli("db", "init", "--data", this.top, "--prune");
        this.m.cli("db", "warm");
    }

    remove() {
        rmSync(this.top, { recursive: true, force: true });
    }
}

const submit = (page) =>
    page.evaluate(async (journal) => {
        const r = await fetch("/api/queries", {
            method: "POST",
            headers: { "Content-Type": "application/json" },
            body: JSON.stringify({
                question: "Does it split water?",
                journals: [journal],
                year_from: 2000,
                year_to: 2100,
            }),
        });
        return (await r.json()).query_id;
    }, JOURNAL);

const text = (page, where) => page.locator(where).first().textContent();

/* What is said of the first paper of these kinds, in its row and in the panel. */
async function look(page, filter, kinds) {
    await page.click(at(`filter-${filter}`));
    const row = page.locator(`[data-row]:is(${kinds})`).first();
    await row.waitFor();
    const title = await row.locator("strong").textContent();
    const reason = await row.locator(".paper .soft").textContent();
    await row.click();
    await page.waitForSelector(at("abstract"));
    const panel = {
        title: (await text(page, ".panel h2")).trim(),
        why: await text(page, ".panel .why"),
        abstract: (await text(page, at("abstract"))).trim(),
    };
    await page.click(at("close-paper"));
    return { title, reason, panel };
}

/* Some papers judged, the others gone before their turn. */
async function screened(m, corpus, page) {
    await m.ai({ latency: SLOW_MS });
    const id = await submit(page);
    await page.goto(`/#/runs/${id}`);
    await page.waitForFunction(() =>
        /^\s*[2-9]/.test(document.querySelector('[data-test="finished"]')?.textContent ?? ""),
    );
    await page.click(at("pause"));
    await state(page, "PAUSED");
    await m.ai({});
    corpus.load(0);
    await page.click(at("resume"));
    await state(page, "DONE");
}

const LOCALES = {
    "en-US": ["(not in the corpus any more)", "left the corpus", "is not in the corpus any more."],
    "zh-CN": ["（已不在文献库中）", "轮到这篇论文时", "这篇论文已不在文献库中。"],
};

async function pages(m, corpus, browser) {
    for (const [locale, [gone, why, hint]] of Object.entries(LOCALES)) {
        corpus.load(PAPERS);
        const name = `left-${locale.slice(0, 2)}`;
        m.user(name, "1000.00", 1);
        const context = await person(browser, m.url, { locale });
        const page = await context.newPage();
        await login(page, name);
        await screened(m, corpus, page);
        const withdrawn = Number(await text(page, at("withdrawn")));
        ok(withdrawn > 0 && withdrawn < PAPERS, `${locale}: papers left before their turn`);
        const left = await look(page, "failed", ".withdrawn");
        ok(left.title === gone && left.reason.includes(why), `${locale}: a row says so`, left);
        ok(
            left.panel.title === gone &&
                left.panel.why.includes(why) &&
                left.panel.abstract.includes(hint),
            `${locale}: and so does the paper`,
            left,
        );
        const before = await look(page, "all", ".relevant, .irrelevant");
        ok(
            before.panel.title === gone && before.panel.abstract.includes(hint),
            `${locale}: one that left after its verdict does, too`,
            before,
        );
        await clean(page, `${locale}: withdrawn papers`);
        corpus.load(PAPERS);
        await page.click(at("retry"));
        await page.locator(at("withdrawn")).waitFor({ state: "detached" });
        await state(page, "DONE");
        ok(true, `${locale}: back in the corpus, they are judged`);
        equal(await page.locator(at("retry")).count(), 0, `${locale}: nothing is left to retry`);
        equal(context.wrong, [], `${locale}: no error in the console`);
        await context.close();
    }
}

test("papers that left the corpus", async ({ browser }) => {
    const m = await Millrace.start({ papers: 0, latency: 100 });
    const corpus = new Corpus(m);
    try {
        await pages(m, corpus, browser);
    } finally {
        corpus.remove();
        await m.stop();
    }
});
