/* Numbers, money and times as people of the chosen language write them. */
import { i18n } from "./i18n";

const lang = () => i18n.global.locale.value;

export const number = (n: number) => new Intl.NumberFormat(lang()).format(n);
export const decimal = (n: number, digits = 1) =>
    new Intl.NumberFormat(lang(), {
        minimumFractionDigits: digits,
        maximumFractionDigits: digits,
    }).format(n);
export const percent = (part: number, whole: number) =>
    new Intl.NumberFormat(lang(), {
        style: "percent",
        maximumFractionDigits: part && part < whole / 100 ? 2 : 0,
    }).format(whole ? part / whole : 0);

/* 1536 -> 1.5 KB. */
export function bytes(n: number): string {
    const units = ["B", "KB", "MB", "GB"];
    let i = 0;
    for (; n >= 1024 && i < units.length - 1; i++) n /= 1024;
    return `${decimal(n, n < 10 && n % 1 ? 1 : 0)} ${units[i]}`;
}

/* "240.00" is exact: it is grouped as text, never made a float. */
export function money(amount: string): string {
    const [whole = "0", cents = "00"] = amount.replace(/^[-+]/, "").split(".");
    const sign = amount.startsWith("-") ? "−" : "";
    return sign + whole.replace(/\B(?=(\d{3})+$)/g, ",") + "." + cents.padEnd(2, "0");
}

export const cents = (amount: string) => BigInt(amount.replace(".", ""));

export const time = (iso: string) =>
    new Intl.DateTimeFormat(lang(), { dateStyle: "medium", timeStyle: "short" }).format(
        new Date(iso),
    );

/* The time of day, with the date if it is another day. */
export function clock(iso: string, now = new Date()): string {
    const at = new Date(iso);
    return at.toDateString() === now.toDateString()
        ? new Intl.DateTimeFormat(lang(), { timeStyle: "medium" }).format(at)
        : time(iso);
}

const UNITS: [Intl.RelativeTimeFormatUnit, number][] = [
    ["day", 86400],
    ["hour", 3600],
    ["minute", 60],
];

export function ago(iso: string, now = Date.now()): string {
    const seconds = (now - new Date(iso).getTime()) / 1000;
    if (seconds > 7 * 86400) return time(iso);
    const words = new Intl.RelativeTimeFormat(lang(), { numeric: "auto", style: "short" });
    for (const [unit, length] of UNITS)
        if (seconds >= length) return words.format(-Math.floor(seconds / length), unit);
    return words.format(0, "minute");
}

/* 3725 -> 1 h 2 min; told roughly, as an estimate should be. */
export function duration(seconds: number): string {
    const t = i18n.global.t;
    if (seconds < 60) return t("time.seconds", { n: Math.max(1, Math.round(seconds)) });
    if (seconds < 3600) return t("time.minutes", { n: Math.round(seconds / 60) });
    const minutes = Math.round(seconds / 60);
    return t("time.hours", { h: Math.floor(minutes / 60), m: minutes % 60 });
}

/* From 3 min to 5 min. */
export function durations(least: number, most: number): string {
    const [from, to] = [duration(least), duration(most)];
    return from === to ? from : i18n.global.t("time.range", { from, to });
}
