import { onMounted, ref, shallowRef } from "vue";
import { get } from "@/common/api";
import { explain } from "@/common/errors";

export interface AdminMe {
    uid: number;
    username: string;
    role: "super" | "admin";
}
export interface User {
    uid: number;
    username: string;
    balance: string;
    permission: number;
    banned: boolean;
    created_at: string;
    runs?: number;
    runs_active?: number;
}

/* A list that comes page by page; `name` is its member of the reply. */
export function usePages<T>(name: string, url: () => string) {
    const rows = shallowRef<T[]>([]);
    const next = ref<string | null>(null);
    const busy = ref(false);
    const wrong = ref("");
    let asked = 0;

    async function load(more = false) {
        const mine = ++asked;
        busy.value = true;
        wrong.value = "";
        try {
            const at = more && next.value ? `${url().includes("?") ? "&" : "?"}cursor=${encodeURIComponent(next.value)}` : "";
            const page = await get<Record<string, unknown>>(url() + at);
            if (mine !== asked) return;
            const found = page[name] as T[];
            rows.value = more ? [...rows.value, ...found] : found;
            next.value = (page.next as string | null | undefined) ?? null;
        } catch (e) {
            if (mine === asked) wrong.value = explain(e);
        } finally {
            if (mine === asked) busy.value = false;
        }
    }
    onMounted(() => load());
    return { rows, next, busy, wrong, load };
}
