// Prints TAP: whole flows on real Chromium against a real server. run.mjs [--smoke] [part of a
// name]
import { launch } from "./flow.mjs";
import { Millrace } from "./millrace.mjs";
import { done, ok, tests } from "./tap.mjs";
import "./researchers.mjs";
import "./withdrawn.mjs";
import "./admins.mjs";
import "./figures.mjs";
import "./reasons.mjs";
import "./templates.mjs";
import "./tokens.mjs";
import "./pools.mjs";
import "./queues.mjs";
import "./plans.mjs";
import "./search.mjs";
import "./posts.mjs";
import "./search_index.mjs";
import "./extract.mjs";
import "./extract_reasons.mjs";
import "./extract_tasks.mjs";
import "./api.mjs";

const PACE = { latency: 60, jitter: 30 };
const args = process.argv.slice(2);
const smokeOnly = args[0] === "--smoke";
if (smokeOnly) args.shift();
const only = args[0];
const began = Date.now();
const m = await Millrace.start(PACE);
let browser;
try {
    browser = await launch();
    for (const { name, fn, smokes } of tests) {
        if ((smokeOnly && !smokes) || (only && !name.includes(only))) continue;
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
    await browser?.close();
    await m.stop();
}
console.log("#", `${((Date.now() - began) / 1000).toFixed(0)} s in all`);
process.exit(done() ? 1 : 0);
