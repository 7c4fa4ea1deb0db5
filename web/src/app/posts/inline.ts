/* What stands inside a paragraph of Markdown: emphasis, code, links. */

export type Inline =
    | string
    | { kind: "em" | "strong" | "del"; of: Inline[] }
    | { kind: "code"; text: string }
    | { kind: "link"; href: string; of: Inline[] }
    | { kind: "break" };

const OPEN_MAX = 50; /* marks that wait for their end; more are text */
const RUN_MAX = 9; /* stars in a row; more are text */

/* A target of a link that may be gone to: addresses that run scripts are text. */
export const isSafe = (href: string) => /^(https?:\/\/[^/]|mailto:.)/i.test(href);

const SPECIAL = /[\\`*_~![\]<&\n]|https?:\/\//gi;
/* Counts are bounded, so that what fails fails soon. */
const IN_ANGLES = "<([^<>\\n]{0,2000})>";
const WITHOUT = "([^\\s<>()]{0,2000}(?:\\([^\\s<>()]{0,200}\\)[^\\s<>()]{0,2000}){0,4})";
const NAME = "(?:\\s{1,20}(?:\"[^\"]{0,500}\"|'[^']{0,500}'))?";
const TARGET = new RegExp(`\\(\\s{0,20}(?:${IN_ANGLES}|${WITHOUT})${NAME}\\s{0,20}\\)`, "y");
const ANGLED = /<((?:https?:\/\/|mailto:)[^\s<>]{1,2000})>/iy;
const BARE = /https?:\/\/[^\s<>"'`[\]，。；：！？、（）《》【】“”]{1,2000}/iy;
const ENTITY = /&(#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|amp|lt|gt|quot|apos|nbsp);/y;
const NAMED: Record<string, string> = {
    amp: "&",
    lt: "<",
    gt: ">",
    quot: '"',
    apos: "'",
    nbsp: "\u00a0",
};
const WORD = /[\p{L}\p{N}]/u;

function charOf(entity: string): string {
    if (!entity.startsWith("#")) return NAMED[entity]!;
    const code = /^#x/i.test(entity) ? parseInt(entity.slice(2), 16) : Number(entity.slice(1));
    const odd = !code || code > 0x10ffff || (code >= 0xd800 && code < 0xe000);
    return odd ? "\ufffd" : String.fromCodePoint(code);
}

/* Where runs of so many backticks begin. */
function ticksOf(text: string): Map<number, number[]> {
    const runs = new Map<number, number[]>();
    for (const m of text.matchAll(/`+/g)) {
        const at = runs.get(m[0].length);
        if (at) at.push(m.index);
        else runs.set(m[0].length, [m.index]);
    }
    for (const at of runs.values()) at.reverse();
    return runs;
}

/* A mark that may begin something: its text is the node at `at`. */
interface Mark {
    char: string;
    size: number;
    at: number;
}

class Scanner {
    readonly nodes: Inline[] = [];
    private readonly marks: Mark[] = []; /* of emphasis */
    private brackets: (Mark & { image: boolean })[] = [];
    private readonly ticks: Map<number, number[]>;
    private plain = "";
    private i = 0;

    constructor(private readonly text: string) {
        this.ticks = ticksOf(text);
        while (this.i < text.length) this.step();
        this.flush();
    }

    private flush() {
        if (this.plain) this.nodes.push(this.plain);
        this.plain = "";
    }
    private add(node: Inline) {
        this.flush();
        this.nodes.push(node);
    }
    private match(pattern: RegExp): RegExpExecArray | null {
        pattern.lastIndex = this.i;
        return pattern.exec(this.text);
    }
    private say(text: string) {
        this.plain += text;
        this.i += text.length;
    }

    private step() {
        const found = this.match(SPECIAL);
        const to = found?.index ?? this.text.length;
        this.plain += this.text.slice(this.i, to);
        this.i = to;
        if (found) this.special(this.text[to]!);
    }

    private special(char: string) {
        if (char === "\\") this.escape();
        else if (char === "\n") this.line();
        else if (char === "`") this.code();
        else if (char === "[") this.bracket(false);
        else if (char === "!" && this.text[this.i + 1] === "[") this.bracket(true);
        else if (char === "]") this.close();
        else if (char === "*" || char === "_" || char === "~") this.emphasis(char);
        else if (char === "<") this.angled();
        else if (char === "&") this.entity();
        else if (/h/i.test(char)) this.bare();
        else this.say(char);
    }

    private escape() {
        const next = this.text[this.i + 1] ?? "";
        if (next === "\n") this.add({ kind: "break" });
        else if (/[!-/:-@[-`{-~]/.test(next)) this.plain += next;
        else return this.say("\\");
        this.i += 2;
    }

    private line() {
        const ends = this.plain.endsWith("  ");
        this.plain = this.plain.trimEnd();
        this.add(ends ? { kind: "break" } : "\n");
        this.i++;
    }

    private code() {
        let size = 1;
        while (this.text[this.i + size] === "`") size++;
        const begins = this.ticks.get(size)!;
        while (begins.length && begins[begins.length - 1]! <= this.i) begins.pop();
        const end = begins[begins.length - 1];
        if (end === undefined) return this.say("`".repeat(size));
        const inside = this.text.slice(this.i + size, end).replaceAll("\n", " ");
        const padded = /^ .* $/.test(inside) && inside.trim();
        this.add({ kind: "code", text: padded ? inside.slice(1, -1) : inside });
        this.i = end + size;
    }

    private angled() {
        const found = this.match(ANGLED);
        if (!found) return this.say("<");
        this.add({ kind: "link", href: found[1]!, of: [found[1]!.replace(/^mailto:/i, "")] });
        this.i += found[0].length;
    }

    private bare() {
        const before = this.text[this.i - 1];
        const found = before && WORD.test(before) && before < "\u0250" ? null : this.match(BARE);
        if (!found) return this.say(this.text[this.i]!);
        const href = found[0].replace(/[.,;:!?*_~)\]]{1,20}$/, (tail) =>
            tail.startsWith(")") && found[0].includes("(") ? ")" : "",
        );
        if (!isSafe(href)) return this.say(this.text[this.i]!);
        this.add({ kind: "link", href, of: [href] });
        this.i += href.length;
    }

    private entity() {
        const found = this.match(ENTITY);
        if (!found) return this.say("&");
        this.plain += charOf(found[1]!);
        this.i += found[0].length;
    }

    /* --- links --- */

    private bracket(image: boolean) {
        const char = image ? "![" : "[";
        this.add(char);
        this.i += char.length;
        if (this.brackets.length < OPEN_MAX)
            this.brackets.push({ char, size: 1, at: this.nodes.length - 1, image });
    }

    private close() {
        const open = this.brackets.pop();
        this.i++;
        const found = open && this.match(TARGET);
        if (!open || !found) {
            this.plain += "]";
            return;
        }
        this.flush();
        this.leave(open.at);
        const of = merged(this.nodes.splice(open.at).slice(1)).flatMap(unlinked);
        const href = found[1] ?? found[2] ?? "";
        this.i += found[0].length;
        if (!isSafe(href)) of.forEach((n) => this.nodes.push(n));
        else this.nodes.push({ kind: "link", href, of: of.length ? of : [href] });
        /* A link has no others in it. */
        if (!open.image) this.brackets = this.brackets.filter((b) => b.image);
    }

    /* Marks from this node on are text. */
    private leave(at: number) {
        while (this.marks.length && this.marks[this.marks.length - 1]!.at > at) this.marks.pop();
    }

    /* --- emphasis --- */

    private emphasis(char: string) {
        let size = 1;
        while (this.text[this.i + size] === char) size++;
        const before = this.text[this.i - 1] ?? " ";
        const after = this.text[this.i + size] ?? " ";
        this.i += size;
        const inWord = char === "_";
        const opens = !/\s/.test(after) && !(inWord && WORD.test(before));
        const closes = !/\s/.test(before) && !(inWord && WORD.test(after));
        if (size > RUN_MAX || (char === "~" && size !== 2)) {
            this.plain += char.repeat(size);
            return;
        }
        const left = closes ? this.end(char, size) : size;
        if (!left) return;
        this.add(char.repeat(left));
        if (opens && this.marks.length < OPEN_MAX)
            this.marks.push({ char, size: left, at: this.nodes.length - 1 });
    }

    /* Ends what this many marks end; returns how many are left. */
    private end(char: string, size: number): number {
        while (size > 0) {
            let k = this.marks.length - 1;
            while (k >= 0 && this.marks[k]!.char !== char) k--;
            if (k < 0) break;
            this.flush();
            const mark = this.marks[k]!;
            const used = char === "~" ? 2 : size >= 2 && mark.size >= 2 ? 2 : 1;
            const kind = char === "~" ? "del" : used === 2 ? "strong" : "em";
            const of = merged(this.nodes.splice(mark.at + 1));
            this.marks.length = k + 1;
            if (this.brackets.length) this.brackets = this.brackets.filter((b) => b.at <= mark.at);
            mark.size -= used;
            size -= used;
            if (mark.size > 0) this.nodes[mark.at] = char.repeat(mark.size);
            else {
                this.nodes.pop();
                this.marks.pop();
            }
            this.nodes.push({ kind, of });
        }
        return size;
    }
}

/* Texts side by side become one. */
function merged(nodes: Inline[]): Inline[] {
    const out: Inline[] = [];
    let texts: string[] = [];
    for (const n of [...nodes, null]) {
        if (typeof n === "string") texts.push(n);
        else {
            if (texts.length) out.push(texts.join(""));
            texts = [];
            if (n) out.push(n);
        }
    }
    return out;
}

const unlinked = (n: Inline): Inline[] => {
    if (typeof n === "string" || !("of" in n)) return [n];
    const of = n.of.flatMap(unlinked);
    return n.kind === "link" ? of : [{ ...n, of }];
};

export const inlineOf = (text: string): Inline[] => merged(new Scanner(text).nodes);
