/* The HTTP API; the types of its replies are made out of /openapi.json. Everything that goes wrong
 * is an ApiError with a code that the pages have words for. */
import { reactive } from "vue";
import type { Replies } from "./replies";

export class ApiError extends Error {
    constructor(
        readonly status: number,
        readonly code: string,
        message: string,
        readonly field?: string,
        readonly retryAfter?: number,
    ) {
        super(message);
    }
}

/* What the last replies said about the server: shown in a bar above the page. */
export const link = reactive({ offline: false, degraded: false });

/* Not every route needs what is away: one good reply is no all-clear. */
const STICKS_MS = 4000;
let lastDegraded = 0;

export function noteDegraded(now: boolean) {
    if (now) lastDegraded = Date.now();
    link.degraded = Date.now() - lastDegraded < STICKS_MS;
}

type Body = Record<string, unknown>;
let onLoggedOut: () => void = () => {};

export function whenLoggedOut(fn: () => void) {
    onLoggedOut = fn;
}

const TIMEOUT_MS = 30000;

/* signal: the request is given up. tellsDegraded: the page says itself what a reply lacks. */
export interface How {
    signal?: AbortSignal;
    tellsDegraded?: boolean;
}

async function send(
    method: string,
    path: string,
    body?: Body,
    given?: AbortSignal,
): Promise<Response> {
    const late = AbortSignal.timeout(TIMEOUT_MS);
    try {
        const reply = await fetch(path, {
            method,
            credentials: "same-origin",
            headers: body ? { "Content-Type": "application/json" } : {},
            body: body ? JSON.stringify(body) : undefined,
            signal: given ? AbortSignal.any([given, late]) : late,
        });
        link.offline = false;
        return reply;
    } catch {
        if (given?.aborted) throw new ApiError(0, "aborted", "the request was given up");
        link.offline = true;
        throw new ApiError(0, "network", "the server cannot be reached");
    }
}

async function failure(reply: Response): Promise<ApiError> {
    const retry = Number(reply.headers.get("Retry-After")) || undefined;
    try {
        const { error } = await reply.json();
        return new ApiError(reply.status, error.code, error.message, error.field, retry);
    } catch {
        return new ApiError(
            reply.status,
            reply.status >= 500 ? "internal" : "invalid",
            reply.statusText,
            undefined,
            retry,
        );
    }
}

export async function api<T = Body>(
    method: string,
    path: string,
    body?: Body,
    { signal, tellsDegraded = false }: How = {},
): Promise<T> {
    const reply = await send(method, path, body, signal);
    if (!reply.ok) {
        const error = await failure(reply);
        if (error.status === 401 && !path.endsWith("/login")) onLoggedOut();
        throw error;
    }
    const value = await reply.json().catch(() => {
        if (signal?.aborted) throw new ApiError(0, "aborted", "the request was given up");
        throw new ApiError(reply.status, "internal", "the reply cannot be read");
    });
    if (!tellsDegraded) noteDegraded(value.degraded === true);
    return value as T;
}

/* A file, or a piece of one; sent() is told how much of it has left. fetch() does not tell. */
export function upload<T>(
    path: string,
    piece: Blob,
    sent: (bytes: number) => void,
    signal: AbortSignal,
    { media = "text/plain", timeoutMs = 2 * TIMEOUT_MS } = {},
): Promise<T> {
    return new Promise((done, fail) => {
        const x = new XMLHttpRequest();
        const lost = () => {
            link.offline = !signal.aborted;
            fail(new ApiError(0, "network", "the server cannot be reached"));
        };
        x.open("POST", path);
        x.timeout = timeoutMs;
        x.setRequestHeader("Content-Type", media);
        x.upload.onprogress = (e) => sent(e.loaded);
        x.onerror = x.onabort = x.ontimeout = lost;
        x.onload = async () => {
            link.offline = false;
            const reply = new Response(x.responseText, {
                status: x.status,
                statusText: x.statusText,
                headers: { "Retry-After": x.getResponseHeader("Retry-After") ?? "" },
            });
            if (x.status === 401) onLoggedOut();
            if (!reply.ok) return fail(await failure(reply));
            const value = await reply.json().catch(() => null);
            if (value) done(value as T);
            else fail(new ApiError(x.status, "internal", "the reply cannot be read"));
        };
        signal.addEventListener("abort", () => x.abort());
        x.send(piece);
    });
}

/* What is no JSON. */
export async function bytesOf(path: string): Promise<Uint8Array> {
    const reply = await send("GET", path);
    if (reply.ok) return new Uint8Array(await reply.arrayBuffer());
    if (reply.status === 401) onLoggedOut();
    throw await failure(reply);
}

export const get = <T>(path: string, how?: How) => api<T>("GET", path, undefined, how);
export const post = <T = Body>(path: string, body?: Body) => api<T>("POST", path, body);

export type { Replies };
export type Me = Replies["GET /api/me"];
export type Tag = Replies["GET /api/tags"]["tags"][number];
export type Journal = Replies["GET /api/journals"]["journals"][number];
export type Estimate = Replies["POST /api/estimate"];
/* The last one is in the events of a run, whose types /openapi.json does not have. */
export type Run = Replies["GET /api/queries/{id}"] & { papers_per_second?: number };
export type State = Run["state"];
export type Result = Replies["GET /api/queries/{id}/results"]["results"][number];
export type Session = Replies["GET /api/sessions"]["sessions"][number];
export type Token = Replies["GET /api/tokens"]["tokens"][number];
export type TokenApplication = Replies["GET /api/tokens"]["applications"][number];
export type NewToken = Replies["POST /api/tokens"];
export type Limit = Replies["GET /api/limits"]["limits"][number];
export type PlanKind = Replies["GET /api/plans"]["plans"][number]["kind"];
type PlanTask = Replies["GET /api/generation"]["tasks"][number];
export type PlanReason = NonNullable<PlanTask["reason_code"]>;
/* Which of them a task waits for, and which it fails for. */
export type PlanWait = Exclude<
    PlanReason,
    "refused" | "bad_answer" | "too_old" | "node_lost" | "cancelled"
>;
export type PlanFailure = Exclude<
    PlanReason,
    | "no_money"
    | "account_stopped"
    | "no_permission"
    | "permission_used"
    | "no_key"
    | "cancelled"
>;
export type LedgerEntry = Replies["GET /api/ledger"]["entries"][number];

export const isFinal = (s: State) => s === "DONE" || s === "CANCELLED" || s === "FAILED";
export const isActive = (s: State) => s === "QUEUED" || s === "RUNNING";
