/* Requests that cost money when they are accepted: each carries an id of its own, which stays the
 * same until an answer has come. So an impatient click, a lost reply or a retry of the browser
 * leaves one run, not two. */
import { ApiError, post } from "./api";

/* Of one request. crypto.randomUUID exists on pages with TLS only. */
export const requestId = () =>
    [...crypto.getRandomValues(new Uint8Array(16))]
        .map((b) => b.toString(16).padStart(2, "0"))
        .join("");

/* One for each form. A body that differs from the last one is another request. */
export function submitter<T>(path: string) {
    let id = "";
    let last = "";
    return async (body: Record<string, unknown>): Promise<T> => {
        const text = JSON.stringify(body);
        if (!id || text !== last) [id, last] = [requestId(), text];
        try {
            const answer = await post<T>(path, { ...body, request_id: id });
            id = "";
            return answer;
        } catch (e) {
            if (e instanceof ApiError && e.status >= 400 && e.status < 500) id = "";
            throw e;
        }
    };
}
