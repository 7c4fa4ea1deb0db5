/* How much there was to be found, in sentences: what was not indexed is not found, and no hit does
 * not mean that there is nothing. */
import { number } from "@/common/format";
import { i18n } from "@/common/i18n";
import type { Searched } from "./feed";

interface Known {
    kind: Searched["kind"];
    total: number;
    byWords: number;
    byMeaning: number;
}
export interface Extent {
    bare: boolean; /* there is nothing yet that could be found */
    lacking: string[]; /* what is not indexed: it cannot be found, or by its words alone */
    whole: string; /* how much there is; "": some of that is lacking, or it is not known */
}

/* Some texts stay without vectors for good: the service refuses them. */
const ALMOST = 0.99;

const known = (x: Searched): Known[] =>
    x.total == null || x.by_words == null || x.by_meaning == null
        ? []
        : [{ kind: x.kind, total: x.total, byWords: x.by_words, byMeaning: x.by_meaning }];

function lackOf(x: Known, filtered: boolean, meaning: boolean): string {
    const say = (key: string, n: number) =>
        i18n.global.t(
            `search.extent.${x.kind}.${key}`,
            { n: number(n), total: number(x.total) },
            n,
        );
    if (!x.total) return say("nothing", 0);
    if (!x.byWords) return say(filtered && x.kind === "paper" ? "noneOfThese" : "none", x.total);
    if (x.byWords < x.total * ALMOST) return say("some", x.byWords);
    if (!meaning) return "";
    if (!x.byMeaning) return say("words", x.total);
    return x.byMeaning < x.byWords * ALMOST ? say("someMeaning", x.byMeaning) : "";
}

/* filtered: by journals or years. meaning: nothing else says that meanings cannot be searched. */
export function extentOf(searched: Searched[], filtered: boolean, meaning: boolean): Extent {
    const { t } = i18n.global;
    const all = searched.flatMap(known);
    const lacks = all.map((x) => ({ x, text: lackOf(x, filtered, meaning) }));
    const lacking = lacks.filter((l) => l.text);
    const counts = all.map((x) =>
        t(`search.extent.${x.kind}.whole`, { n: number(x.total) }, x.total),
    );
    const wayOut = lacking.some((l) => l.x.kind === "paper" && l.x.total > 0);
    const complete = all.length > 0 && all.length === searched.length;
    return {
        bare: complete && all.every((x) => !x.byWords),
        lacking: [...lacking.map((l) => l.text), ...(wayOut ? [t("search.extent.wayOut")] : [])],
        whole: complete && !lacking.length ? counts.join(t("search.extent.and")) : "",
    };
}
