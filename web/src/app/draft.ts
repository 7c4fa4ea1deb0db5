/* The selection and question that are not sent yet, kept in the browser: neither a failed request
 * nor an ended session loses them. */
import { reactive, watch } from "vue";
import { me } from "./me";

export interface Draft {
    tags: string[];
    journals: string[];
    yearFrom: number | null;
    yearTo: number | null;
    question: string;
}
const empty = (): Draft => ({ tags: [], journals: [], yearFrom: null, yearTo: null, question: "" });
export const draft = reactive<Draft>(empty());

const key = () => `millrace.draft.${me.value?.uid ?? 0}`;

watch(
    () => me.value?.uid,
    (uid) => {
        let kept: Partial<Draft> = {};
        try {
            kept = uid ? JSON.parse(localStorage.getItem(key()) ?? "{}") : {};
        } catch {
            /* from an older version */
        }
        Object.assign(draft, empty(), kept);
    },
    { immediate: true },
);
watch(draft, () => me.value && localStorage.setItem(key(), JSON.stringify(draft)));
