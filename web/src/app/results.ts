/* The results of a run, fetched page after page as far as the table is scrolled.
 *
 * A run that goes on adds results behind the last one: the last page is then asked for again. An
 * archived run has another order: the server answers an old cursor with "restarted", and the feed
 * begins anew. */
import { ref, shallowRef } from "vue";
import { get, type Replies, type Result } from "@/common/api";

const PAGE = 500;
export type Verdict = "all" | "relevant" | "irrelevant" | "failed";

type Page = Replies["GET /api/queries/{id}/results"];

export class ResultFeed {
    readonly rows: Result[] = []; /* only changed here; views follow `changed` */
    readonly changed = shallowRef({
        from: 0,
        count: 0,
    }); /* rows from that one on; how many there are */
    readonly loading = ref(false);
    readonly failed = shallowRef<unknown>(null);
    private cursor: string | null = null; /* of the page that is asked for next */
    private start = 0; /* where that page begins */
    private more = true;
    private wanted = 0;
    private generation = 0;

    constructor(
        private readonly id: string,
        private readonly verdict: Verdict,
    ) {}

    reset() {
        this.generation++;
        this.rows.length = 0;
        this.cursor = null;
        this.start = 0;
        this.more = true;
        this.loading.value = false;
        this.changed.value = { from: 0, count: 0 };
        if (this.wanted) void this.work();
    }

    /* At least so many, if there are. */
    ensure(count: number) {
        this.wanted = Math.max(this.wanted, count);
        if (this.rows.length < this.wanted) void this.work();
    }

    private async fetchPage(): Promise<Page> {
        const query = new URLSearchParams({ limit: String(PAGE) });
        if (this.verdict !== "all") query.set("verdict", this.verdict);
        if (this.cursor) query.set("cursor", this.cursor);
        return get<Page>(`/api/queries/${encodeURIComponent(this.id)}/results?${query}`);
    }

    private take(page: Page) {
        const rows = this.rows;
        if (page.restarted) this.start = 0;
        const from = (rows.length = this.start);
        for (const r of page.results) rows.push(r);
        this.more = page.next != null;
        if (page.next != null) {
            this.cursor = page.next;
            this.start = rows.length;
        } else if (page.restarted) this.cursor = null;
        this.changed.value = { from, count: rows.length };
    }

    private async work() {
        if (this.loading.value) return;
        const mine = this.generation;
        this.loading.value = true;
        try {
            do {
                const page = await this.fetchPage();
                if (mine !== this.generation) return;
                this.take(page);
                this.failed.value = null;
            } while (this.more && this.rows.length < this.wanted);
        } catch (e) {
            if (mine === this.generation) this.failed.value = e;
        } finally {
            if (mine === this.generation) this.loading.value = false;
        }
    }
}
