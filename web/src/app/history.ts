/* The runs of this user, newest first, fresh while one of them moves. */
import { computed, ref } from "vue";
import { get, isActive, type Replies, type Run } from "@/common/api";
import { spending } from "./me";

export const runs = ref<Run[]>([]);
export const next = ref<string | null>(null);
export const loaded = ref(false);

const PAGE = 50;

export async function loadRuns() {
    const page = await get<Replies["GET /api/queries"]>(`/api/queries?limit=${PAGE}`);
    const seen = new Set(page.queries.map((r) => r.query_id));
    const oldest = page.queries.at(-1)?.created_at ?? "";
    /* Pages that were asked for before stay. */
    const older = page.next
        ? runs.value.filter((r) => !seen.has(r.query_id) && r.created_at < oldest)
        : [];
    if (!older.length) next.value = page.next ?? null;
    runs.value = [...page.queries, ...older];
    loaded.value = true;
    if (runs.value.some((r) => isActive(r.state))) spending();
}

export async function loadOlder() {
    if (!next.value) return;
    const page = await get<Replies["GET /api/queries"]>(
        `/api/queries?limit=${PAGE}&cursor=${encodeURIComponent(next.value)}`,
    );
    runs.value = [...runs.value, ...page.queries];
    next.value = page.next ?? null;
}

export function forgetRuns() {
    runs.value = [];
    next.value = null;
    loaded.value = false;
}

export function noteProgress(id: string, p: Partial<Run>) {
    const run = runs.value.find((r) => r.query_id === id);
    if (run) Object.assign(run, p);
}

export interface Node {
    run: Run;
    depth: number;
}

/* Distillations stand below the run they came from. One whose parent is on a later page stands
 * alone. */
export const tree = computed<Node[]>(() => {
    const children = new Map<string, Run[]>();
    const ids = new Set(runs.value.map((r) => r.query_id));
    const isChild = (r: Run) => r.original_query_id != null && ids.has(r.original_query_id);
    for (const r of runs.value)
        if (isChild(r))
            children.set(r.original_query_id!, [...(children.get(r.original_query_id!) ?? []), r]);
    const out: Node[] = [];
    const add = (run: Run, depth: number) => {
        out.push({ run, depth });
        for (const child of children.get(run.query_id) ?? []) add(child, depth + 1);
    };
    runs.value.filter((r) => !isChild(r)).forEach((r) => add(r, 0));
    return out;
});
