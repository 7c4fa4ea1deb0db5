/* The plan that is being asked for, kept in the browser until it is submitted. */
import { reactive, watch } from "vue";
import type { Replies } from "@/common/api";
import { number } from "@/common/format";
import { i18n } from "@/common/i18n";
import { submitter } from "@/common/submit";
import { today } from "./days";
import { me } from "./me";
import { label, type Kind, type Template, type Variable } from "./plans";

/* Values are texts, as in their fields; by the names of variables, which templates share. */
export interface PlanDraft {
    kind: Kind;
    template: number; /* 0: the default */
    values: Record<string, string>;
}
const empty = (): PlanDraft => ({ kind: "training", template: 0, values: {} });
export const planDraft = reactive<PlanDraft>(empty());

export const submitPlan = submitter<Replies["POST /api/plans"]>("/api/plans");

const key = () => `millrace.plan-draft.${me.value?.uid ?? 0}`;

watch(
    () => me.value?.uid,
    (uid) => {
        let kept: Partial<PlanDraft> = {};
        try {
            kept = uid ? JSON.parse(localStorage.getItem(key()) ?? "{}") : {};
        } catch {
            /* from an older version */
        }
        Object.assign(planDraft, empty(), kept);
    },
    { immediate: true },
);
watch(planDraft, () => me.value && localStorage.setItem(key(), JSON.stringify(planDraft)));

export function initial(v: Variable): string {
    if (v.name === "start_date" && !v.default) return today(1);
    if (v.name === "language" && v.default === "English" && i18n.global.locale.value !== "en")
        return "中文";
    return v.type === "text" ? label(v.default ?? "") : (v.default ?? "");
}

/* Of what is not typed yet, and of what is left of another template and does not fit. */
export function fill(template: Template) {
    for (const v of template.variables) {
        const old = planDraft.values[v.name];
        const fits = v.type !== "choice" || v.choices?.includes(old ?? "");
        const past = v.name === "start_date" && (old ?? "") < today();
        if (old === undefined || !fits || past) planDraft.values[v.name] = initial(v);
    }
}

const NUMBER = { integer: /^[-+]?\d+$/, number: /^[-+]?(\d+\.?\d*|\.\d+)$/ };

/* What is wrong with a value; "": nothing. The server checks once more. */
export function problem(v: Variable, typed: string): string {
    const { t } = i18n.global;
    const value = typed.trim();
    const least = v.least ?? -Infinity;
    const most = v.most ?? Infinity;
    if (!value) return v.required ? t("plans.wrong.missing") : "";
    if (v.type === "integer" || v.type === "number") {
        if (!NUMBER[v.type].test(value)) return t(`plans.wrong.${v.type}`);
        if (Number(value) < least || Number(value) > most)
            return t("plans.wrong.range", { least: number(least), most: number(most) });
    }
    const length = [...value].length;
    if (v.type === "text" && length > most) return t("plans.wrong.long", { most: number(most) });
    if (v.type === "text" && length < least)
        return t("plans.wrong.short", { least: number(least) });
    if (v.type === "date" && !/^\d{4}-\d\d-\d\d$/.test(value)) return t("plans.wrong.date");
    return "";
}

/* What is sent: nothing where nothing is typed. */
export function valuesOf(template: Template): Record<string, string | number> {
    const out: Record<string, string | number> = {};
    for (const v of template.variables) {
        const value = (planDraft.values[v.name] ?? "").replace(/\s+/g, " ").trim();
        const numeric = v.type === "integer" || v.type === "number";
        if (value) out[v.name] = numeric ? Number(value) : value;
    }
    return out;
}
