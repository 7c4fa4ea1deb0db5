/* One run, followed by server-sent events. The browser's EventSource reconnects a broken stream by
 * itself, but gives up when the server answers with an error: then we try again, ever more slowly.
 * */
import { onBeforeUnmount, ref, shallowRef } from "vue";
import { ApiError, get, isFinal, noteDegraded, type Run } from "@/common/api";
import { loadRuns, noteProgress } from "./history";
import { refreshMe, spending } from "./me";

const RETRY_MS = [500, 1000, 2000, 4000, 8000];

export function useRun(id: string) {
    const run = shallowRef<Run | null>(null);
    const failure = ref<ApiError | null>(null);
    const reconnecting = ref(false);
    let source: EventSource | null = null;
    let timer: number | undefined;
    let tries = 0;
    let gone = false;
    let judged = false; /* the run was read since its first verdict, and says whose it is */

    function take(p: Partial<Run>) {
        if (!run.value) return;
        const before = run.value.state;
        run.value = { ...run.value, ...p };
        noteProgress(id, p);
        if (run.value.finished && !judged) void load();
        if (run.value.state === "RUNNING") spending();
        if (before !== run.value.state) {
            refreshMe().catch(() => {});
            loadRuns().catch(() => {});
        }
    }

    function close() {
        source?.close();
        source = null;
        window.clearTimeout(timer);
    }

    function again() {
        close();
        if (gone) return;
        reconnecting.value = true;
        timer = window.setTimeout(load, RETRY_MS[Math.min(tries++, RETRY_MS.length - 1)]);
    }

    function follow() {
        close();
        const s = new EventSource(`/api/queries/${encodeURIComponent(id)}/events`);
        source = s;
        const hear = (e: MessageEvent) => {
            tries = 0;
            reconnecting.value = false;
            const { degraded, ...progress } = JSON.parse(e.data);
            noteDegraded(degraded === true);
            take(progress);
            if (run.value && isFinal(run.value.state)) {
                close();
                load(); /* its times */
            }
        };
        s.addEventListener("state", hear);
        s.addEventListener("progress", hear);
        s.onerror = () => {
            if (source !== s) return;
            reconnecting.value = true;
            if (s.readyState === EventSource.CLOSED) again();
        };
    }

    async function load() {
        try {
            const fresh = await get<Run>(`/api/queries/${encodeURIComponent(id)}`);
            if (gone) return;
            failure.value = null;
            judged = fresh.finished > 0;
            run.value = { ...run.value, ...fresh, papers_per_second: undefined };
            noteProgress(id, fresh);
            if (isFinal(fresh.state)) reconnecting.value = false;
            else if (!source) follow();
        } catch (e) {
            if (gone || !(e instanceof ApiError)) return;
            if (e.status === 401) return;
            if (e.status === 404 || e.status === 400) failure.value = e;
            else again();
        }
    }

    load();
    onBeforeUnmount(() => {
        gone = true;
        close();
    });
    return { run, failure, reconnecting, reload: load, take };
}
