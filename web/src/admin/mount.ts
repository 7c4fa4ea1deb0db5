/* What all pages of the operators begin with. */
import { createApp, type Component } from "vue";
import { i18n, loadAdminWords, speak, wanted } from "@/common/i18n";
import "@/common/style.css";

export async function mount(page: Component) {
    loadAdminWords();
    await speak(wanted());
    createApp(page).use(i18n).mount("#app");
}
