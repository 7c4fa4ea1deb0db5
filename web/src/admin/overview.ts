/* How everything is doing, every second, as server-sent events. */
import { onBeforeUnmount, ref, shallowRef } from "vue";
import { ApiError, get, type Replies } from "@/common/api";
import { explain } from "@/common/errors";

export type Overview = Replies["GET /api/admin/overview"];
export type Rate = Overview["rpm"];
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
