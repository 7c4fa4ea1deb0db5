/* Days of a plan: dates as texts ("2026-01-31", of no time zone), and what a day holds. */
import type { Replies } from "@/common/api";
import { i18n } from "@/common/i18n";

export type WholePlan = Replies["GET /api/plans/{plan_id}"]["plan"];
export type Day = WholePlan["days"][number];
export type DayReply = Replies["GET /api/plans/{plan_id}/days/{date}"];
export type Exercise = NonNullable<Day["exercises"]>[number];
export type Food = NonNullable<NonNullable<Day["meals"]>["lunch"]>[number];

export const MEALS = ["breakfast", "lunch", "dinner", "snacks"] as const;
export const NUTRIENTS = ["calories", "protein", "carbs", "fat"] as const;
export type Nutrient = (typeof NUTRIENTS)[number];
export const REST = "rest";

/* --- dates --- */

const at = (date: string) => new Date(`${date}T00:00:00Z`);

export function today(after = 0): string {
    const d = new Date();
    d.setDate(d.getDate() + after);
    const two = (n: number) => String(n).padStart(2, "0");
    return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())}`;
}

const written = (date: string, options: Intl.DateTimeFormatOptions) =>
    new Intl.DateTimeFormat(i18n.global.locale.value, { ...options, timeZone: "UTC" }).format(
        at(date),
    );
export const weekday = (date: string) => written(date, { weekday: "short" });
export const dayMonth = (date: string) => written(date, { day: "numeric", month: "short" });
export const longDate = (date: string) => written(date, { dateStyle: "full" });
export const mediumDate = (date: string) => written(date, { dateStyle: "medium" });

/* The day to show first: today, or the end of the plan that is nearer to it. */
export function nearest(days: Day[]): string {
    const now = today();
    const found = days.find((d) => d.date >= now) ?? days.at(-1);
    return found?.date ?? now;
}

/* --- contents --- */

export const isRest = (d: Day) => d.day_type === REST;
export const foods = (d: Pick<Day, "meals">) => MEALS.flatMap((m) => d.meals?.[m] ?? []);
export const sum = (list: Food[], what: Nutrient) =>
    Math.round(list.reduce((all, f) => all + (f[what] ?? 0), 0) * 10) / 10;
export const target = (d: Day, what: Nutrient) => d[`target_${what}`] ?? 0;

/* As the server checks it: the meals of a day may miss its target by 5 %. */
export const misses = (target: number, got: number) => Math.abs(got - target) * 20 > target;

/* "lower_body" is written by a machine. */
export const plain = (word: string | null | undefined) => (word ?? "").replaceAll("_", " ");

/* --- what is typed and not saved --- */

const place = (plan: string, date: string) => `millrace.day.${plan}.${date}`;

export function typed<Form>(plan: string, date: string): { version: number; form: Form } | null {
    try {
        return JSON.parse(sessionStorage.getItem(place(plan, date)) ?? "null");
    } catch {
        return null;
    }
}
export const keepTyped = (plan: string, date: string, what: object) =>
    sessionStorage.setItem(place(plan, date), JSON.stringify(what));
export const clearTyped = (plan: string, date: string) =>
    sessionStorage.removeItem(place(plan, date));
