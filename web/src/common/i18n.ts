/* Chinese when the browser asks for it or the user chose it, else English. One language is loaded
 * at a time, and the admins' words only by the admins' pages. */
import { createI18n } from "vue-i18n";
import type { AdminWords } from "@/words/admin/en";
import type { Words } from "@/words/en";

export type Language = "en" | "zh-CN";
const KEY = "millrace.language";

type File<T> = () => Promise<{ default: T }>;
const files: Record<Language, { common: File<Words>; admin: File<AdminWords> }> = {
    en: { common: () => import("@/words/en"), admin: () => import("@/words/admin/en") },
    "zh-CN": { common: () => import("@/words/zh"), admin: () => import("@/words/admin/zh") },
};
let forAdmins = false;

export function loadAdminWords() {
    forAdmins = true;
}

export const i18n = createI18n({
    legacy: false,
    locale: "en" as Language,
    fallbackLocale: false,
    messages: {},
});

export function wanted(): Language {
    const chosen = localStorage.getItem(KEY);
    if (chosen === "en" || chosen === "zh-CN") return chosen;
    const first = navigator.languages.find((l) => /^(zh|en)\b/i.test(l)) ?? "en";
    return /^zh/i.test(first) ? "zh-CN" : "en";
}

export async function speak(language: Language, remember = false) {
    const words = await files[language].common();
    const others = forAdmins ? await files[language].admin() : undefined;
    i18n.global.setLocaleMessage(language, { ...words.default, ...others?.default } as never);
    i18n.global.locale.value = language as never;
    document.documentElement.lang = language;
    if (remember) localStorage.setItem(KEY, language);
}
