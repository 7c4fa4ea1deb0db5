/* Why a row or a document has failed, or what it waits for: one sentence for each reason_code. What
 * is particular to it (a number, a field, the AI's mistake) is in the server's words beside the
 * code; where it is not found there, all of these words are said. */
import { i18n } from "@/common/i18n";
import type { Row } from "./extraction";

export type Reason = NonNullable<Row["reason_code"]>;

const NUMBER = /(\d+)/;
const FACTS: Partial<Record<Reason, RegExp>> = {
    bad_answer: /fits the template: (.*)/s,
    field_missing: /^(.*) was found in/s,
    pdf_pages: NUMBER,
    pdf_time: NUMBER,
    pdf_memory: NUMBER,
    too_much_text: NUMBER,
};
/* The file stays as it is: another try ends the same way. */
const LASTING: Reason[] = [
    "not_pdf",
    "pdf_locked",
    "pdf_damaged",
    "pdf_pages",
    "pdf_time",
    "pdf_memory",
    "too_much_text",
    "no_text",
];

/* Words of others end with a full stop, or do not; the sentence around them does. */
const bare = (words: string) => words.trim().replace(/[.。]$/, "");

/* A server that is newer than this page may have other codes. */
export function reasonOf(code: string | null | undefined, words: string | null | undefined) {
    const { t, te } = i18n.global;
    if (!code && !words) return "";
    const key = code && te(`extract.why.${code}`) ? (code as Reason) : "other";
    const said = words ?? code ?? "";
    return t(`extract.why.${key}`, { a: bare(FACTS[key]?.exec(said)?.[1] ?? said) });
}
export const rowReason = (r: Pick<Row, "reason_code" | "error" | "message">) =>
    reasonOf(r.reason_code, r.error ?? r.message);

export const canRetry = (r: Pick<Row, "state" | "reason_code"> | undefined) =>
    r?.state === "error" && !(r.reason_code && LASTING.includes(r.reason_code));
