/* Who is logged in, and what is left to spend: asked often while something runs, rarely otherwise.
 * */
import { computed, ref } from "vue";
import { ApiError, get, type Me } from "@/common/api";
import { cents } from "@/common/format";

export const me = ref<Me | null>(null);
export const known = ref(false); /* /api/me has been asked: loggedIn is right */
/* What a new run may cost; null: not known now. */
export const free = computed(() => me.value?.free ?? null);
export const reserves = computed(() => !!me.value?.reserved && cents(me.value.reserved) > 0n);
export const loggedIn = computed(() => me.value !== null);

const BUSY_MS = 2500;
const IDLE_MS = 30000;
let timer: number | undefined;
let busyUntil = 0;

export async function refreshMe() {
    try {
        me.value = await get<Me>("/api/me");
    } catch (e) {
        if (e instanceof ApiError && e.status === 401) me.value = null;
        else if (!me.value) throw e;
    } finally {
        known.value = true;
    }
}

function tick() {
    window.clearTimeout(timer);
    const next = () => {
        timer = window.setTimeout(tick, Date.now() < busyUntil ? BUSY_MS : IDLE_MS);
    };
    if (!me.value || document.hidden) next();
    else refreshMe().catch(() => {}).finally(next);
}

/* Something costs money now: the balance is worth asking for. */
export function spending() {
    const wasIdle = Date.now() >= busyUntil;
    busyUntil = Date.now() + 4 * BUSY_MS;
    if (wasIdle) tick();
}

document.addEventListener("visibilitychange", () => document.hidden || tick());
tick();
