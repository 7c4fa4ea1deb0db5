/* What the server says to those who are not logged in: whether new accounts can be made, whether a
 * ban has ended the session of this browser, and whom to ask. */
import { computed, ref } from "vue";
import { get, type Replies } from "@/common/api";
import { i18n } from "@/common/i18n";

export const welcome = ref<Replies["GET /api/welcome"] | null>(null);
export const whom = computed(
    () => welcome.value?.contact || i18n.global.t("login.administrator"),
);

/* Without an answer nothing is claimed. */
export async function refreshWelcome() {
    try {
        welcome.value = await get("/api/welcome");
    } catch {
        welcome.value = null;
    }
}
