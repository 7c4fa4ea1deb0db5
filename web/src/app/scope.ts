/* What a run is about: read for its page, and put back into the form. */
import { get, type Replies } from "@/common/api";
import { draft } from "./draft";

export type Scope = Replies["GET /api/queries/{id}/scope"];

export const scopePath = (id: string) => `/api/queries/${encodeURIComponent(id)}/scope`;
export const loadScope = (id: string) => get<Scope>(scopePath(id));

/* The form says itself which journals are gone since. */
export function fillForm(s: Scope) {
    Object.assign(draft, {
        tags: [],
        journals: s.journals.map((j) => j.name),
        yearFrom: s.year_from ?? null,
        yearTo: s.year_to ?? null,
        question: s.question,
    });
}
