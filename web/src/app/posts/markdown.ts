/* Markdown as a tree of blocks. Text stays text: the tree has no place for HTML, and an address is
 * kept only if it is one of http, https or mailto. Posts are of others, too: time is linear in the
 * text, and nesting is bounded. */
import { inlineOf, type Inline } from "./inline";

export interface Item {
    of: Block[];
    ticked: boolean | null; /* null: it has no box */
}
type Align = "left" | "center" | "right" | undefined;
export type Block =
    | { kind: "heading"; level: number; of: Inline[] }
    | { kind: "paragraph"; of: Inline[] }
    | { kind: "code"; text: string }
    | { kind: "quote"; of: Block[] }
    | { kind: "list"; start: number | null; tight: boolean; items: Item[] }
    | { kind: "table"; align: Align[]; head: Inline[][]; rows: Inline[][][] }
    | { kind: "rule" };

const DEPTH_MAX = 12; /* quotes and lists in one another; what is deeper is text */
const COLUMNS_MAX = 50;

const FENCE = /^ {0,3}(`{3,}|~{3,})([^`]*)$/;
const HEADING = /^ {0,3}(#{1,6})(?=\s|$)/;
const RULE = /^ {0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}$/;
const QUOTE = /^ {0,3}> ?/;
const MARKER = /^( {0,3})([-*+]|\d{1,9}[.)])( +|$)/;
const UNDERLINE = /^ {0,3}(=+|-+) *$/;
const BOX = /^\[([ xX])\] +/;
const COLUMN = /^:?-+:?$/;

const blank = (line: string | undefined) => !line?.trim();
const indent = (line: string) => line.length - line.trimStart().length;

/* What ends a paragraph without an empty line between. */
function interrupts(line: string, depth: number): boolean {
    if (HEADING.test(line) || FENCE.test(line) || RULE.test(line)) return true;
    if (depth >= DEPTH_MAX) return false;
    const marker = MARKER.exec(line);
    const begins = !!marker && /^([-*+]|1\D)$/.test(marker[2]!) && line.length > marker[0].length;
    return begins || QUOTE.test(line);
}

/* Reads blocks from a list of lines, one after another. */
class Reader {
    private at = 0;
    readonly blocks: Block[] = [];

    constructor(
        private readonly lines: string[],
        private readonly depth: number,
    ) {
        while (this.at < lines.length) this.next(lines[this.at]!);
    }

    private next(line: string) {
        const deeper = this.depth < DEPTH_MAX;
        if (blank(line)) this.at++;
        else if (indent(line) >= 4) this.indented();
        else if (FENCE.test(line)) this.fence(FENCE.exec(line)!);
        else if (HEADING.test(line)) this.heading(HEADING.exec(line)!);
        else if (RULE.test(line)) this.rule();
        else if (deeper && QUOTE.test(line)) this.quote();
        else if (deeper && MARKER.test(line)) this.list(MARKER.exec(line)!);
        else if (!this.table()) this.paragraph();
    }

    private indented() {
        const taken: string[] = [];
        while (this.at < this.lines.length) {
            const line = this.lines[this.at]!;
            if (!blank(line) && indent(line) < 4) break;
            taken.push(line.slice(4));
            this.at++;
        }
        this.blocks.push({ kind: "code", text: taken.join("\n").trimEnd() });
    }

    private fence([opening, mark]: RegExpExecArray) {
        const end = new RegExp(`^ {0,3}${mark![0]}{${Math.min(mark!.length, 999)},} *$`);
        const margin = new RegExp(`^ {0,${indent(opening)}}`);
        const taken: string[] = [];
        for (this.at++; this.at < this.lines.length; this.at++) {
            if (end.test(this.lines[this.at]!)) break;
            taken.push(this.lines[this.at]!.replace(margin, ""));
        }
        this.at++;
        this.blocks.push({ kind: "code", text: taken.join("\n") });
    }

