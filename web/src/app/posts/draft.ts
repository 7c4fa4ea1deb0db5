/* Posts that are written and not saved yet, kept in the browser by user and post: neither a failed
 * request nor a reload nor an ended session loses them. "new": the one that is not there yet. */
import { me } from "../me";
import type { Form } from "./posts";

export interface Draft {
    version: number; /* that it was made from; 0: of a new post */
    form: Form;
    mine?: Form; /* what was typed before the newer one of a conflict was taken into the form */
    request?: string; /* this form was sent as a new post by, and no answer has come */
}
const prefix = () => `millrace.post-draft.${me.value?.uid ?? 0}.`;

export function keptDraft(id: string): Draft | null {
    try {
        return JSON.parse(localStorage.getItem(prefix() + id) ?? "null");
    } catch {
        return null; /* from an older version */
    }
}

/* false: the browser has no room for it. */
export function keepDraft(id: string, draft: Draft): boolean {
    if (!me.value) return true; /* the session has ended, and what was typed is kept already */
    try {
        localStorage.setItem(prefix() + id, JSON.stringify(draft));
        return true;
    } catch {
        return false;
    }
}
export const dropDraft = (id: string) => localStorage.removeItem(prefix() + id);
export const hasDraft = (id: string) => localStorage.getItem(prefix() + id) !== null;
