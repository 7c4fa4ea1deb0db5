/* Posts of this user, and those of others that may be seen. */
import { api, ApiError, get, post, type Replies } from "@/common/api";
import { cents, duration, number } from "@/common/format";
import { explain } from "@/common/errors";
import { i18n } from "@/common/i18n";

type Page = Replies["GET /api/posts"];
export type Listed = Page["posts"][number];
export type Post = Replies["GET /api/posts/{post_id}"]["post"];
export type Terms = Pick<Page, "content_chars_max" | "price" | "service" | "simulated">;
/* What the events say of one. */
export type Status = Pick<
    Listed,
    "id" | "rag_status" | "rag_error" | "reason_code" | "progress"
>;
export type Reason = NonNullable<Listed["reason_code"]>;
export type Which = "own" | "all";
export interface Form {
    title: string;
    content: string;
    hide: boolean;
}

export const TITLE_CHARS_MAX = 500;
const PAGE = 50;
const path = (id: string | number) => `/api/posts/${encodeURIComponent(id)}`;

export const loadPosts = (of: Which, cursor?: string | null) =>
    get<Page>(
        `/api/posts?of=${of}&limit=${PAGE}${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ""}`,
    );
export const loadTerms = (): Promise<Terms> => get<Page>("/api/posts?limit=1");
export const loadPost = async (id: string) =>
    (await get<Replies["GET /api/posts/{post_id}"]>(path(id))).post;
/* Sent again with the same request, it is the same post. */
export const addPost = async (form: Form, request_id: string) =>
    (await post<Replies["POST /api/posts"]>("/api/posts", { ...form, request_id })).post;
/* version: that the change was made from. */
export const changePost = async (id: string, version: number, form: Form) =>
    (await api<Replies["PUT /api/posts/{post_id}"]>("PUT", path(id), { ...form, version })).post;
export const deletePost = (id: number, version: number) =>
    api("DELETE", `${path(id)}?version=${version}`);
export const indexPost = (id: number) => post(`/api/post/${id}/embed`);

export const isOpen = (x: Pick<Status, "rag_status">) =>
    x.rag_status === "pending" || x.rag_status === "processing";
/* In the queue, or taken out of it, but something holds it up. */
export const waits = (x: Status) => isOpen(x) && !!x.reason_code;
/* It has no text, so there is nothing that could be indexed. */
export const isEmpty = (x: Status) => x.rag_status === "completed" && !x.progress.total;
export const costs = (terms: Terms | null) => !!terms && cents(terms.price) > 0n;

/* As the server counts them. */
export const charsOf = (text: string) =>
    text.length - (text.match(/[\ud800-\udbff](?=[\udc00-\udfff])/g)?.length ?? 0);

/* --- words --- */

/* Words of others end with a full stop, or do not; the sentence around them does. */
const bare = (words: string) => words.trim().replace(/[.。]$/, "");

/* What a post waits for, or why it has failed; "": nothing to say. A server that is newer than this
 * page may have other codes. */
export function storyOf(x: Status): string {
    const { t, te } = i18n.global;
    if (x.rag_status === "completed" || (!x.reason_code && !x.rag_error))
        return x.rag_status === "failed" ? t("posts.failedSilently") : "";
    const words = bare(x.rag_error ?? x.reason_code ?? "");
    if (x.rag_status !== "failed" && /^there is no active key/.test(words))
        return t("posts.waitsForKey");
    const stories = x.rag_status === "failed" ? "posts.failed" : "posts.waits";
    const known = `${stories}.${x.reason_code}`;
    return t(te(known) ? known : `${stories}.other`, { words });
}

/* What was refused while a post was written or queued. */
export function explainPost(e: unknown): string {
    const { t } = i18n.global;
    if (!(e instanceof ApiError)) return explain(e);
    const most = /^you have (\d+) posts/.exec(e.message)?.[1];
    if (e.code === "conflict" && most) return t("posts.tooMany", { n: number(Number(most)) });
    if (e.code === "conflict" && /is empty/.test(e.message)) return t("posts.nothingToIndex");
    if (e.code === "funds") return t("posts.notEnough");
    if (e.code === "forbidden") return t("posts.forbidden");
    if (e.code === "rate" && e.retryAfter)
        return t("posts.limitReached", { time: duration(e.retryAfter) });
    if (e.code === "busy") return t("posts.queueFull");
    return explain(e);
}