    private heading([opening, marks]: RegExpExecArray) {
        const text = this.lines[this.at++]!.slice(opening.length).trim();
        this.blocks.push({
            kind: "heading",
            level: marks!.length,
            of: inlineOf(text.replace(/(^|\s)#+$/, "")),
        });
    }

    private rule() {
        this.at++;
        this.blocks.push({ kind: "rule" });
    }

    /* A line without the mark that goes on with the paragraph before it. */
    private isLazy(line: string, before: string) {
        return !blank(line) && !blank(before) && !interrupts(line, this.depth);
    }

    private quote() {
        const taken: string[] = [];
        for (; this.at < this.lines.length; this.at++) {
            const line = this.lines[this.at]!;
            if (!QUOTE.test(line) && !this.isLazy(line, taken[taken.length - 1]!)) break;
            taken.push(line.replace(QUOTE, ""));
        }
        this.blocks.push({ kind: "quote", of: new Reader(taken, this.depth + 1).blocks });
    }

    private list(first: RegExpExecArray) {
        const kind = first[2]!.slice(-1);
        const numbered = /^\d/.test(first[2]!);
        const items: Item[] = [];
        let loose = false;
        for (let marker: RegExpExecArray | null = first; marker; ) {
            const lines = this.item(marker);
            const gap = blank(lines[lines.length - 1]);
            const box = BOX.exec(lines[0]!);
            if (box) lines[0] = lines[0]!.slice(box[0].length);
            const of = new Reader(lines, this.depth + 1).blocks;
            items.push({ of, ticked: box ? box[1] !== " " : null });
            const line = this.lines[this.at];
            marker = line === undefined || RULE.test(line) ? null : MARKER.exec(line);
            if (marker && marker[2]!.slice(-1) !== kind) marker = null;
            loose ||= (gap && !!marker) || of.filter((b) => b.kind === "paragraph").length > 1;
        }
        this.blocks.push({
            kind: "list",
            start: numbered ? parseInt(first[2]!, 10) : null,
            tight: !loose,
            items,
        });
    }

    /* The lines of an item, without its marker and margin. */
    private item([opening]: RegExpExecArray): string[] {
        const bare = opening.trimEnd().length + 1;
        const margin = opening.length - bare >= 4 ? bare : Math.max(opening.length, bare);
        const taken = [this.lines[this.at++]!.slice(margin)];
        for (; this.at < this.lines.length; this.at++) {
            const line = this.lines[this.at]!;
            if (blank(line)) taken.push("");
            else if (indent(line) >= margin) taken.push(line.slice(margin));
            else if (MARKER.test(line)) break;
            else if (this.isLazy(line, taken[taken.length - 1]!)) taken.push(line.trimStart());
            else break;
        }
        return taken;
    }

    private table(): boolean {
        const head = this.lines[this.at]!;
        const under = this.lines[this.at + 1];
        if (!head.includes("|") || !under?.includes("-")) return false;
        const columns = cellsOf(under);
        const names = cellsOf(head);
        if (!columns.every((c) => COLUMN.test(c)) || columns.length !== names.length) return false;
        if (columns.length > COLUMNS_MAX) return false;
        const rows: Inline[][][] = [];
        for (this.at += 2; this.at < this.lines.length; this.at++) {
            const line = this.lines[this.at]!;
            if (blank(line) || interrupts(line, this.depth)) break;
            const cells = cellsOf(line);
            rows.push(columns.map((_, i) => inlineOf(cells[i] ?? "")));
        }
        this.blocks.push({
            kind: "table",
            align: columns.map(alignOf),
            head: names.map(inlineOf),
            rows,
        });
        return true;
    }

    private paragraph() {
        const taken: string[] = [this.lines[this.at++]!.trimStart()];
        let level = 0;
        for (; this.at < this.lines.length; this.at++) {
            const line = this.lines[this.at]!;
            const under = UNDERLINE.exec(line);
            if (under) {
                level = under[1]!.startsWith("=") ? 1 : 2;
                this.at++;
                break;
            }
            if (blank(line) || interrupts(line, this.depth)) break;
            taken.push(line.trimStart());
        }
        const of = inlineOf(taken.join("\n").trimEnd());
        this.blocks.push(level ? { kind: "heading", level, of } : { kind: "paragraph", of });
    }
}

/* Between bars that no backslash stands before. */
function cellsOf(line: string): string[] {
    const cells: string[] = [];
    let cell = "";
    for (let i = 0; i < line.length; i++) {
        const escaped = line[i] === "\\" && line[i + 1] === "|";
        if (line[i] === "|") {
            cells.push(cell.trim());
            cell = "";
        } else cell += escaped ? line[++i] : line[i];
    }
    if (cell.trim()) cells.push(cell.trim());
    if (cells.length > 1 && !cells[0]) cells.shift();
    return cells;
}

function alignOf(column: string): Align {
    const right = column.endsWith(":");
    if (column.startsWith(":")) return right ? "center" : "left";
    return right ? "right" : undefined;
}

const spaced = (line: string) => line.replace(/^[ \t]+/, (m) => m.replaceAll("\t", "    "));

export const blocksOf = (text: string): Block[] =>
    new Reader(text.split(/\r\n?|\n/).map(spaced), 0).blocks;
