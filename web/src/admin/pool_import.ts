/* A file into a pool, piece by piece. It is the module's, not a component's: an import goes on
 * while another tab of the page is looked at. */
import { reactive } from "vue";
import { ApiError, upload, type Replies } from "@/common/api";
import { explain } from "@/common/errors";

type Reply = Replies["POST /api/admin/pools/{type}/{group}/import"];
type Problem = Reply["problems"][number];
export type Format = "csv" | "jsonl";
export interface Wish {
    type: string;
    group: number;
    batch?: number;
    format: Format;
    file: File;
}

const PIECE_BYTES = 4 << 20;
const TRIES = 4;
const PROBLEMS_MAX = 100;
/* A file that is no good, not a server that is away: sent again it is refused again. */
const FINAL = ["invalid", "limit", "not_found", "forbidden", "unauthenticated"];

export const running = reactive({
    wish: null as Wish | null,
    state: "idle" as "idle" | "running" | "done" | "failed" | "stopped",
    sent: 0,
    read: 0,
    seconds: 0,
    batch: 0,
    imported: 0,
    inFile: 0,
    inGroup: 0,
    rejected: 0,
    problems: [] as Problem[],
    wrong: "",
    final: false,
});
let place = "";
let stop = new AbortController();

export const formatOf = (name: string): Format | undefined =>
    /\.csv$/i.test(name) ? "csv" : /\.(jsonl|ndjson)$/i.test(name) ? "jsonl" : undefined;

const wait = (ms: number) => new Promise((done) => window.setTimeout(done, ms));

/* The same piece can be sent again: what was stored is not stored twice. */
async function send(wish: Wish): Promise<Reply> {
    const end = Math.min(running.read + PIECE_BYTES, wish.file.size);
    const last = end === wish.file.size;
    const path =
        `/api/admin/pools/${wish.type}/${wish.group}/import` +
        `?format=${wish.format}&last=${last}${place}`;
    const piece = wish.file.slice(running.read, end);
    const sent = (bytes: number) => (running.sent = Math.min(end, running.read + bytes));
    for (let n = 1; ; n++)
        try {
            return await upload<Reply>(path, piece, sent, stop.signal);
        } catch (e) {
            const final = e instanceof ApiError && FINAL.includes(e.code);
            if (final || n === TRIES || stop.signal.aborted) throw e;
            await wait(500 * 2 ** n);
        }
}

function add(r: Reply) {
    running.read += r.read;
    running.sent = Math.max(running.sent, running.read);
    running.batch = r.batch_id;
    running.imported += r.imported;
    running.inFile += r.duplicates_in_file;
    running.inGroup += r.duplicates_in_group;
    running.rejected += r.rejected;
    running.problems.push(...r.problems.slice(0, PROBLEMS_MAX - running.problems.length));
    place = `&batch_id=${r.batch_id}&line=${r.line}`;
    if (r.columns) place += `&column=${r.column}&columns=${r.columns}`;
}

/* From where it is to the end. */
export async function goOn() {
    const wish = running.wish!;
    const began = Date.now() - running.seconds * 1000;
    stop = new AbortController();
    Object.assign(running, { state: "running", wrong: "", sent: running.read });
    try {
        do add(await send(wish));
        while (running.read < wish.file.size && !stop.signal.aborted);
        running.state = running.read < wish.file.size ? "stopped" : "done";
    } catch (e) {
        running.state = stop.signal.aborted ? "stopped" : "failed";
        running.wrong = stop.signal.aborted ? "" : explain(e);
        running.final = e instanceof ApiError && FINAL.includes(e.code);
    }
    running.seconds = (Date.now() - began) / 1000;
}

export function begin(wish: Wish) {
    place = wish.batch ? `&batch_id=${wish.batch}` : "";
    Object.assign(running, {
        wish,
        sent: 0,
        read: 0,
        seconds: 0,
        batch: 0,
        imported: 0,
        inFile: 0,
        inGroup: 0,
        rejected: 0,
        problems: [],
        final: false,
    });
    return goOn();
}

export const cancel = () => stop.abort();
export const forget = () => Object.assign(running, { wish: null, state: "idle" });

window.addEventListener("beforeunload", (e) => {
    if (running.state === "running") e.preventDefault();
});
