/* What all pages of the operators begin with. */
import { createApp, type Component } from "vue";
import { i18n, moreWords, speak, wanted } from "@/common/i18n";
import "@/common/style.css";

export async function mount(page: Component) {
    moreWords({ en: () => import("./words/en"), "zh-CN": () => import("./words/zh") });
    await speak(wanted());
    createApp(page).use(i18n).mount("#app");
}
