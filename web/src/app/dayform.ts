/* A day of a plan while it is changed: every field is the text that was typed. What may stand in
 * them is what the server checks (src/app/plan/shape.h); it checks once more. */
import { number } from "@/common/format";
import { i18n } from "@/common/i18n";
import {
    isRest,
    MEALS,
    misses,
    NUTRIENTS,
    REST,
    sum,
    type Day,
    type Exercise,
    type Food,
    type Nutrient,
} from "./days";
import type { Kind } from "./plans";

export type Row = Record<string, string>;
export interface DayForm {
    rest: boolean;
    fields: Row;
    exercises: Row[];
    meals: Record<(typeof MEALS)[number], Row[]>;
}
/* By the place of the field: "duration", "exercises.0.sets", "meals.lunch.1.calories". */
export type Wrong = Record<string, string>;

interface Spec {
    name: string;
    chars?: number; /* a text; else a number */
    least?: number; /* of a text 1: it must be there */
    most?: number;
    tenths?: boolean;
}
export const ITEMS_MAX = 20;
const CALORIES = 20000;
const GRAMS = 5000;
const nutrients = (prefix = ""): Spec[] =>
    NUTRIENTS.map((name) => ({
        name: prefix + name,
        most: name === "calories" ? CALORIES : GRAMS,
        tenths: true,
    }));
export const TRAINING: Spec[] = [
    { name: "day_type", chars: 40, least: 1 },
    { name: "focus_area", chars: 80, least: 1 },
    { name: "duration", least: 1, most: 1440 },
    { name: "estimated_calories", most: CALORIES },
];
export const EXERCISE: Spec[] = [
    { name: "name", chars: 120, least: 1 },
    { name: "sets", least: 1, most: 50 },
    { name: "reps", least: 1, most: 1000 },
    { name: "weight", chars: 40 },
    { name: "rest", chars: 40 },
    { name: "difficulty", chars: 40 },
];
export const TARGETS: Spec[] = nutrients("target_");
export const FOOD: Spec[] = [{ name: "name", chars: 120, least: 1 }, ...nutrients()];

/* --- there and back --- */

const rowOf = (specs: Spec[], from: object): Row =>
    Object.fromEntries(
        specs.map((s) => [s.name, String((from as Record<string, unknown>)[s.name] ?? "")]),
    );

export const newExercise = (): Row =>
    rowOf(EXERCISE, { sets: 3, reps: 10, difficulty: "medium" } as Partial<Exercise>);
export const newFood = (): Row =>
    rowOf(FOOD, { calories: 0, protein: 0, carbs: 0, fat: 0 } as Partial<Food>);

export function formOf(kind: Kind, day: Day): DayForm {
    const rest = kind === "training" && isRest(day);
    const meals = MEALS.map((m) => [m, (day.meals?.[m] ?? []).map((f) => rowOf(FOOD, f))]);
    return {
        rest,
        fields: rowOf(kind === "training" ? TRAINING : TARGETS, rest ? {} : day),
        exercises: (day.exercises ?? []).map((x) => rowOf(EXERCISE, x)),
        meals: Object.fromEntries(meals),
    };
}

const NUMBER = /^\d+(\.\d+)?$/;
const value = (typed: string | undefined) => Number((typed ?? "").trim().replace(",", "."));
/* Of a form in which something may be wrong still. */
export const formSum = (form: DayForm, what: Nutrient) =>
    sum(
        MEALS.flatMap((m) => form.meals[m]).map(
            (r) => ({ [what]: value(r[what]) || 0 }) as unknown as Food,
        ),
        what,
    );

function problem(s: Spec, typed: string): string {
    const { t } = i18n.global;
    const text = typed.trim();
    if (s.chars !== undefined) {
        if (!text && s.least) return t("plans.wrong.missing");
        return [...text].length > s.chars ? t("plans.wrong.long", { most: s.chars }) : "";
    }
    const n = value(text);
    if (!text) return t("plans.wrong.missing");
    if (!NUMBER.test(text.replace(",", "."))) return t("plans.wrong.number");
    if (!s.tenths && !Number.isInteger(n)) return t("plans.wrong.integer");
    const [least, most] = [s.least ?? 0, s.most ?? Infinity];
    return n < least || n > most
        ? t("plans.wrong.range", { least: number(least), most: number(most) })
        : "";
}

function take(specs: Spec[], row: Row, at: string, wrong: Wrong): Record<string, string | number> {
    const out: Record<string, string | number> = {};
    for (const s of specs) {
        const typed = row[s.name] ?? "";
        const said = problem(s, typed);
        if (said) wrong[at + s.name] = said;
        out[s.name] = s.chars !== undefined ? typed.trim() : value(typed);
    }
    return out;
}

function trainingOf(form: DayForm, date: string, wrong: Wrong) {
    if (form.rest) return { date, day_type: REST };
    const exercises = form.exercises.map((x, i) => take(EXERCISE, x, `exercises.${i}.`, wrong));
    if (!exercises.length) wrong.exercises = i18n.global.t("plans.wrong.noExercises");
    const fields = take(TRAINING, form.fields, "", wrong);
    if (String(fields.day_type).toLowerCase() === REST)
        wrong.day_type = i18n.global.t("plans.wrong.rest");
    return { date, ...fields, exercises };
}

function nutritionOf(form: DayForm, date: string, wrong: Wrong) {
    const fields = take(TARGETS, form.fields, "", wrong);
    const meals = MEALS.map((m) => [
        m,
        form.meals[m].map((f, i) => take(FOOD, f, `meals.${m}.${i}.`, wrong)),
    ]);
    const got = formSum(form, "calories");
    if (!Object.keys(wrong).length && misses(Number(fields.target_calories), got))
        wrong.target_calories = i18n.global.t("plans.wrong.sum", { n: number(got) });
    return { date, ...fields, meals: Object.fromEntries(meals) };
}

/* The day as it is sent; wrong says what keeps it from being sent. */
export function dayOf(kind: Kind, form: DayForm, date: string) {
    const wrong: Wrong = {};
    const day = (kind === "training" ? trainingOf : nutritionOf)(form, date, wrong);
    return { day, wrong };
}
