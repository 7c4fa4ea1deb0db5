import { onMounted, ref, shallowRef } from "vue";
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
