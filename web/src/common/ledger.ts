/* An entry of the ledger, as both the user and the admins read it. */
import type { LedgerEntry } from "./api";
import { i18n } from "./i18n";

type Told = Pick<LedgerEntry, "kind"> & { job?: string | null };

/* A job is paid by a deduction, and says what it was; one that has no words here is a deduction. */
export function entryOf(e: Told): string {
    const { t, te } = i18n.global;
    const job = `account.job.${e.job}`;
    return e.job && te(job) ? t(job) : t(`account.kind.${e.kind}`);
}

export const signOf = (e: Told) => (e.kind === "charge" || e.kind === "deduction" ? "−" : "+");
