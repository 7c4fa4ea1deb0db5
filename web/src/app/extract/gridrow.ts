/* The rows of the table of an extraction (lines.ts): a document, and a cell for each field. A row
 * that has no values says why instead. */
import { Lines, type Line, type Source } from "../lines";
import { ICONS, markOf, shown, valueOf, type Mark } from "./cells";
import type { Field, Row } from "./extraction";
import { canRetry, rowReason } from "./reasons";

export interface GridWords {
    marks: Record<Mark, string>;
    states: Record<Row["state"], string>;
    untitled: string;
    retry: string;
}
export interface GridSource extends Source {
    rowAt: (i: number) => Row | undefined;
    fields: Field[];
    retries: boolean; /* the task can be gone on with */
    words: GridWords;
    open: { place: number; column: number } | null; /* the cell that is shown beside */
}

const TEXT_MAX = 300; /* characters of a cell: two lines show fewer, but all would be measured */
const LONG = 24; /* names that may be cut off by the column */
const cut = (s: string) => (s.length > TEXT_MAX ? s.slice(0, TEXT_MAX) : s);

const mold = document.createElement("template");
mold.innerHTML = `<div role="row" class="line">
<div role="rowheader" class="first" data-column="0">
<span class="title"></span><span class="soft small clip"></span>
</div>
<div role="gridcell" class="told" data-column="1"><span></span>
<button type="button" class="link" data-retry tabindex="-1"></button>
</div>
</div>`.replace(/>\n</g, "><");
const cellMold = document.createElement("template");
cellMold.innerHTML = `<div role="gridcell" class="cell"><span class="value"></span>
<svg width="14" height="14" viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2"
 stroke-linecap="round" stroke-linejoin="round" aria-hidden="true"><path/></svg>
<span class="hidden"></span></div>`.replace(/>\n</g, "><");

/* One that is being read and waits for something, the AI for example, is not read meanwhile. */
function stateOf(row: Row, words: GridWords): string {
    if (row.state === "completed") return row.doi ?? "";
    const waits = row.state === "extracting" && row.reason_code;
    return words.states[waits ? "pending" : row.state];
}

class Cell {
    readonly el = cellMold.content.firstElementChild!.cloneNode(true) as HTMLElement;
    private readonly value = this.el.firstElementChild!;
    private readonly icon = this.el.querySelector("path")!;
    private readonly word = this.el.lastElementChild!;
    private mark: string | null = "";

    constructor(column: number) {
        this.el.dataset.column = String(column);
    }

    fill(row: Row, f: Field, words: GridWords) {
        const mark = markOf(row, f);
        const said = mark ? words.marks[mark] : "";
        this.value.textContent = cut(shown(f, valueOf(row, f)?.value, false));
        if (`${mark} ${said}` === this.mark) return;
        this.mark = `${mark} ${said}`;
        this.el.className = `cell ${mark ?? ""}`;
        this.el.title = said;
        this.word.textContent = said;
        this.icon.setAttribute("d", mark ? ICONS[mark] : "");
    }
}

export class GridRow implements Line {
    readonly el = mold.content.firstElementChild!.cloneNode(true) as HTMLElement;
    index = -1;
    private shown: Row | undefined | null = null;
    private readonly first = this.el.firstElementChild as HTMLElement;
    private readonly title = this.first.firstElementChild!;
    private readonly state = this.first.lastElementChild!;
    private readonly told = this.el.querySelector<HTMLElement>(".told")!;
    private readonly retry = this.told.querySelector("button")!;
    private cells: Cell[] = [];
    private marks = "";

    fill(row: Row | undefined, s: GridSource, anew: boolean) {
        if (row === this.shown && !anew) return;
        this.shown = row;
        this.columns(s.fields.length);
        const known = row?.values != null;
        this.el.className = `line ${row?.state ?? "waiting"}${known ? "" : " bare"}`;
        const name = row ? (row.title ?? row.doi ?? s.words.untitled) : "";
        this.title.textContent = cut(name);
        this.first.title = name.length > LONG ? name : "";
        this.state.textContent = row ? stateOf(row, s.words) : "";
        this.told.firstElementChild!.textContent = row ? cut(rowReason(row)) : "";
        this.retry.textContent = s.words.retry;
        this.retry.hidden = !s.retries || !canRetry(row);
        if (known) s.fields.forEach((f, i) => this.cells[i]!.fill(row!, f, s.words));
        this.marks = "";
    }

    /* tabbable: the column that Tab leads to; -1: none of this row. */
    mark(tabbable: number, open: number) {
        const marks = `${tabbable} ${open}`;
        if (marks === this.marks) return;
        this.marks = marks;
        const bare = this.el.classList.contains("bare");
        const at = bare ? Math.min(tabbable, 1) : tabbable;
        this.first.tabIndex = at === 0 ? 0 : -1;
        this.told.tabIndex = bare && at === 1 ? 0 : -1;
        this.cells.forEach((c, i) => {
            c.el.tabIndex = !bare && at === i + 1 ? 0 : -1;
            c.el.ariaSelected = String(open === i + 1);
        });
        this.el.classList.toggle("open", open >= 0);
    }

    /* What the keyboard is at in a column. */
    part(column: number): HTMLElement {
        const bare = this.el.classList.contains("bare");
        return column === 0 ? this.first : bare ? this.told : this.cells[column - 1]!.el;
    }

    private columns(count: number) {
        while (this.cells.length > count) this.cells.pop()!.el.remove();
        while (this.cells.length < count) {
            const c = new Cell(this.cells.length + 1);
            this.cells.push(c);
            this.told.before(c.el);
        }
        this.told.setAttribute("aria-colspan", String(Math.max(1, count)));
    }
}

export class Grid extends Lines<GridRow, GridSource> {
    column = 0; /* that the keyboard is at */

    constructor(
        box: HTMLElement,
        tall: HTMLElement,
        source: () => GridSource,
        reached: (first: number, last: number) => void,
    ) {
        super(
            box,
            tall,
            () => new GridRow(),
            source,
            (e, i, s, tabbable, anew) => {
                const row = s.rowAt(i);
                e.fill(row, s, anew);
                const here = s.open !== null && row?.place === s.open.place;
                e.mark(tabbable ? this.column : -1, here ? s.open!.column : -1);
            },
            reached,
        );
        this.head = 1;
    }

    part(i: number): HTMLElement | undefined {
        return this.line(i)?.part(this.column);
    }
}
