/* Why a run does not move, as a sentence: one for each reason_code, with its facts. */
import type { Run } from "./api";
import { clock, number } from "./format";
import { i18n } from "./i18n";

type Told = Pick<Run, "reason_code" | "reason_facts"> & { reason?: string | null };

/* "status_503" is one of many, "status_5xx" all of its kind. */
export function causeOf(cause: string | null | undefined): string {
    const { t, te } = i18n.global;
    const status = /^status_(\w+)$/.exec(cause ?? "")?.[1];
    if (status) return t("run.downCause.status", { status });
    const known = `run.downCause.${cause}`;
    return cause && te(known) ? t(known) : t("run.downCause.other");
}

/* Words of others end with a full stop, or do not; the sentence around them does. */
const bare = (words: string) => words.trim().replace(/[.。]$/, "");

/* At work by its state, but nothing moves. A limit slows it only. */
export const stands = (r: Pick<Run, "state" | "reason_code">) =>
    r.state === "RUNNING" && !!r.reason_code && r.reason_code !== "rate_limit";

/* "" if it moves, and for what has words of its own. */
export function reasonOf(r: Told): string {
    const t = i18n.global.t;
    const f = r.reason_facts ?? {};
    const until = f.until ? clock(f.until) : "";
    switch (r.reason_code) {
        case null:
        case undefined:
            return "";
        case "other":
            return r.reason ? t("run.otherReason", { words: bare(r.reason) }) : "";
        case "no_key": {
            const cause = f.cause ?? "mixed";
            return t(`run.noKey.${cause === "capped" && until ? "cappedUntil" : cause}`, { until });
        }
        case "queued":
            return f.others && f.permission && f.others >= f.permission
                ? t("run.queuedOwn", { n: number(f.permission) })
                : f.position
                  ? t("run.reason.queued", { n: number(f.position), of: number(f.of ?? 1) })
                  : t("run.queued");
        case "service_down":
            return t("run.reason.service_down", {
                since: f.since ? clock(f.since) : "",
                cause: causeOf(f.cause),
            });
        default:
            return t(`run.reason.${r.reason_code}`, {
                until,
                limit: number(f.limit ?? 0),
                words: bare(f.words ?? ""),
            });
    }
}
