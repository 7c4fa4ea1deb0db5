/* A prompt template that is being written: what its form holds, and what is sent. */
import type { Replies } from "@/common/api";

export const PATH = "/api/admin/prompt_templates";
export type Head = Replies["GET /api/admin/prompt_templates"]["templates"][number];
export type Template = Replies["GET /api/admin/prompt_templates/{template_id}"];
export type Preview = Replies["POST /api/admin/prompt_templates/preview"];
type Sent = Template["variables"][number];
export type Type = Sent["type"];
export const TYPES: Type[] = ["text", "integer", "number", "date", "choice"];

export interface Variable {
    name: string;
    type: Type;
    label: string;
    initial: string;
    required: boolean;
    choices: string; // separated by commas
    least: string;
    most: string;
}
export interface Form {
    category: string;
    subcategory: string;
    name: string;
    template: string;
    variables: Variable[];
}

export const hasLimits = (v: Variable) => v.type !== "date" && v.type !== "choice";
export const newVariable = (name = ""): Variable => ({
    name,
    type: "text",
    label: "",
    initial: "",
    required: false,
    choices: "",
    least: "",
    most: "",
});

const HEAD = (category: string) =>
    `Plan: ${category}\nStart date: {{start_date}}\nWeeks: {{weeks}}\n\n`;
export const newForm = (): Form => ({
    category: "training",
    subcategory: "",
    name: "",
    template: HEAD("training"),
    variables: [],
});

export const formOf = (x: Template): Form => ({
    category: x.category,
    subcategory: x.subcategory,
    name: x.name,
    template: x.template,
    variables: x.variables.map((v) => ({
        name: v.name,
        type: v.type,
        label: v.label ?? "",
        initial: v.default ?? "",
        required: v.required ?? false,
        choices: (v.choices ?? []).join(", "),
        least: v.least == null ? "" : String(v.least),
        most: v.most == null ? "" : String(v.most),
    })),
});

const whole = (text: string) => /^-?\d{1,10}$/.test(text.trim());
/* The first variable with a limit that is no number: it would be sent as none. */
export const oddLimit = (form: Form) =>
    form.variables.find(
        (v) => hasLimits(v) && [v.least, v.most].some((x) => x.trim() && !whole(x)),
    );

export const choicesOf = (v: Variable) =>
    v.choices
        .split(/[,，\n]/)
        .map((x) => x.trim())
        .filter(Boolean);

export const sentVariables = (form: Form): Sent[] =>
    form.variables.map((v) => ({
        name: v.name.trim(),
        type: v.type,
        label: v.label.trim(),
        required: v.required,
        ...(v.initial.trim() && !v.required ? { default: v.initial.trim() } : {}),
        ...(v.type === "choice" ? { choices: choicesOf(v) } : {}),
        ...(hasLimits(v) && whole(v.least) ? { least: Number(v.least) } : {}),
        ...(hasLimits(v) && whole(v.most) ? { most: Number(v.most) } : {}),
    }));

/* Values as people typed them; what is empty is not given. */
export const sentValues = (form: Form, values: Record<string, string>) =>
    Object.fromEntries(
        form.variables
            .map((v) => [v.name.trim(), values[v.name.trim()]?.trim() ?? ""] as const)
            .filter(([name, value]) => name && value),
    );

/* What is typed survives a reload and an ended session. */
const key = (id: number | null) => `millrace.template.${id ?? "new"}`;
export interface Kept {
    version: number;
    form: Form;
}
export function keep(id: number | null, kept: Kept | null) {
    if (kept) sessionStorage.setItem(key(id), JSON.stringify(kept));
    else sessionStorage.removeItem(key(id));
}
export function kept(id: number | null): Kept | null {
    try {
        return JSON.parse(sessionStorage.getItem(key(id)) ?? "null");
    } catch {
        return null;
    }
}
