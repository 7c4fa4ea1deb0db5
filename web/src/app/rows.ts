/* Rows of a long table. Only those in sight are in the page, as plain elements of one fixed height
 * that are filled again and again: row i is shown by element i modulo their number. Scrolling
 * creates no elements, and no row's size depends on what is in it. */
import type { Result } from "@/common/api";
import { PATHS } from "@/common/icons";
import { doiLink } from "./doi";

export interface RowWords {
    relevant: string;
    irrelevant: string;
    failed: string;
    notJudged: string;
    withdrawn: string;
    notJudgedWhy: string;
    withdrawnWhy: string;
    simulated: string;
    untitled: string;
    gone: string;
    madeUp: string;
}
export interface RowSource {
    count: number;
    rowAt: (i: number) => Result | undefined;
    selected: number;
    words: RowWords;
}

const AROUND = 6; /* rows above and below those in sight */
const SETTLED_MS = 200;
const TEXT_MAX = 400; /* characters of a cell: one line shows fewer, but all would be measured */
/* Why there is a verdict, or none. Reasons that the server gives itself are words of the page. */
export const whyOf = (r: Result, words: Pick<RowWords, "notJudgedWhy" | "withdrawnWhy">) =>
    r.not_judged
        ? words.notJudgedWhy
        : r.withdrawn
          ? words.withdrawnWhy
          : (r.reason ?? r.error ?? "");
const cut = (s: string) => (s.length > TEXT_MAX ? s.slice(0, TEXT_MAX) : s);

const mold = document.createElement("template");
mold.innerHTML = `<div role="row" class="line">
<span role="gridcell" class="verdict">
<svg width="16" height="16" viewBox="0 0 24 24" fill="none" stroke="currentColor"
 stroke-width="1.9" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true">
<path/>
</svg>
<span class="word"></span>
</span>
<span role="gridcell" class="paper">
<strong class="clip"></strong><span class="soft small clip"></span>
</span>
<span role="gridcell" class="where small soft"><span class="clip"></span><span class="num"></span>
</span>
<span role="gridcell" class="doi small clip"><a target="_blank" rel="noopener noreferrer"></a>
</span>
</div>`.replace(/>\n</g, "><");

class RowElement {
    readonly el = mold.content.firstElementChild!.cloneNode(true) as HTMLElement;
    index = -1;
    private shown: Result | undefined | null = null;
    private kind = "";
    private marks = "";
    private readonly icon = this.el.querySelector("path")!;
    private readonly word = this.el.querySelector(".word")!;
    private readonly title = this.el.querySelector("strong")!;
    private readonly reason = this.title.nextElementSibling!;
    private readonly journal = this.el.querySelector(".where")!.firstElementChild!;
    private readonly year = this.journal.nextElementSibling!;
    private readonly link = this.el.querySelector("a")!;

    place(i: number, rowHeight: number) {
        this.index = i;
        this.el.dataset.row = String(i);
        this.el.setAttribute("aria-rowindex", String(i + 1));
        this.el.style.transform = `translateY(${i * rowHeight}px)`;
    }

    fill(r: Result | undefined, words: RowWords, anew: boolean) {
        if (r === this.shown && !anew) return;
        this.shown = r;
        const kind = !r
            ? "waiting"
            : r.relevant
              ? "relevant"
              : r.not_judged
                ? "notJudged"
                : r.withdrawn
                  ? "withdrawn"
                  : r.relevant == null
                    ? "failed"
                    : "irrelevant";
        if (kind !== this.kind || anew) {
            this.kind = kind;
            this.el.className = `line ${kind}`;
            this.icon.setAttribute(
                "d",
                {
                    waiting: "",
                    relevant: PATHS.check,
                    irrelevant: PATHS.cross,
                    failed: PATHS.warn,
                    notJudged: PATHS.warn,
                    withdrawn: PATHS.warn,
                }[kind],
            );
            this.word.textContent = kind === "waiting" ? "" : words[kind];
        }
        const untitled = r?.withdrawn ? words.gone : words.untitled;
        this.title.textContent = r ? cut(r.title ?? untitled) : "";
        const reason = r ? cut(whyOf(r, words)) : "";
        this.reason.textContent = r?.simulated ? `${words.simulated} · ${reason}` : reason;
        this.journal.textContent = r?.journal ?? "";
        this.year.textContent = r ? String(r.year) : "";
        const href = r && doiLink(r.doi);
        this.link.textContent = r ? (href ? r.doi : words.madeUp) : "";
        if (href) this.link.href = href;
        else this.link.removeAttribute("href");
    }

