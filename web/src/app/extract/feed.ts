/* The rows of a task, fetched page after page as far as the table is scrolled. Each page keeps its
 * cursor: while documents are worked on, pages in sight that have such rows are asked for again. */
import { ref, shallowRef } from "vue";
import { get } from "@/common/api";
import { loadRow, taskPath, type Page, type Row } from "./extraction";

export type Filter = "all" | "missing" | "unverified" | "differs" | "edited" | "error";
export const FILTERS: Filter[] = ["all", "missing", "unverified", "differs", "edited", "error"];
export interface View {
    filter: Filter;
    sort: string; /* "place", "title", "field:<name>"; "-" before it: descending */
}

const FIRST = 100;
const PAGE = 400;
const EACH_MS = 1500;

interface Fetched {
    cursor: string | null;
    start: number;
    count: number;
    stale: boolean; /* something has moved since, and it has rows that have not ended */
}
const moves = (r: Row) => r.state === "pending" || r.state === "extracting";

export class RowFeed {
    readonly rows: Row[] = []; /* only changed here; views follow `version` */
    readonly version = ref(0);
    readonly count = ref(0); /* of those that are read */
    readonly total = ref(0); /* of those that fit the filter, as the last page told */
    readonly more = ref(true);
    readonly loading = ref(false);
    readonly failed = shallowRef<unknown>(null);
    private pages: Fetched[] = [];
    private next: string | null = null;
    private wanted = 0;
    private sight: [number, number] = [0, 0];
    private generation = 0;
    private timer: number | undefined;

    constructor(
        private readonly id: string,
        private readonly view: View,
    ) {}

    /* At least so many, if there are. */
    ensure(count: number) {
        this.wanted = Math.max(this.wanted, count);
        if (this.more.value && this.rows.length < this.wanted) void this.work();
    }

    inSight(from: number, to: number) {
        this.sight = [from, to];
        this.later();
    }

    /* Counts have changed. What is sorted or filtered has another order now: it begins anew, unless
     * somebody has scrolled far into it. */
    moved() {
        for (const p of this.pages)
            p.stale ||= this.rows.slice(p.start, p.start + p.count).some(moves);
        const ordered = this.view.filter === "all" && this.view.sort === "place";
        if (ordered) this.later();
        else if (this.pages.length <= 1) this.later(() => this.reset());
    }

    reset() {
        this.generation++;
        this.pages = [];
        this.next = null;
        this.more.value = true;
        this.loading.value = false;
        void this.work(true);
    }

    stop() {
        this.generation++;
        window.clearTimeout(this.timer);
    }

    indexOf(place: number) {
        return this.rows.findIndex((r) => r.place === place);
    }

    /* One row was changed here. */
    put(i: number, row: Row) {
        this.rows[i] = row;
        this.version.value++;
    }

    /* It was changed elsewhere: it is read again. */
    async again(place: number) {
        const mine = this.generation;
        const row = await loadRow(this.id, place);
        const i = this.indexOf(place);
        if (mine === this.generation && i >= 0) this.put(i, row);
        return row;
    }

    private fetch(cursor: string | null, limit: number) {
        const query = new URLSearchParams({ limit: String(limit), sort: this.view.sort });
        if (this.view.filter !== "all") query.set("filter", this.view.filter);
        if (cursor) query.set("cursor", cursor);
        return get<Page>(`${taskPath(this.id)}?${query}`);
    }

    private take(page: Page, fresh: boolean) {
        if (fresh) this.rows.length = 0;
        const start = this.rows.length;
        this.pages.push({ cursor: this.next, start, count: page.rows.length, stale: false });
        for (const r of page.rows) this.rows.push(r);
        this.next = page.next ?? null;
        this.more.value = page.next != null;
        this.total.value = page.total;
        this.count.value = this.rows.length;
        this.version.value++;
    }

    private async work(fresh = false) {
        if (this.loading.value) return;
        const mine = this.generation;
        this.loading.value = true;
        try {
            do {
                const page = await this.fetch(this.next, this.pages.length ? PAGE : FIRST);
                if (mine !== this.generation) return;
                this.take(page, fresh);
                fresh = false;
                this.failed.value = null;
            } while (this.more.value && this.rows.length < this.wanted);
        } catch (e) {
            if (mine === this.generation) this.failed.value = e;
        } finally {
            if (mine === this.generation) this.loading.value = false;
        }
    }

    /* Not more often than once in EACH_MS. */
    private later(what: () => unknown = () => this.refresh()) {
        this.timer ??= window.setTimeout(() => {
            this.timer = undefined;
            void what();
        }, EACH_MS);
    }

    private async refresh() {
        const [from, to] = this.sight;
        const old = this.pages.filter(
            (p) => p.stale && p.start < to && p.start + p.count > from,
        );
        for (const p of old) await this.replace(p).catch(() => {});
    }

    /* By their places: what does not fit the filter any more stays as it is. */
    private async replace(p: Fetched) {
        const mine = this.generation;
        p.stale = false;
        const { rows } = await this.fetch(p.cursor, p.count);
        if (mine !== this.generation) return;
        const fresh = new Map(rows.map((r) => [r.place, r]));
        for (let i = p.start; i < p.start + p.count; i++)
            this.rows[i] = fresh.get(this.rows[i]!.place) ?? this.rows[i]!;
        this.version.value++;
    }
}
