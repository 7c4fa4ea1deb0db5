/* The hits of one search, or what is like one of them, page after page. */
import { ref, shallowRef } from "vue";
import { ApiError, get, type Replies } from "@/common/api";
import { me } from "../me";
import { likePath, nameOf, namedOf, pathOf, type Asked, type Named } from "./asked";

type Page = Replies["GET /api/search"];
type Pages = (cursor: string | null, signal: AbortSignal) => Promise<Page>;
export type Hit = Page["hits"][number];
export type SearchReason = NonNullable<Page["reason"]>;
export type Searched = Page["searched"][number];

const LIKE_FIRST = 20;
const LIKE_MORE = 100; /* and no more: the server has no cursor for them */

const titles = new Map<string, string>();

export class HitFeed {
    readonly hits = shallowRef<Hit[] | null>(null); /* null: not known yet */
    readonly next = ref<string | null>(null);
    readonly reason = ref<SearchReason | null>(null);
    readonly searched = shallowRef<Searched[]>([]); /* how much there was to be found */
    readonly busy = ref(false);
    readonly failed = shallowRef<unknown>(null);
    private readonly gone = new AbortController();

    constructor(private readonly fetchPage: Pages) {}

    /* What an answer has anew stands at its place; an order that was made again repeats hits. */
    private take(page: Page) {
        const known = this.hits.value ?? [];
        const names = new Set(known.map(nameOf));
        this.hits.value = [...known, ...page.hits.filter((h) => !names.has(nameOf(h)))];
        for (const h of page.hits) titles.set(nameOf(h), h.title);
        this.next.value = page.next ?? null;
        this.reason.value = page.reason ?? null;
        this.searched.value = page.searched;
    }

    /* The first page, or the following one; again after a failure. */
    async more() {
        if (this.busy.value) return;
        this.busy.value = true;
        this.failed.value = null;
        try {
            this.take(await this.fetchPage(this.next.value, this.gone.signal));
        } catch (e) {
            if (!(e instanceof ApiError && e.code === "aborted")) this.failed.value = e;
        }
        this.busy.value = false;
    }

    stop() {
        this.gone.abort();
    }
}

/* The page says itself what an answer lacks. */
const how = (signal: AbortSignal) => ({ signal, tellsDegraded: true });

export const searchFeed = (a: Asked) =>
    new HitFeed((cursor, signal) => get<Page>(pathOf(a, cursor), how(signal)));

export const likeFeed = (x: Named) =>
    new HitFeed(async (cursor, signal) => {
        const limit = cursor ? LIKE_MORE : LIKE_FIRST;
        const page = await get<Replies["GET /api/search/like"]>(likePath(x, limit), how(signal));
        const next = !cursor && page.hits.length === limit ? "more" : null;
        return { ...page, next, searched: [] };
    });

/* What a hit was called, for the head of what is like it. */
export async function titleOf(x: Named): Promise<string> {
    const known = titles.get(nameOf({ kind: x.kind, id: Number(x.id), doi: x.id }));
    if (known !== undefined) return known;
    const id = encodeURIComponent(x.id);
    if (x.kind === "paper")
        return (await get<Replies["GET /api/papers"]>(`/api/papers?doi=${id}`)).title ?? "";
    return (await get<Replies["GET /api/posts/{post_id}"]>(`/api/posts/${id}`)).post.title;
}

/* The last one stays for a while, with all of its pages: the way back from a post or a screening
 * leads to where one was. */
const STAYS_MS = 5 * 60000;
let last: { key: string; feed: HitFeed; at: number } | null = null;

export function feedOf(a: Asked, like: string, anew = false): HitFeed | null {
    const named = namedOf(like);
    const key = JSON.stringify([me.value?.uid, named ? like : a]);
    const fresh = last?.key === key && Date.now() - last.at < STAYS_MS;
    if (fresh && !anew && !last!.feed.failed.value) return last!.feed;
    last?.feed.stop();
    last = null;
    if (!named && !a.question) return null;
    const feed = named ? likeFeed(named) : searchFeed(a);
    last = { key, feed, at: Date.now() };
    void feed.more();
    return feed;
}
