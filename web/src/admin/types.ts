import { onMounted, onUnmounted, ref, shallowRef } from "vue";
import { get, type Replies } from "@/common/api";
import { explain } from "@/common/errors";

export type AdminMe = Replies["GET /api/admin/me"];
export type User = Replies["GET /api/admin/users/{uid}"];

type Route = Extract<keyof Replies, `GET ${string}`>;
export type Row<R extends Route, N extends keyof Replies[R]> = Replies[R][N] extends (infer T)[]
    ? T
    : never;

/* A list that comes page by page; `name` is its member of the reply. */
export function usePages<R extends Route, N extends keyof Replies[R]>(
    route: R,
    name: N,
    query = () => "",
) {
    const rows = shallowRef<Row<R, N>[]>([]);
    const next = ref<string | null>(null);
    const busy = ref(false);
    const wrong = ref("");
    let asked = 0;

    async function load(more = false) {
        const mine = ++asked;
        busy.value = true;
        wrong.value = "";
        try {
            const parameters = new URLSearchParams(query());
            if (more && next.value) parameters.set("cursor", next.value);
            const url = `${route.slice("GET ".length)}?${parameters}`.replace(/\?$/, "");
            const page = await get<Replies[R] & { next?: string | null }>(url);
            if (mine !== asked) return;
            const found = page[name] as Row<R, N>[];
            rows.value = more ? [...rows.value, ...found] : found;
            next.value = page.next ?? null;
        } catch (e) {
            if (mine === asked) wrong.value = explain(e);
        } finally {
            if (mine === asked) busy.value = false;
        }
    }
    onMounted(() => load());
    return { rows, next, busy, wrong, load };
}

/* What is looked at again and again while the page is open and seen. After an error the last values
 * stay, and `wrong` says why they are old. */
export function useLive<R extends Route>(route: R, eachMs: number, after = () => {}) {
    const value = shallowRef<(Replies[R] & { degraded?: boolean }) | null>(null);
    const wrong = ref("");
    let asking: Promise<void> | null = null;
    let timer = 0;

    async function ask() {
        try {
            value.value = await get<Replies[R]>(route.slice("GET ".length));
            wrong.value = "";
            after();
        } catch (e) {
            wrong.value = explain(e);
        } finally {
            asking = null;
        }
    }
    /* After a change: what was asked for before it may lack it. */
    async function load() {
        await asking;
        await (asking = ask());
    }
    onMounted(() => {
        void load();
        timer = window.setInterval(() => document.hidden || asking || load(), eachMs);
    });
    onUnmounted(() => window.clearInterval(timer));
    return { value, wrong, load };
}
