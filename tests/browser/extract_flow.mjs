// What people do with extractions, and what their documents say.
import { at, send } from "./flow.mjs";

export { open, send } from "./flow.mjs";

export const SLOW_MS = 60000;

export const upload = async (page, name, text) =>
    (
        await send(page, "POST", `documents?name=${name}`, Buffer.from(text), {
            "Content-Type": "application/octet-stream",
        })
    ).document_id;

export const FIELDS = [
    { name: "Sample size", type: "integer", required: true },
    { name: "Dose", type: "number", unit: "mg", instruction: "A single dose" },
    { name: "Randomised", type: "boolean" },
    { name: "Began", type: "date" },
    { name: "Design", type: "choice", choices: ["Trial", "Cohort"] },
    { name: "Countries", type: "list", of: "text" },
];
/* What the simulated AI finds. Characters of several bytes stand before every quote. */
export const paper = (i, more = "") =>
    `头痛 – étude ${i}\n\nSample size: ${100 + i}. The dose was ${50 - i}.5 mg. Randomised: yes.\n` +
    `Began: 2021-03-0${i}. Design: ${i % 2 ? "trial" : "cohort"}.\n${more}`;
export const file = (name, text) => ({ name, mimeType: "text/plain", buffer: Buffer.from(text) });
export const FILLING = "Nothing is said here of what is looked for, 什么也没有. ".repeat(60);

export async function makeTask(page, texts, name = "") {
    const template = await send(page, "POST", "templates", { name: "Trials", fields: FIELDS });
    const document_ids = [];
    for (const [i, text] of texts.entries())
        document_ids.push(await upload(page, `paper-${i + 1}.txt`, text));
    const { taskId } = await send(page, "POST", "tasks", {
        template_id: template.template_id,
        document_ids,
        request_id: `${Date.now()}`,
        name,
    });
    return taskId;
}
export async function ended(page, id) {
    for (const end = Date.now() + SLOW_MS; Date.now() < end; await page.waitForTimeout(300)) {
        const { status } = await send(page, "GET", `tasks/${id}/status`);
        if (status !== "processing") return;
    }
    throw new Error(`${id} has not ended`);
}
export const cell = (row, column) => `[data-row="${row}"] [data-column="${column}"]`;
export const said = (page, test, words) =>
    page.locator(at(test), { hasText: words }).first().waitFor();
