/* What is searched for. The address of the page has all of it, so that a reload, the way back and a
 * shared link show the same. */
import type { LocationQuery, LocationQueryRaw } from "vue-router";

export const QUESTION_MAX = 1000; /* these are the server's */
export const JOURNALS_MAX = 100;
export const YEAR_MAX = 9999;
export const KINDS = ["both", "post", "paper"] as const;
export type Kind = (typeof KINDS)[number];

export interface Asked {
    question: string;
    kind: Kind;
    journals: string[];
    from: number | null;
    to: number | null;
}

const texts = (x: LocationQuery[string] | undefined) =>
    (Array.isArray(x) ? x : [x]).filter((t): t is string => !!t);
const yearOf = (x: LocationQuery[string] | undefined) => {
    const year = Number(texts(x)[0]);
    return Number.isInteger(year) && year >= 1 && year <= YEAR_MAX ? year : null;
};

export const one = (query: LocationQuery, name: string) => texts(query[name])[0] ?? "";

/* Posts have neither journal nor year. */
export function askedOf(query: LocationQuery): Asked {
    const kind = KINDS.find((k) => k === one(query, "kind")) ?? "both";
    const of = kind === "post" ? {} : query;
    const [from, to] = [yearOf(of.from), yearOf(of.to)];
    const turned = from !== null && to !== null && from > to;
    return {
        question: one(query, "q").trim(),
        kind,
        journals: [...new Set(texts(of.journal))].slice(0, JOURNALS_MAX),
        from: turned ? to : from,
        to: turned ? from : to,
    };
}

export const isFiltered = (a: Asked) => a.journals.length > 0 || a.from !== null || a.to !== null;

export const addressOf = (a: Asked): LocationQueryRaw => ({
    ...(a.question && { q: a.question }),
    ...(a.kind !== "both" && { kind: a.kind }),
    ...(a.kind !== "post" && {
        ...(a.journals.length && { journal: a.journals }),
        ...(a.from !== null && { from: String(a.from) }),
        ...(a.to !== null && { to: String(a.to) }),
    }),
});

export function pathOf(a: Asked, cursor: string | null): string {
    const query = new URLSearchParams({ q: a.question });
    if (a.kind !== "both") query.set("kind", a.kind);
    for (const name of a.journals) query.append("journal", name);
    if (a.from !== null) query.set("year_from", String(a.from));
    if (a.to !== null) query.set("year_to", String(a.to));
    if (cursor) query.set("cursor", cursor);
    return `/api/search?${query}`;
}

/* Where the question of a screening of the nearest papers is kept until it is started. */
export const nearestKey = (search: string) => `millrace.nearest.${search}`;

/* --- one hit, as the address names it: "post:12", "paper:10.1/x" --- */

export interface Named {
    kind: "post" | "paper";
    id: string;
}

export const nameOf = (h: { kind: "post" | "paper"; id?: number | null; doi?: string | null }) =>
    `${h.kind}:${h.kind === "post" ? h.id : h.doi}`;

export function namedOf(text: string): Named | null {
    const [, kind, id] = /^(post|paper):(.+)$/s.exec(text) ?? [];
    return kind && id ? { kind: kind as Named["kind"], id } : null;
}

export const likePath = (x: Named, limit: number) =>
    `/api/search/like?${new URLSearchParams({
        kind: x.kind,
        [x.kind === "post" ? "id" : "doi"]: x.id,
        limit: String(limit),
    })}`;
