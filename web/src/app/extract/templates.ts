/* Templates of extraction: ready ones and the user's own, and one while it is changed: every field
 * is the text that was typed. The server checks once more, and says which field it refuses. */
import { api, ApiError, get, post, type Replies } from "@/common/api";
import { complaintOf, explain } from "@/common/errors";
import { i18n } from "@/common/i18n";

export type Listed = Replies["GET /api/templates"]["templates"][number];
export type Template = Replies["GET /api/templates/{template_id}"]["template"];
export type Field = Template["fields"][number];
export type FieldType = Field["type"];
export type ItemType = NonNullable<Field["of"]>;

export const TYPES: FieldType[] = [
    "text",
    "number",
    "integer",
    "boolean",
    "date",
    "choice",
    "list",
];
export const ITEM_TYPES = TYPES.filter((x): x is ItemType => x !== "list");
export const FIELDS_MAX = 50;
const CHOICES_MAX = 50;
const CHARS = { name: 64, unit: 64, instruction: 2000, choice: 200 };

/* Of ready templates. */
export const language = () => (i18n.global.locale.value === "zh-CN" ? "zh" : "en");
const path = (id: string) => `/api/templates/${encodeURIComponent(id)}`;

export const loadTemplates = async () =>
    (await get<Replies["GET /api/templates"]>(`/api/templates?lang=${language()}`)).templates;
export const loadTemplate = async (id: string) =>
    (
        await get<Replies["GET /api/templates/{template_id}"]>(
            `${path(id)}?lang=${language()}`,
        )
    ).template;
export const deleteTemplate = (id: string) => api("DELETE", path(id));

/* What the values of a field are: those of a list by its items. */
export const itemType = (f: Pick<Field, "type" | "of">) =>
    f.type === "list" ? (f.of ?? "text") : f.type;
export const isNumeric = (type: string) => type === "number" || type === "integer";

/* --- the form --- */

export interface FieldForm {
    key: number; /* of its element: rows move */
    name: string;
    type: FieldType;
    of: ItemType;
    unit: string;
    choices: string; /* one a line */
    instruction: string;
    required: boolean;
}
export interface TemplateForm {
    name: string;
    fields: FieldForm[];
}
/* By the place of what is wrong: "name", "fields", "2.name", "2.choices", "2": field 2 as such. */
export type Wrong = Record<string, string>;

let keys = 0;
export const newField = (): FieldForm => ({
    key: ++keys,
    name: "",
    type: "text",
    of: "text",
    unit: "",
    choices: "",
    instruction: "",
    required: false,
});
export const formOf = (x: Pick<Template, "name" | "fields">): TemplateForm => ({
    name: x.name,
    fields: x.fields.map((f) => ({
        ...newField(),
        name: f.name,
        type: f.type,
        of: f.of ?? "text",
        unit: f.unit ?? "",
        choices: (f.choices ?? []).join("\n"),
        instruction: f.instruction ?? "",
        required: f.required ?? false,
    })),
});
/* Kept ones come from an earlier page: their keys are not those of this one. */
export const withKeys = (form: TemplateForm): TemplateForm => ({
    ...form,
    fields: form.fields.map((f) => ({ ...f, key: ++keys })),
});

const lines = (text: string) =>
    text
        .split("\n")
        .map((x) => x.trim())
        .filter(Boolean);
const folded = (text: string) => text.trim().toLowerCase();
const length = (text: string) => [...text.trim()].length;

function fieldOf(f: FieldForm) {
    const type = itemType(f);
    return {
        name: f.name.trim(),
        type: f.type,
        ...(f.type === "list" && { of: f.of }),
        ...(isNumeric(type) && f.unit.trim() && { unit: f.unit.trim() }),
        ...(type === "choice" && { choices: lines(f.choices) }),
        ...(f.instruction.trim() && { instruction: f.instruction.trim() }),
        required: f.required,
    };
}

