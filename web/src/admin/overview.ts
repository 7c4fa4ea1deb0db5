/* How everything is doing, every second, as server-sent events. */
import { onBeforeUnmount, ref, shallowRef } from "vue";
import { ApiError, get } from "@/common/api";
import { explain } from "@/common/errors";

export interface Rate {
    used: number;
    limit: number;
    slots: number[];
}
export interface Store {
    up: boolean;
    latency_us: number;
    memory_bytes: number;
    memory_bytes_max: number;
    hits_permille: number;
    clients: number;
    problem: string | null;
}
export interface Overview {
    at: string;
    rpm: Rate;
    tpm: Rate;
    backlog: { queued: number; oldest_seconds: number; running: number; archive_waiting: number; downloads_waiting: number; downloads_building: number };
    workers: { total: number };
    nodes: { id: string; name: string; takes_work: boolean; drained: boolean; workers: number; ai_latency_us: number; silent_ms: number; late_us: number; resident_bytes: number; tasks: number }[];
    stores: { redis: Store; mysql: Store; redis_slowlog: number };
    billing: { records: number; records_max: number; alarm: boolean; moves: number; drift_cents: number; findings: number; audited_at: string | null };
    sessions: { users: number; admins: number };
    keys: { id: number; key: string; name: string; state: "active" | "resting" | "refused" | "disabled"; requests_used: number; requests_limit: number; tokens_used: number; tokens_limit: number; last_error: string | null }[];
    alerts: { name: string; text: string; since: string }[];
}
const AGAIN_MS = 3000;

export function useOverview() {
    const now = shallowRef<Overview | null>(null);
    const wrong = ref("");
    const missing = ref(false);
    let source: EventSource | null = null;
    let timer: number | undefined;

    function follow() {
        source = new EventSource("/api/admin/overview/events");
        source.addEventListener("overview", (e) => {
            now.value = JSON.parse((e as MessageEvent).data);
            wrong.value = "";
        });
        source.onerror = () => {
            if (source?.readyState !== EventSource.CLOSED) return;
            source = null;
            timer = window.setTimeout(load, AGAIN_MS);
        };
    }
    async function load() {
        try {
            now.value = await get<Overview>("/api/admin/overview");
            wrong.value = "";
            follow();
        } catch (e) {
            missing.value = e instanceof ApiError && e.status === 404;
            wrong.value = explain(e);
            if (!missing.value) timer = window.setTimeout(load, AGAIN_MS);
        }
    }
    load();
    onBeforeUnmount(() => {
        source?.close();
        window.clearTimeout(timer);
    });
    return { now, wrong, missing, load };
}
