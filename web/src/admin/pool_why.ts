/* Why a row was not taken: the server says it in English, here it is said in the page's language. A
 * text that is not known is shown as it came. */
import { i18n } from "@/common/i18n";

const KNOWN: [RegExp, string][] = [
    [/^not UTF-8/, "utf8"],
    [/^no text$/, "none"],
    [/^a NUL character/, "nul"],
    [/^longer than (\d+) characters$/, "long"],
    [/^(\d+) cells, the header has (\d+)$/, "cells"],
    [/^no JSON, column (\d+)/, "json"],
    [/^neither a string nor an object/, "shape"],
    [/^the line is too long$|^a cell is too long$|^the row is too long$/, "row"],
    [/^text behind a closing quote$/, "behind"],
    [/^a quote that is never closed$|its quote never closes$/, "quote"],
    [/the first row names no column "text" or "(\w+)"/, "column"],
    [/no header row/, "header"],
    [/the file is UTF-16/, "utf16"],
    [/no row ends in this piece/, "endless"],
];

export function whyOf(text: string): string {
    for (const [pattern, key] of KNOWN) {
        const found = pattern.exec(text);
        if (found) return i18n.global.t(`pools.whys.${key}`, { a: found[1], b: found[2] });
    }
    return text;
}
