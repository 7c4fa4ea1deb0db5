/* Light and dark. theme.js has set data-theme before the first paint; here it is changed and
 * followed. */
import { darkTheme, type GlobalThemeOverrides } from "naive-ui";
import { computed, ref, watchEffect } from "vue";

const KEY = "millrace.theme";
export type Choice = "system" | "light" | "dark";

const system = matchMedia("(prefers-color-scheme: dark)");
const systemDark = ref(system.matches);
system.addEventListener("change", (e) => (systemDark.value = e.matches));

export const choice = ref<Choice>((localStorage.getItem(KEY) as Choice | null) ?? "system");
export const dark = computed(() =>
    choice.value === "system" ? systemDark.value : choice.value === "dark",
);
export const naive = computed(() => (dark.value ? darkTheme : null));

watchEffect(() => {
    document.documentElement.dataset.theme = dark.value ? "dark" : "light";
});

export function choose(c: Choice) {
    choice.value = c;
    localStorage.setItem(KEY, c);
}

/* The library's own green is too light for white text on it (3.3:1). */
const LIGHT: GlobalThemeOverrides = {
    common: {
        primaryColor: "#0b6b5d",
        primaryColorHover: "#0f7f6f",
        primaryColorPressed: "#08564b",
        primaryColorSuppl: "#0f7f6f",
        errorColor: "#b3261e",
        errorColorHover: "#c5372f",
        errorColorPressed: "#8f1d17",
        warningColor: "#8a5300",
        placeholderColor: "#6a7178",
        borderRadius: "8px",
        fontFamily: "var(--font)",
        textColorBase: "#1b2328",
        textColor2: "#2b343a",
        textColor3: "#59636b",
    },
};
const DARK: GlobalThemeOverrides = {
    common: {
        primaryColor: "#5fd0b8",
        primaryColorHover: "#7adcc8",
        primaryColorPressed: "#43b89f",
        primaryColorSuppl: "#43b89f",
        bodyColor: "#11171a",
        cardColor: "#192125",
        modalColor: "#1d262b",
        popoverColor: "#232d33",
        placeholderColor: "#8f9aa1",
        borderRadius: "8px",
        fontFamily: "var(--font)",
        textColor3: "#9aa6ad",
    },
};
export const overrides = computed(() => (dark.value ? DARK : LIGHT));
