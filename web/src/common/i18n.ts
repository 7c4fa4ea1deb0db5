/* Chinese when the browser asks for it or the user chose it, else English. One language is loaded at a time. */
import { createI18n } from "vue-i18n";
import type { Words } from "./locales/en";

export type Language = "en" | "zh-CN";
const KEY = "millrace.language";

const files: Record<Language, () => Promise<{ default: Words }>> = {
    en: () => import("./locales/en"),
    "zh-CN": () => import("./locales/zh"),
};

/* Words that only some pages need, beside the common ones. */
let more: Record<Language, () => Promise<{ default: object }>> | undefined;

export function moreWords(files: NonNullable<typeof more>) {
    more = files;
}

export const i18n = createI18n({ legacy: false, locale: "en" as Language, fallbackLocale: false, messages: {} });

export function wanted(): Language {
    const chosen = localStorage.getItem(KEY);
    if (chosen === "en" || chosen === "zh-CN") return chosen;
    const first = navigator.languages.find((l) => /^(zh|en)\b/i.test(l)) ?? "en";
    return /^zh/i.test(first) ? "zh-CN" : "en";
}

export async function speak(language: Language, remember = false) {
    const words = await files[language]();
    const others = await more?.[language]();
    i18n.global.setLocaleMessage(language, { ...words.default, ...others?.default } as never);
    i18n.global.locale.value = language as never;
    document.documentElement.lang = language;
    if (remember) localStorage.setItem(KEY, language);
}
