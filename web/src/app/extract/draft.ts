/* The extraction that is being put together, kept in the browser until it is submitted. */
import { reactive, watch } from "vue";
import { ApiError, type Replies } from "@/common/api";
import { complaintOf, explain } from "@/common/errors";
import { duration } from "@/common/format";
import { i18n } from "@/common/i18n";
import { submitter } from "@/common/submit";
import { me } from "../me";
import { reasonOf } from "./reasons";
import { language } from "./templates";

export interface Draft {
    template: string;
    source: "documents" | "run";
    documents: string[];
    run: string;
    some: boolean; /* of the run: those that are picked, else all that are relevant */
    dois: string[];
    name: string;
    webhook: string;
}
const empty = (): Draft => ({
    template: "",
    source: "documents",
    documents: [],
    run: "",
    some: false,
    dois: [],
    name: "",
    webhook: "",
});
export const draft = reactive<Draft>(empty());
export const forgetDraft = () => Object.assign(draft, empty());

const key = () => `millrace.extract-draft.${me.value?.uid ?? 0}`;
watch(
    () => me.value?.uid,
    (uid) => {
        let kept: Partial<Draft> = {};
        try {
            kept = uid ? JSON.parse(localStorage.getItem(key()) ?? "{}") : {};
        } catch {
            /* from an older version */
        }
        Object.assign(draft, empty(), kept);
    },
    { immediate: true },
);
watch(draft, () => me.value && localStorage.setItem(key(), JSON.stringify(draft)));

/* What the server is asked for; null: something is not chosen yet. */
export function wishOf(d: Draft): Record<string, unknown> | null {
    const what =
        d.source === "documents"
            ? d.documents.length && { document_ids: d.documents }
            : d.run && (!d.some || d.dois.length) && {
                  query_id: d.run,
                  ...(d.some && { dois: d.dois }),
              };
    if (!d.template || !what) return null;
    return { template_id: d.template, language: language(), ...what };
}

/* Of one that is submitted, besides. */
export const moreOf = (d: Draft) => ({
    ...(d.name.trim() && { name: d.name.trim() }),
    ...(d.webhook.trim() && { webhook: d.webhook.trim() }),
});

export const submitTask = submitter<Replies["POST /api/tasks"]>("/api/tasks");

export function explainTask(e: unknown): string {
    const { t } = i18n.global;
    if (!(e instanceof ApiError)) return explain(e);
    if (e.code === "funds") return t("extract.notEnough");
    if (e.code === "rate" && e.retryAfter)
        return t("extract.limitReached", { time: duration(e.retryAfter) });
    if (e.code === "rate") return t("extract.tooMany");
    if (e.code === "not_found") return t("extract.somethingGone");
    if (e.code === "conflict" && /archive/.test(e.message)) return t("distill.notYet");
    if (e.code === "conflict" && /relevant/.test(e.message)) return t("extract.noRelevant");
    if (e.code === "invalid") return reasonOf(null, complaintOf(e));
    return explain(e);
}
