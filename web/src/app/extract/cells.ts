/* A value of a cell: as a text, with a mark that says what is known of it. */
import { number as grouped } from "@/common/format";
import { i18n } from "@/common/i18n";
import { PATHS } from "@/common/icons";
import type { Field, Row } from "./extraction";
import { itemType } from "./templates";

export type Value = NonNullable<Row["values"]>[string];
export type Evidence = NonNullable<Value["differs"]>[number];
export type Mark = "verified" | "unverified" | "differs" | "edited" | "missing";
export const ICONS: Record<Mark, string> = {
    verified: PATHS.check,
    unverified: PATHS.ask,
    differs: PATHS.differs,
    edited: PATHS.pen,
    missing: "",
};

const NOTHING = "—";
const DIGITS = 12;

function plain(f: Field, value: unknown): string {
    const { t } = i18n.global;
    if (typeof value === "boolean") return t(value ? "extract.yes" : "extract.no");
    if (typeof value === "number" && itemType(f) === "number")
        return String(Number(value.toPrecision(DIGITS)));
    if (typeof value === "number") return grouped(value);
    return String(value);
}

/* Of a value that may be a list; "—": there is none. */
export function shown(f: Field, value: unknown, withUnit = true): string {
    if (value === null || value === undefined) return NOTHING;
    const unit = f.unit && withUnit ? ` ${f.unit}` : "";
    if (!Array.isArray(value)) return plain(f, value) + unit;
    return value.length ? value.map((x) => plain(f, x) + unit).join("; ") : NOTHING;
}

export const valueOf = (row: Row | undefined, f: Field): Value | undefined =>
    row?.values?.[f.name] as Value | undefined;
export const isMissing = (v: Value | undefined) =>
    v?.value === null ||
    v?.value === undefined ||
    (Array.isArray(v.value) && v.value.length === 0);

/* null: nothing is known of it yet. */
export function markOf(row: Row | undefined, f: Field): Mark | null {
    const v = valueOf(row, f);
    if (!row?.values || !v) return null;
    if (v.edited || row.edits?.[f.name]) return "edited";
    if (isMissing(v)) return "missing";
    if (v.differs?.length) return "differs";
    return v.verified ? "verified" : "unverified";
}

/* Where the quotes of a value are in the text: its own first. */
export interface Place {
    begin: number;
    end: number;
    own: boolean;
}
export function placesOf(v: Value | undefined): Place[] {
    if (!v) return [];
    const place = (x: { begin?: number | null; end?: number | null }, own: boolean) =>
        x.begin != null && x.end != null && x.end > x.begin
            ? [{ begin: x.begin, end: x.end, own }]
            : [];
    return [
        ...place(v, true),
        ...(v.items ?? []).flatMap((x) => place(x, true)),
        ...(v.differs ?? []).flatMap((x) => place(x, false)),
    ];
}

export interface Piece {
    text: string;
    place: number; /* of places, by its begin; -1: none */
    own: boolean;
}

const AROUND = 40000; /* bytes of text on each side of the quote, of a long document */

/* Not inside a character of UTF-8. */
function whole(bytes: Uint8Array, at: number): number {
    while (at > 0 && at < bytes.length && (bytes[at]! & 0xc0) === 0x80) at--;
    return Math.max(0, Math.min(at, bytes.length));
}

/* The text in pieces, in which places are marked: offsets are bytes, so bytes are cut and then
 * decoded. Of a long text only what is around the first place, unless all of it is wanted. */
export function piecesOf(bytes: Uint8Array, places: Place[], all: boolean) {
    const words = new TextDecoder();
    const first = places[0]?.begin ?? 0;
    const from = all ? 0 : whole(bytes, first - AROUND);
    const to = all ? bytes.length : whole(bytes, first + 2 * AROUND);
    const pieces: Piece[] = [];
    let at = from;
    const cut = (end: number, place: number, own: boolean) => {
        if (end > at) pieces.push({ text: words.decode(bytes.subarray(at, end)), place, own });
        at = Math.max(at, end);
    };
    for (const p of [...places].sort((a, b) => a.begin - b.begin)) {
        if (p.begin < at || p.end > to) continue; /* inside another one, or out of sight */
        cut(whole(bytes, p.begin), -1, false);
        cut(whole(bytes, p.end), p.begin, p.own);
    }
    cut(to, -1, false);
    return { pieces, before: from > 0, after: to < bytes.length };
}
