// Makes src/common/replies.ts, the types of the API's replies, out of /openapi.json of a running
// server:
//   node web/replies.mjs http://127.0.0.1:8080
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

export const FILE = fileURLToPath(new URL("./src/common/replies.ts", import.meta.url));
/* What TypeScript has no types for, and what is for people. */
const UNTYPED = [
    "description",
    "format",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "pattern",
];
const TYPED = [
    "type",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "anyOf",
    "const",
    "enum",
];
const PLAIN = {
    boolean: "boolean",
    integer: "number",
    null: "null",
    number: "number",
    string: "string",
};
const COLUMNS = 100;

/* A member of an interface; a union that is too long for its line has one of its types a line. */
function wrapped(head, text, indent) {
    const long = !text.includes("\n") && `${head} ${text};`.length > COLUMNS;
    const each = text.split(" | ").map((t) => `\n${indent}    | ${t}`);
    return long ? `${head}${each.join("")};\n` : `${head} ${text};\n`;
}

function object({ properties = {}, required = [], additionalProperties }, indent) {
    const inner = `${indent}    `;
    const members = Object.entries(properties).map(([name, schema]) => {
        const mark = required.includes(name) ? "" : "?";
        return wrapped(`${inner}${name}${mark}:`, type(schema, inner), inner);
    });
    if (additionalProperties === false) return `{\n${members.join("")}${indent}}`;
    if (members.length || !(additionalProperties?.type || additionalProperties?.anyOf))
        throw new Error("an object with members without a type");
    return `Record<string, ${type(additionalProperties, indent)}>`;
}

/* A schema as a type of TypeScript. Unknown keywords end the program: a type without them could be
 * wrong. */
function type(schema, indent) {
    const unknown = Object.keys(schema).filter((k) => !UNTYPED.includes(k) && !TYPED.includes(k));
    if (unknown.length)
        throw new Error(`/openapi.json has keywords that are not known here: ${unknown}`);
    if (schema.anyOf) return schema.anyOf.map((s) => type(s, indent)).join(" | ");
    if ("const" in schema) return JSON.stringify(schema.const);
    if (schema.enum) return schema.enum.map((v) => JSON.stringify(v)).join(" | ");
    if (schema.type === "object") return object(schema, indent);
    if (schema.type === "array") {
        const item = type(schema.items, indent);
        return item.includes(" | ") && !item.startsWith("{") ? `(${item})[]` : `${item}[]`;
    }
    if (!(schema.type in PLAIN)) throw new Error(`a type that is not known here: ${schema.type}`);
    return PLAIN[schema.type];
}

const HEAD = `/* Made by web/replies.mjs out of /openapi.json: not to be edited. Without success and
 * degraded, which every reply may have, and without the replies that have nothing else. */
`;

/* The text of the file. */
export function typesOf(document) {
    const routes = [];
    const called = ([path]) => path.startsWith("/api/"); // the pages do not ask the others
    for (const [path, methods] of Object.entries(document.paths).filter(called))
        for (const [method, { responses }] of Object.entries(methods)) {
            const [, good] = Object.entries(responses).find(([status]) => status.startsWith("2"));
            const json = good.content?.["application/json"]?.schema;
            const { success, degraded, ...properties } = json?.properties ?? {};
            if (!Object.keys(properties).length) continue;
            const route = `${method.toUpperCase()} ${path}`;
            routes.push(`    "${route}": ${type({ ...json, properties }, "    ")};\n`);
        }
    return `${HEAD}export interface Replies {\n${routes.join("")}}\n`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
    const reply = await fetch(new URL("/openapi.json", process.argv[2]));
    if (!reply.ok) throw new Error(`${reply.url}: ${reply.status}`);
    writeFileSync(FILE, typesOf(await reply.json()));
}
