/* What to tell people when something went wrong. */
import { ApiError } from "./api";
import { duration } from "./format";
import { i18n } from "./i18n";

const KNOWN = [
    "network",
    "unauthenticated",
    "forbidden",
    "not_found",
    "conflict",
    "exists",
    "funds",
    "rate",
    "busy",
    "unavailable",
    "uncertain",
    "limit",
    "invalid",
];

/* What is wrong with a field of the request, without the name of the field. */
export const complaintOf = (e: ApiError) =>
    e.field && e.message.startsWith(`${e.field}: `)
        ? e.message.slice(e.field.length + 2)
        : e.message;

export function explain(e: unknown): string {
    const t = i18n.global.t;
    if (!(e instanceof ApiError))
        return t("error.other", { message: e instanceof Error ? e.message : String(e) });
    const code = KNOWN.includes(e.code) ? e.code : e.status === 503 ? "busy" : "other";
    return t(`error.${code}`, { message: e.message, time: duration(e.retryAfter ?? 60) });
}
