/* The plans of this user and the making of new ones, which is asked for while something is made. */
import { ref } from "vue";
import { api, ApiError, get, type PlanKind, type Replies } from "@/common/api";
import { duration } from "@/common/format";
import { explain } from "@/common/errors";
import { i18n } from "@/common/i18n";
import { me, refreshMe } from "./me";

export type Kind = PlanKind;
export const KINDS: Kind[] = ["training", "nutrition"];
export type Plan = Replies["GET /api/plans"]["plans"][number];
export type Task = Replies["GET /api/generation/{generation_id}"];
export type Template = Replies["GET /api/plan_templates"]["templates"][number];
export type Variable = Template["variables"][number];

const PAGE = 50;
const path = (...parts: string[]) => ["/api", ...parts.map(encodeURIComponent)].join("/");

/* --- plans --- */

export const plans = ref<Plan[]>([]);
export const next = ref<string | null>(null);
export const loaded = ref(false);

export async function loadPlans() {
    const page = await get<Replies["GET /api/plans"]>(`/api/plans?limit=${PAGE}`);
    plans.value = page.plans;
    next.value = page.next ?? null;
    loaded.value = true;
}

export async function loadOlderPlans() {
    if (!next.value) return;
    const page = await get<Replies["GET /api/plans"]>(
        `/api/plans?limit=${PAGE}&cursor=${encodeURIComponent(next.value)}`,
    );
    plans.value = [...plans.value, ...page.plans];
    next.value = page.next ?? null;
}

export const activate = (id: string) => api("POST", path("plans", id, "activate"));
export const deletePlan = (id: string) => api("DELETE", path("plans", id));

/* --- tasks ---
 * The server lists those that have not ended. A task that was seen here and is not listed any more
 * is asked for by itself: so it is told how it ended, also after a reload. */

export const tasks = ref<Task[]>([]);
export const isOpen = (x: Task) => x.status === "generating";

const key = () => `millrace.plan-tasks.${me.value?.uid ?? 0}`;

function remembered(): string[] {
    try {
        return JSON.parse(localStorage.getItem(key()) ?? "[]");
    } catch {
        return [];
    }
}
/* What is completed is among the plans, and what is cancelled was wanted so. */
function remember() {
    const kept = tasks.value.filter((x) => isOpen(x) || x.status === "failed");
    localStorage.setItem(key(), JSON.stringify(kept.map((x) => x.task_id)));
}

export function noteTask(id: string) {
    localStorage.setItem(key(), JSON.stringify([...new Set([...remembered(), id])]));
}

/* null: there is no such task any more. */
async function endOf(id: string): Promise<Task | null> {
    const known = tasks.value.find((x) => x.task_id === id);
    if (known && !isOpen(known)) return known;
    try {
        return await get<Task>(path("generation", id));
    } catch (e) {
        if (e instanceof ApiError && e.status === 404) return null;
        throw e;
    }
}

export async function loadTasks() {
    const open = (await get<Replies["GET /api/generation"]>("/api/generation")).tasks;
    const listed = new Set(open.map((x) => x.task_id));
    const before = tasks.value.filter(isOpen).length;
    const ids = new Set([...tasks.value.map((x) => x.task_id), ...remembered()]);
    const gone = [...ids].filter((id) => !listed.has(id));
    const ended = (await Promise.all(gone.map(endOf))).filter((x) => x !== null);
    tasks.value = [...open, ...ended.filter((x) => x.status !== "cancelled")];
    remember();
    if (before > open.length) await Promise.all([loadPlans(), refreshMe()]);
}

export function dismissTask(id: string) {
    tasks.value = tasks.value.filter((x) => x.task_id !== id);
    remember();
}

export async function cancelTask(id: string) {
    await api("DELETE", path("generation", id));
    dismissTask(id);
    await refreshMe().catch(() => {});
}

/* What is of another user, or of an earlier visit of this page. */
export function forgetPlans() {
    tasks.value = [];
    plans.value = [];
    next.value = null;
    loaded.value = false;
}

/* --- words --- */

/* Words of the server end with a full stop, or do not; the sentence around them does. */
const bare = (words: string) => words.trim().replace(/[.。]$/, "");

/* What a task waits for, or why it has failed; "": nothing to say. */
export function storyOf(x: Task): string {
    const { t, te } = i18n.global;
    if (!x.message) return x.status === "failed" ? t("plans.failedSilently") : "";
    const stories = `plans.${isOpen(x) ? "waits" : "failed"}`;
    const known = `${stories}.${x.reason_code}`;
    /* The sentence of bad_answer says that itself. */
    const words = bare(x.message.replace(/^the AI gave no plan that can be used: /, ""));
    return t(te(known) ? known : `${stories}.other`, { words });
}

export function explainPlan(e: unknown): string {
    const { t } = i18n.global;
    if (!(e instanceof ApiError)) return explain(e);
    if (e.code === "funds") return t("plans.notEnough");
    if (e.code === "rate" && e.retryAfter)
        return t("plans.limitReached", { time: duration(e.retryAfter) });
    if (e.code === "rate") return t("plans.tooMany");
    return explain(e);
}

/* Labels of the templates that come with millrace, in the language of the page. */
export function label(words: string): string {
    const known = i18n.global.tm("plans.labels") as Record<string, string>;
    return known[words] ?? words;
}

/* A variable of a plan that was made: its template may be another one by now. */
export function labelOfName(name: string): string {
    const words = name.replaceAll("_", " ");
    return label(words.charAt(0).toUpperCase() + words.slice(1));
}
