/* Why a search has failed, for people. */
import { ApiError } from "@/common/api";
import { explain } from "@/common/errors";
import { duration } from "@/common/format";
import { i18n } from "@/common/i18n";

export function explainSearch(e: unknown, like: boolean): string {
    const t = i18n.global.t;
    if (e instanceof ApiError && e.code === "rate")
        return t("search.tooOften", { time: duration(e.retryAfter ?? 60) });
    if (e instanceof ApiError && e.code === "unavailable") return t("search.away");
    if (e instanceof ApiError && e.code === "not_found" && like) return t("search.likeGone");
    return explain(e);
}

/* Why hits may be missing; a word that is not known here is of a later server. */
export function lackOf(reason: string | null | undefined): string {
    const { t, te } = i18n.global;
    const key = `search.reason.${reason}`;
    return reason ? t(te(key) ? key : "search.otherReason") : "";
}
