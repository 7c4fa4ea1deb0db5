/* What a run is about: read for its page, and put back into the form. */
import type { RouteLocationRaw } from "vue-router";
import { get, type Replies } from "@/common/api";
import { draft } from "./draft";
import { addressOf, nearestKey, type Asked } from "./hits/asked";

export type Scope = Replies["GET /api/queries/{id}/scope"];

export const scopePath = (id: string) => `/api/queries/${encodeURIComponent(id)}/scope`;
export const loadScope = (id: string) => get<Scope>(scopePath(id));

/* The form says itself which journals are gone since. Returns where it is. */
export function fillForm(s: Scope): RouteLocationRaw {
    if (s.nearest) return fillNearest(s, s.nearest);
    Object.assign(draft, {
        tags: [],
        journals: s.journals.map((j) => j.name),
        yearFrom: s.year_from ?? null,
        yearTo: s.year_to ?? null,
        question: s.question,
    });
    return "/";
}

function fillNearest(s: Scope, { q, n, journals }: NonNullable<Scope["nearest"]>) {
    const [from, to] = [s.year_from ?? null, s.year_to ?? null];
    const asked: Asked = { question: q, kind: "paper", journals: journals ?? [], from, to };
    sessionStorage.setItem(nearestKey(q), s.question);
    return { name: "screen-nearest", query: { ...addressOf(asked), n: String(n) } };
}
