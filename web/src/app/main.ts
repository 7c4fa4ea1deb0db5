import { createApp } from "vue";
import { i18n, speak, wanted } from "@/common/i18n";
import "@/common/style.css";
import App from "./App.vue";
import { router } from "./router";

await speak(wanted());
createApp(App).use(i18n).use(router).mount("#app");
