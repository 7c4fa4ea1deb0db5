/* A screening before it is started: what it would cost, asked again when the choice changes, and
 * its start. */
import { computed, onScopeDispose, ref, watch } from "vue";
import { useI18n } from "vue-i18n";
import { useRouter } from "vue-router";
import { ApiError, post, type Estimate, type Replies } from "@/common/api";
import { explain } from "@/common/errors";
import { submitter } from "@/common/submit";
import { toast } from "@/common/toast";
import { loadRuns } from "./history";
import { me, refreshMe } from "./me";

export const QUESTION_MAX = 4000;
const ESTIMATE_AFTER_MS = 400;
const submitRun = submitter<Replies["POST /api/queries"]>("/api/queries");

interface Form {
    /* Which papers, as the API takes it; null: there is nothing to ask about yet. */
    choice: () => Record<string, unknown> | null;
    question: () => string;
    /* What is said when there is no choice, and what is wrong with the papers that are in it. */
    needChoice: () => string;
    complaint: (e: Estimate) => string | false;
    started: () => void;
}

export function useScreening(form: Form) {
    const { t } = useI18n();
    const router = useRouter();
    const estimate = ref<Estimate | null>(null);
    const estimating = ref(false);
    const stale = ref(false);
    const wrong = ref("");
    const starting = ref(false);
    let asked = 0;
    let timer: number | undefined;

    async function update() {
        const number = ++asked;
        const choice = form.choice();
        window.clearTimeout(timer);
        wrong.value = "";
        if (!choice) {
            estimate.value = null;
            stale.value = false;
            estimating.value = false;
            return;
        }
        estimating.value = true;
        refreshMe().catch(() => {}); /* what is free, beside what it costs */
        try {
            const answer = await post<Estimate>("/api/estimate", choice);
            if (number !== asked) return;
            estimate.value = answer;
            stale.value = false;
        } catch (e) {
            if (number === asked) wrong.value = explain(e);
        } finally {
            if (number === asked) estimating.value = false;
        }
    }
    watch(
        () => JSON.stringify(form.choice()),
        () => {
            stale.value = estimate.value !== null;
            window.clearTimeout(timer);
            timer = window.setTimeout(update, ESTIMATE_AFTER_MS);
        },
        { immediate: true },
    );

    onScopeDispose(() => window.clearTimeout(timer));

    const lacking = computed(() =>
        [
            me.value?.account === "stopped" && t("home.stopped"),
            me.value?.permission === 0 && t("home.noPermission"),
            !form.choice() && form.needChoice(),
            form.choice() && estimate.value && !stale.value && form.complaint(estimate.value),
            !form.question().trim() && t("home.needQuestion"),
        ].filter((x): x is string => typeof x === "string"),
    );
    const complained = ref(false);
    const missing = computed(() => (complained.value ? lacking.value : []));

    async function start() {
        complained.value = true;
        if (lacking.value.length || starting.value) return;
        starting.value = true;
        try {
            const question = form.question().trim();
            const { query_id } = await submitRun({ question, ...form.choice() });
            complained.value = false;
            form.started();
            toast("good", t("home.started"));
            loadRuns().catch(() => {});
            refreshMe().catch(() => {});
            router.push({ name: "run", params: { id: query_id } });
        } catch (e) {
            toast("bad", explain(e));
            if (e instanceof ApiError && e.code === "funds") refreshMe().catch(() => {});
        } finally {
            starting.value = false;
        }
    }
    /* What an EstimatePanel shows, and what it does. */
    const panel = computed(() => ({
        estimate: estimate.value,
        stale: stale.value,
        busy: estimating.value,
        starting: starting.value,
        wrong: wrong.value,
        missing: missing.value,
    }));
    return { estimate, stale, panel, acts: { update, start } };
}
