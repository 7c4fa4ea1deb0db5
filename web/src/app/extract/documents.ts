/* Documents of this user, and files on their way to the server: one after another, each with its
 * progress, and with its own sentence if it is refused. */
import { reactive } from "vue";
import { api, ApiError, get, upload, type Replies } from "@/common/api";
import { explain } from "@/common/errors";
import { bytes as sizeOf, number } from "@/common/format";
import { i18n } from "@/common/i18n";
import { reasonOf } from "./reasons";

export type Page = Replies["GET /api/documents"];
export type Doc = Page["documents"][number];

const PAGE = 100;
const AT_ONCE = 1; /* in their order */
const SLOW_MS = 15 * 60 * 1000; /* a large file on a thin line */
export const ACCEPTED = ".txt,.text,.md,.markdown,.pdf,text/plain,text/markdown,application/pdf";

export const loadDocuments = (cursor?: string | null) =>
    get<Page>(
        `/api/documents?limit=${PAGE}${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ""}`,
    );
export const deleteDocument = (id: string) =>
    api("DELETE", `/api/documents/${encodeURIComponent(id)}`);

export const kindOf = (d: Pick<Doc, "media">) =>
    ({ "application/pdf": "pdf", "text/markdown": "markdown" })[d.media as string] ?? "text";

/* --- files that are refused --- */

/* Refusals have no code of their own but "invalid" and the like: the server's words, and the key of
 * the page's. Groups are {a} and {b}. */
const KNOWN: [RegExp, string][] = [
    [/^the file is empty/, "empty"],
    [/^the file is called \.pdf, but is none/, "noPdf"],
    [/^the file is neither text nor PDF/, "neither"],
    [/^the file is too large: a document has at most (\d+) MB/, "large"],
    [/^there is no room for the file: your documents have (\d+) MB of (\d+) MB/, "full"],
    [/^you have (\d+) documents/, "many"],
    [/^the upload took too long/, "slow"],
];

function refusal(e: unknown): string {
    if (!(e instanceof ApiError) || !["invalid", "limit", "conflict"].includes(e.code))
        return explain(e);
    for (const [pattern, key] of KNOWN) {
        const found = pattern.exec(e.message);
        if (found) return i18n.global.t(`extract.refused.${key}`, { a: found[1], b: found[2] });
    }
    return reasonOf(null, e.message);
}

/* --- uploads --- */

export interface Upload {
    id: number;
    name: string;
    bytes: number;
    sent: number;
    state: "waiting" | "sending" | "reading" | "done" | "failed";
    again: boolean; /* it was there before */
    wrong: string;
}

export class Uploads {
    readonly list = reactive<Upload[]>([]);
    private readonly files = new Map<number, File>();
    private readonly stop = new AbortController();
    private last = 0;

    /* max(): bytes of a file; taken(): one is there now. */
    constructor(
        private readonly max: () => number,
        private readonly taken: (d: Doc) => void,
    ) {}

    add(files: Iterable<File>) {
        for (const file of files) {
            const id = ++this.last;
            const large = file.size > this.max();
            this.list.push({
                id,
                name: file.name,
                bytes: file.size,
                sent: 0,
                state: large ? "failed" : "waiting",
                again: false,
                wrong: large ? this.tooLarge() : "",
            });
            if (!large) this.files.set(id, file);
        }
        this.next();
    }

    retry(x: Upload) {
        Object.assign(x, { state: "waiting", wrong: "", sent: 0 });
        this.next();
    }

    dismiss(id: number) {
        const at = this.list.findIndex((x) => x.id === id);
        if (at >= 0) this.list.splice(at, 1);
        this.files.delete(id);
    }

    canRetry(x: Upload) {
        return x.state === "failed" && this.files.has(x.id);
    }

    close() {
        this.stop.abort();
    }

    private tooLarge = () =>
        i18n.global.t("extract.refused.large", { a: number(this.max() / 1024 / 1024) });

    private next() {
        const going = this.list.filter((x) => x.state === "sending" || x.state === "reading");
        const waiting = this.list.filter((x) => x.state === "waiting");
        for (const x of waiting.slice(0, Math.max(0, AT_ONCE - going.length))) void this.send(x);
    }

    private async send(x: Upload) {
        x.state = "sending";
        try {
            const reply = await upload<Replies["POST /api/documents"]>(
                `/api/documents?name=${encodeURIComponent(x.name)}`,
                this.files.get(x.id)!,
                (sent) => {
                    x.sent = Math.min(sent, x.bytes);
                    if (sent >= x.bytes) x.state = "reading";
                },
                this.stop.signal,
                { media: "application/octet-stream", timeoutMs: SLOW_MS },
            );
            Object.assign(x, { state: "done", sent: x.bytes, again: reply.again });
            this.files.delete(x.id);
            this.taken({ created_at: new Date().toISOString(), ...reply });
        } catch (e) {
            if (this.stop.signal.aborted) return;
            Object.assign(x, { state: "failed", wrong: refusal(e) });
        }
        this.next();
    }
}

export const spaceOf = (p: Pick<Page, "bytes_used" | "bytes_max">) => ({
    used: sizeOf(p.bytes_used),
    max: sizeOf(p.bytes_max),
    percent: p.bytes_max ? Math.min(100, (100 * p.bytes_used) / p.bytes_max) : 100,
});
