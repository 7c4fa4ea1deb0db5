/* How far posts are, by server-sent events. EventSource reconnects a broken stream by itself, but
 * gives up when the server answers with an error: then it is opened again, ever more slowly. What
 * happened meanwhile is read by `missed`. */
import { onBeforeUnmount, ref } from "vue";
import { noteDegraded } from "@/common/api";
import type { Status } from "./posts";

const RETRY_MS = [1000, 2000, 4000, 8000, 16000];

export function usePostEvents(
    address: string,
    hear: (s: Status) => void,
    missed: () => Promise<unknown> /* never fails; it may close */,
) {
    const reconnecting = ref(false);
    let source: EventSource | null = null;
    let timer: number | undefined;
    let tries = 0;
    let gone = false;

    function close() {
        source?.close();
        source = null;
        window.clearTimeout(timer);
        reconnecting.value = false;
        tries = 0;
    }
    function again() {
        source = null;
        timer = window.setTimeout(retry, RETRY_MS[Math.min(tries++, RETRY_MS.length - 1)]);
    }
    /* Also where there may be no further stream: one sees how far they are all the same. */
    async function retry() {
        await missed();
        if (reconnecting.value) open();
    }
    function open() {
        const s = new EventSource(address);
        source = s;
        const take = (e: MessageEvent) => {
            const { degraded, ...status } = JSON.parse(e.data);
            noteDegraded(degraded === true);
            hear(status);
        };
        s.addEventListener("state", take);
        s.addEventListener("progress", take);
        s.onopen = () => {
            tries = 0;
            if (reconnecting.value) void missed();
            reconnecting.value = false;
        };
        s.onerror = () => {
            if (source !== s) return;
            reconnecting.value = true;
            if (s.readyState === EventSource.CLOSED) again();
        };
    }
    /* Open already, or about to be: nothing. */
    function follow() {
        if (!source && !reconnecting.value && !gone) open();
    }
    onBeforeUnmount(() => {
        gone = true;
        close();
    });
    return { follow, close, reconnecting };
}