function choicesProblem(f: FieldForm): string {
    const { t } = i18n.global;
    const given = lines(f.choices);
    if (!given.length) return t("extract.wrong.noChoices");
    if (given.length > CHOICES_MAX) return t("extract.wrong.manyChoices", { most: CHOICES_MAX });
    if (given.some((x) => length(x) > CHARS.choice))
        return t("extract.wrong.longChoice", { most: CHARS.choice });
    const twice = given.find((x, i) => given.findIndex((y) => folded(y) === folded(x)) < i);
    return twice ? t("extract.wrong.choiceTwice", { name: twice }) : "";
}

function check(f: FieldForm, i: number, all: FieldForm[], wrong: Wrong) {
    const { t } = i18n.global;
    const type = itemType(f);
    const long = (most: number) => t("plans.wrong.long", { most });
    const twin = all.findIndex((x) => folded(x.name) === folded(f.name)) < i;
    if (!f.name.trim()) wrong[`${i}.name`] = t("plans.wrong.missing");
    else if (length(f.name) > CHARS.name) wrong[`${i}.name`] = long(CHARS.name);
    else if (twin) wrong[`${i}.name`] = t("extract.wrong.nameTwice");
    if (isNumeric(type) && length(f.unit) > CHARS.unit) wrong[`${i}.unit`] = long(CHARS.unit);
    if (length(f.instruction) > CHARS.instruction)
        wrong[`${i}.instruction`] = long(CHARS.instruction);
    const choices = type === "choice" ? choicesProblem(f) : "";
    if (choices) wrong[`${i}.choices`] = choices;
}

/* The template as it is sent; wrong says what keeps it from being sent. */
export function templateOf(form: TemplateForm) {
    const { t } = i18n.global;
    const wrong: Wrong = {};
    if (!form.name.trim()) wrong.name = t("plans.wrong.missing");
    if (!form.fields.length) wrong.fields = t("extract.wrong.noFields");
    form.fields.forEach((f, i) => check(f, i, form.fields, wrong));
    return { body: { name: form.name.trim(), fields: form.fields.map(fieldOf) }, wrong };
}

const MEMBERS = ["name", "unit", "choices", "instruction"];

/* Where a refusal of the server belongs: `field 3 (dose): "unit" belongs to …`. "": nowhere. */
export function placeOf(e: ApiError): { at: string; words: string } {
    const words = (text: string) => i18n.global.t("extract.wrong.server", { words: text });
    const said = complaintOf(e);
    if (e.field === "name") return { at: "name", words: words(said) };
    const numbered = /^field (\d+)(?: \(.*?\))?: (.*)$/s.exec(said);
    const indexed = /^fields(?:\[|\.)(\d+)\]?\.?(\w*)$/.exec(e.field ?? "");
    if (e.field !== "fields" && !indexed) return { at: "", words: explain(e) };
    if (!numbered && !indexed) return { at: "fields", words: words(said) };
    const i = numbered ? Number(numbered[1]) - 1 : Number(indexed![1]);
    const text = numbered ? numbered[2]! : said;
    const member = indexed?.[2] || /"(\w+)"/.exec(text)?.[1] || "";
    return { at: MEMBERS.includes(member) ? `${i}.${member}` : String(i), words: words(text) };
}

type Stored = Replies["POST /api/templates"];
export type Body = ReturnType<typeof templateOf>["body"];
export const addTemplate = (body: Body) => post<Stored>("/api/templates", body);
export const changeTemplate = (id: string, version: number, body: Body) =>
    api<Stored>("PUT", path(id), { version, ...body });

/* --- what is typed and not saved: in this tab, by the id of the template or "new" --- */

const place = (id: string) => `millrace.template.${id}`;
export interface Kept {
    version: number;
    form: TemplateForm;
}
export function keptForm(id: string): Kept | null {
    try {
        return JSON.parse(sessionStorage.getItem(place(id)) ?? "null");
    } catch {
        return null;
    }
}
export const keepForm = (id: string, what: Kept) =>
    sessionStorage.setItem(place(id), JSON.stringify(what));
export const dropForm = (id: string) => sessionStorage.removeItem(place(id));
