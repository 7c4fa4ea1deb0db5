import { reactive } from "vue";

export interface Toast {
    id: number;
    kind: "good" | "bad";
    text: string;
}
export const toasts = reactive<Toast[]>([]);
let last = 0;

export function dismiss(id: number) {
    const at = toasts.findIndex((x) => x.id === id);
    if (at >= 0) toasts.splice(at, 1);
}

/* Errors stay until they are closed or three newer ones push them out: they say what to do. */
export function toast(kind: Toast["kind"], text: string) {
    const id = ++last;
    toasts.push({ id, kind, text });
    if (toasts.length > 3) toasts.shift();
    if (kind === "good") window.setTimeout(() => dismiss(id), 5000);
    else window.setTimeout(() => dismiss(id), 20000);
}
