/* The HTTP API, as /openapi.json tells it. Everything that goes wrong is an ApiError with a code
 * that the pages have words for. */
import { reactive } from "vue";

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

function noteDegraded(now: boolean) {
    if (now) lastDegraded = Date.now();
    link.degraded = Date.now() - lastDegraded < STICKS_MS;
}

type Body = Record<string, unknown>;
let onLoggedOut: () => void = () => {};

export function whenLoggedOut(fn: () => void) {
    onLoggedOut = fn;
}

const TIMEOUT_MS = 30000;

async function send(method: string, path: string, body?: Body): Promise<Response> {
    try {
        const reply = await fetch(path, {
            method,
            credentials: "same-origin",
            headers: body ? { "Content-Type": "application/json" } : {},
            body: body ? JSON.stringify(body) : undefined,
            signal: AbortSignal.timeout(TIMEOUT_MS),
        });
        link.offline = false;
        return reply;
    } catch {
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
        return new ApiError(reply.status, reply.status >= 500 ? "internal" : "invalid", reply.statusText, undefined, retry);
    }
}

export async function api<T = Body>(method: string, path: string, body?: Body): Promise<T> {
    const reply = await send(method, path, body);
    if (!reply.ok) {
        const error = await failure(reply);
        if (error.status === 401 && !path.endsWith("/login")) onLoggedOut();
        throw error;
    }
    const value = await reply.json().catch(() => {
        throw new ApiError(reply.status, "internal", "the reply cannot be read");
    });
    noteDegraded(value.degraded === true);
    return value as T;
}

export const get = <T>(path: string) => api<T>("GET", path);
export const post = <T = Body>(path: string, body?: Body) => api<T>("POST", path, body);

export interface Me {
    uid: number;
    username: string;
    balance: string;
    permission: number;
}
export interface Tag {
    tag: string;
    type: string;
    journals: number;
}
export interface Journal {
    name: string;
    full_name: string | null;
    data_range: string | null;
    update_date: string | null;
    price: number;
    years: Record<string, number>;
}
export interface Estimate {
    papers: number;
    cost: string;
    per_journal: { journal: string; papers: number; price: number; cost: string }[];
}
export type State = "QUEUED" | "RUNNING" | "PAUSED" | "DONE" | "CANCELLED" | "FAILED";
export interface Progress {
    state: State;
    reason: string | null;
    reason_code: "funds" | "account" | "banned" | "admin" | "expired" | "unrecorded" | "other" | null;
    papers: number;
    finished: number;
    relevant: number;
    failed: number;
    cost: string;
    workers: number;
    papers_per_second?: number;
    seconds_left?: number | null;
}
export interface Run extends Progress {
    query_id: string;
    question: string;
    created_at: string;
    start_time: string | null;
    end_time: string | null;
    is_distillation: boolean;
    original_query_id: string | null;
}
export interface Result {
    doi: string;
    title: string | null;
    journal: string;
    year: number;
    relevant: boolean | null;
    reason: string | null;
    error: string | null;
}
export interface Paper extends Result {
    authors: string | null;
    abstract: string | null;
    printed_in: string | null;
    bibtex: string | null;
}
export interface Session {
    sid: string;
    current: boolean;
    login_time: string;
    last_activity: string;
    ip_address: string;
    user_agent: string;
}
export interface LedgerEntry {
    at: string;
    kind: "opening" | "charge" | "recharge" | "deduction" | "reversal";
    amount: string;
    query_id: string | null;
    doi: string | null;
}

export const isFinal = (s: State) => s === "DONE" || s === "CANCELLED" || s === "FAILED";
export const isActive = (s: State) => s === "QUEUED" || s === "RUNNING";
