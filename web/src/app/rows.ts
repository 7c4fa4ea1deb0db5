/* The rows of the table of results (lines.ts). */
import type { Result } from "@/common/api";
import { PATHS } from "@/common/icons";
import { doiLink } from "./doi";
import { Lines, type Line } from "./lines";

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

class RowElement implements Line {
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

export class Rows extends Lines<RowElement, RowSource> {
    constructor(
        box: HTMLElement,
        tall: HTMLElement,
        source: () => RowSource,
        reached: (row: number) => void,
    ) {
        const show = (e: RowElement, i: number, s: RowSource, tabbable: boolean, anew: boolean) => {
            e.fill(s.rowAt(i), s.words, anew);
            e.mark(i === s.selected, tabbable, i === this.active);
        };
        super(box, tall, () => new RowElement(), source, show, (_, last) => reached(last));
    }
}
