// Tests by name, and TAP.
import { cpus, loadavg } from "node:os";
import { findings } from "./flow.mjs";

let count = 0;
let failed = 0;
export const tests = [];
export const test = (name, fn) => tests.push({ name, fn, smokes: false });
/* Also part of the smoke, which every ./test runs: together they take less than a minute. */
export const smoke = (name, fn) => tests.push({ name, fn, smokes: true });

export function ok(held, name, ...details) {
    count++;
    if (!held) failed++;
    console.log(`${held ? "ok" : "not ok"} ${count} - ${name}`);
    if (!held)
        for (const d of details)
            for (const l of String(typeof d === "string" ? d : JSON.stringify(d)).split("\n"))
                console.log("#", l);
    return held;
}
export const equal = (got, want, name) =>
    ok(JSON.stringify(got) === JSON.stringify(want), name, { got, want });

/* How many processes want each core, as the last minute had it: limits of time are for a machine
 * that has nothing else to do, and get longer by this factor. */
const CROWD_MAX = 8;
export const crowd = () => Math.min(Math.max(loadavg()[0] / cpus().length, 1), CROWD_MAX);

/* What comes in has come in: colours are those of the page at rest, however slow the machine is.
 * A transition begins some frames after its element was added. */
const settled = (page) =>
    page.evaluate(async () => {
        for (let i = 0; i < 4; i++) await new Promise((next) => requestAnimationFrame(next));
        const ends = document
            .getAnimations()
            .filter((a) => a.effect?.getComputedTiming().iterations !== Infinity)
            .map((a) => a.finished.catch(() => {}));
        await Promise.race([Promise.all(ends), new Promise((late) => setTimeout(late, 5000))]);
    });

/* What holds of every page: no serious findings of axe-core, light or dark, and nothing sticks out
 * on a telephone. */
export async function clean(page, name) {
    for (const colorScheme of ["light", "dark"]) {
        await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
        await page.waitForFunction(
            (theme) => document.documentElement.dataset.theme === theme,
            colorScheme,
        );
        await settled(page);
        equal(
            await findings(page),
            [],
            `${name}, ${colorScheme}: axe-core has no serious findings`,
        );
    }
    await page.emulateMedia({ colorScheme: null, reducedMotion: null });
    const size = page.viewportSize();
    await page.setViewportSize({ width: 390, height: 844 });
    await page.waitForTimeout(150); // what measures itself
    equal(
        await page.evaluate(() => Math.max(0, document.documentElement.scrollWidth - innerWidth)),
        0,
        `${name}: nothing sticks out at 390 pixels`,
    );
    await page.setViewportSize(size);
}

export function done() {
    if (!count) ok(false, "something was tested");
    console.log(`1..${count}`);
    return failed;
}