    mark(selected: boolean, tabbable: boolean, active: boolean) {
        const marks = `${selected} ${tabbable} ${active}`;
        if (marks === this.marks) return;
        this.marks = marks;
        this.el.setAttribute("aria-selected", String(selected));
        this.el.tabIndex = tabbable ? 0 : -1;
        this.link.tabIndex = active ? 0 : -1;
    }
}

export class Rows {
    active = 0; /* that the keyboard is at */
    rowHeight = 64;
    last = 0; /* one behind the last that is shown */
    private elements: RowElement[] = [];
    private first = 0;
    private frame = 0;
    private timer: number | undefined;
    private anew = true;

    constructor(
        private readonly box: HTMLElement, /* scrolls */
        private readonly tall: HTMLElement, /* as high as all rows */
        private readonly source: () => RowSource,
        private readonly reached: (row: number) => void,
    ) {}

    /* At the next frame; `anew`: also what has not changed place. */
    draw(anew = false) {
        this.anew ||= anew;
        this.frame ||= requestAnimationFrame(this.drawNow);
    }

    drawNow = () => {
        cancelAnimationFrame(this.frame);
        this.frame = 0;
        const s = this.source();
        const { scrollTop, clientHeight } = this.box;
        const inSight = Math.ceil(clientHeight / this.rowHeight) + 1;
        const top = Math.floor(scrollTop / this.rowHeight);
        this.first = Math.max(0, Math.min(top - AROUND, s.count - 1));
        this.last = Math.min(s.count, top + inSight + AROUND);
        this.grow(inSight + 2 * AROUND);
        const used = new Set<RowElement>();
        for (let i = this.first; i < this.last; i++) used.add(this.show(i, s));
        for (const e of this.elements) if (!used.has(e)) this.putAway(e);
        this.anew = false;
        this.reached(this.last);
        window.clearTimeout(this.timer);
        this.timer = window.setTimeout(this.sort, SETTLED_MS);
    };

    element(i: number) {
        return this.elements.find((e) => e.index === i)?.el;
    }

    stop() {
        cancelAnimationFrame(this.frame);
        window.clearTimeout(this.timer);
    }

    private grow(count: number) {
        if (count <= this.elements.length) return;
        this.elements.forEach((e) => this.putAway(e)); /* each shows another row from now on */
        while (this.elements.length < count) this.elements.push(new RowElement());
    }

    private show(i: number, s: RowSource) {
        const e = this.elements[i % this.elements.length]!;
        if (e.index !== i || this.anew) {
            /* Whoever was at its row stays in the table; the arrow keys go on from there. */
            if (e.index !== i && e.el.contains(document.activeElement))
                this.box.focus({ preventScroll: true });
            e.place(i, this.rowHeight);
        }
        e.fill(s.rowAt(i), s.words, this.anew);
        const away = this.active < this.first || this.active >= this.last;
        e.mark(
            i === s.selected,
            i === this.active || (away && i === this.first),
            i === this.active,
        );
        if (!e.el.isConnected) this.tall.append(e.el);
        return e;
    }

    private putAway(e: RowElement) {
        if (e.el.contains(document.activeElement)) this.box.focus({ preventScroll: true });
        e.index = -1;
        e.el.remove();
    }

    /* Screen readers go by the order of elements: once scrolling has stopped, that is the order of
     * rows again. What has the focus is not moved, or would lose it. */
    private sort = () => {
        const focused = document.activeElement;
        const before: HTMLElement[] = [];
        const after: HTMLElement[] = [];
        const rows = this.elements
            .filter((e) => e.index >= 0)
            .sort((a, b) => a.index - b.index)
            .map((e) => e.el);
        const at = rows.findIndex((el) => el.contains(focused));
        rows.forEach((el, k) => (k < at ? before : after).push(el));
        const inOrder = rows.every((el, k) => this.tall.children[k] === el);
        if (inOrder) return;
        if (at < 0) this.tall.append(...rows);
        else {
            rows[at]!.before(...before);
            rows[at]!.after(...after.slice(1));
        }
    };
}
