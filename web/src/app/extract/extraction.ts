/* One task of extraction, followed by server-sent events. EventSource reconnects a broken stream by
 * itself, but gives up when the server answers with an error: then it is read again, ever more
 * slowly. */
import { onBeforeUnmount, ref, shallowRef } from "vue";
import { api, ApiError, get, noteDegraded, type Replies } from "@/common/api";
import { refreshMe, spending } from "../me";

export type Page = Replies["GET /api/tasks/{task_id}"];
export type Task = Page["task"];
export type Status = Replies["GET /api/tasks/{task_id}/status"];
export type Row = Page["rows"][number];
export type Field = Page["fields"][number];

const RETRY_MS = [500, 1000, 2000, 4000, 8000];
export const taskPath = (id: string) => `/api/tasks/${encodeURIComponent(id)}`;
export const isOpen = (x: Pick<Status, "status">) => x.status === "processing";
export const endedOf = (x: Pick<Status, "progress">) => x.progress.success + x.progress.failed;

export const filePath = (id: string, type: string) => `${taskPath(id)}/file?type=${type}`;
export const cancelTask = (id: string) => api<Status>("POST", `${taskPath(id)}/cancel`);
export const retryTask = (id: string) => api<Status>("POST", `${taskPath(id)}/retry`);

const rowPath = (id: string, place: number) => `${taskPath(id)}/rows/${place}`;
export const loadRow = (id: string, place: number) => get<Row>(rowPath(id, place));
export const retryRow = (id: string, place: number) =>
    api<Status>("POST", `${rowPath(id, place)}/retry`);

export function useTask(id: string, moved: () => void) {
    const task = shallowRef<Task | null>(null);
    const fields = shallowRef<Field[]>([]);
    const model = ref("");
    const failure = ref<ApiError | null>(null);
    const reconnecting = ref(false);
    let source: EventSource | null = null;
    let timer: number | undefined;
    let tries = 0;
    let gone = false;

    function take(s: Status) {
        if (!task.value) return;
        const before = task.value.status;
        task.value = { ...task.value, ...s };
        if (isOpen(s)) spending();
        if (before !== s.status) refreshMe().catch(() => {});
        moved();
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
        const s = new EventSource(`${taskPath(id)}/events`);
        source = s;
        const hear = (e: MessageEvent) => {
            tries = 0;
            reconnecting.value = false;
            const { degraded, ...status } = JSON.parse(e.data);
            noteDegraded(degraded === true);
            take(status);
            if (isOpen(status)) return;
            close();
            void load(); /* its times */
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
            const page = await get<Page>(`${taskPath(id)}?limit=1`);
            if (gone) return;
            failure.value = null;
            fields.value = page.fields;
            model.value = page.model;
            task.value = page.task;
            if (!isOpen(page.task)) reconnecting.value = false;
            else if (!source) follow();
        } catch (e) {
            if (gone || !(e instanceof ApiError)) return;
            if (e.status === 401) return;
            if (e.status === 404 || e.status === 400) failure.value = e;
            else again();
        }
    }

    /* After a retry it is open again. */
    function changed(s: Status) {
        take(s);
        if (isOpen(s) && !source) follow();
    }

    void load();
    onBeforeUnmount(() => {
        gone = true;
        close();
    });
    return { task, fields, model, failure, reconnecting, reload: load, changed };
}
