/* Rows of a long table. Only those in sight are in the page, as plain elements of one fixed height
 * that are filled again and again: row i is shown by element i modulo their number. Scrolling
 * creates no elements, and no row's size depends on what is in it. */

const AROUND = 6; /* rows above and below those in sight */
const SETTLED_MS = 200;

export interface Line {
    readonly el: HTMLElement;
    index: number; /* -1: it shows no row */
}
export interface Source {
    count: number;
}

export class Lines<E extends Line, S extends Source> {
    active = 0; /* that the keyboard is at */
    rowHeight = 64;
    last = 0; /* one behind the last that is shown */
    head = 0; /* rows of its header */
    private elements: E[] = [];
    private first = 0;
    private frame = 0;
    private timer: number | undefined;
    private anew = true;

    constructor(
        private readonly box: HTMLElement, /* scrolls */
        private readonly tall: HTMLElement, /* as high as all rows */
        private readonly make: () => E,
        private readonly source: () => S,
        private readonly fill: (
            e: E,
            i: number,
            s: S,
            tabbable: boolean, /* it, or a part of it, is where Tab leads */
            anew: boolean,
        ) => void,
        private readonly reached: (first: number, last: number) => void,
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
        const used = new Set<E>();
        for (let i = this.first; i < this.last; i++) used.add(this.show(i, s));
        for (const e of this.elements) if (!used.has(e)) this.putAway(e);
        this.anew = false;
        this.reached(this.first, this.last);
        window.clearTimeout(this.timer);
        this.timer = window.setTimeout(this.sort, SETTLED_MS);
    };

    line(i: number) {
        return this.elements.find((e) => e.index === i);
    }

    stop() {
        cancelAnimationFrame(this.frame);
        window.clearTimeout(this.timer);
    }

    private grow(count: number) {
        if (count <= this.elements.length) return;
        this.elements.forEach((e) => this.putAway(e)); /* each shows another row from now on */
        while (this.elements.length < count) this.elements.push(this.make());
    }

    private show(i: number, s: S) {
        const e = this.elements[i % this.elements.length]!;
        if (e.index !== i || this.anew) {
            /* Whoever was at its row stays in the table; the arrow keys go on from there. */
            if (e.index !== i && e.el.contains(document.activeElement))
                this.box.focus({ preventScroll: true });
            this.place(e, i);
        }
        const away = this.active < this.first || this.active >= this.last;
        this.fill(e, i, s, i === this.active || (away && i === this.first), this.anew);
        if (!e.el.isConnected) this.tall.append(e.el);
        return e;
    }

    private place(e: E, i: number) {
        e.index = i;
        e.el.dataset.row = String(i);
        e.el.setAttribute("aria-rowindex", String(i + 1 + this.head));
        e.el.style.transform = `translateY(${i * this.rowHeight}px)`;
    }

    private putAway(e: E) {
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
