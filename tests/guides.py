"""Reads the guides: their sections, code and commands, in English and in Chinese."""
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Pages whose commands are tried, in the order in which an operator meets them.
PAGES = ["README.md", "docs/guide.md", "docs/operating.md", "docs/monitoring.md",
         "deploy/debian/README.md", "docs/deploying.md", "docs/upgrading.md", "docs/security.md",
         "docs/faq.md"]
# Those that are also there in Chinese; the others are English only.
TWINS = ["README.md", "docs/guide.md", "docs/operating.md", "docs/deploying.md",
         "docs/upgrading.md", "docs/security.md", "docs/faq.md"]
FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.M | re.S)
HEADING = re.compile(r"^## (.*)$", re.M)
COMMENT = re.compile(r"(^|\s+)# .*$", re.M)


def twin(page):
    return page.replace(".md", ".zh-CN.md")


def text_of(page):
    return (ROOT / page).read_text(encoding="utf-8")


class Block:
    """Code between fences, in a section (the last heading of level 2 before it)."""

    def __init__(self, page, line, section, language, text):
        self.page, self.line, self.section = page, line, section
        self.language, self.text = language, text

    def commands(self):
        """The commands of a block of sh, without comments. A command that goes on in the next line
        is one command, with its newlines."""
        parts, line = "", self.line
        for number, text in enumerate(self.text.splitlines(), self.line + 1):
            text = COMMENT.sub("", text)
            if not parts and not text.strip():
                continue
            line = line if parts else number
            parts += text + "\n"
            if complete(parts):
                yield Command(self, line, parts.strip())
                parts = ""
        if parts:
            yield Command(self, line, parts.strip())


class Command:
    def __init__(self, block, line, text):
        self.page, self.section, self.line, self.text = block.page, block.section, line, text

    def __str__(self):
        return f"{self.page}:{self.line}: {self.text.splitlines()[0]}"


def complete(text):
    if re.search(r"[|\\]$", text.strip()):
        return False
    done = subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True)
    return done.returncode == 0


def blocks(page, language=None):
    text = text_of(page)
    for found in FENCE.finditer(text):
        inner = re.sub(rf"^{found[1]}", "", found[3], flags=re.M)
        if language in (None, found[2]):
            before = text[:found.start()]
            yield Block(page, before.count("\n") + 1, (HEADING.findall(before) or [None])[-1],
                        found[2], inner)


def commands(page):
    return [c for b in blocks(page, "sh") for c in b.commands()]


def prose(page):
    """The page without code between fences, which keeps its lines."""
    return FENCE.sub(lambda m: "\n" * m[0].count("\n"), text_of(page))


def inline(text):
    """Code in a line of text, as one would type it."""
    return [re.sub(r"\s+", " ", code) for code in re.findall(r"(?<!`)`([^`]+)`(?!`)", text)]


def sections(page):
    """[(level, line, text)] of a page; the first one is what comes before any other heading."""
    text, found = prose(page), []
    heads = list(re.finditer(r"^(#+) .*$", text, re.M))
    for head, after in zip(heads, heads[1:] + [None]):
        found.append((len(head[1]), text.count("\n", 0, head.start()) + 1,
                      text[head.end():after and after.start()]))
    return found


# --- twins ---

def shape(text):
    """What a section has in any language: {what: how often, or which}."""
    return {
        "rows of tables": len(re.findall(r"^\s*\|", text, re.M)),
        "points": len(re.findall(r"^\s*(?:-|\d\d?\.) ", text, re.M)),
        "code": {re.sub(r"<[^>]*>", "<>", c) for c in inline(text)},
        "links": {re.sub(r"\.zh-CN|#.*", "", link) for link in re.findall(r"\]\(([^)]+)\)", text)
                  if ".png" not in link} - {""},
    }


def differences(page):
    """What is not the same in a page and its twin, as "file:line: text"."""
    other = twin(page)
    if not (ROOT / other).exists():
        yield f"{page}: there is no {other}"
        return
    ours, theirs = sections(page), sections(other)
    if [s[0] for s in ours] != [s[0] for s in theirs]:
        yield f"{other}: {len(theirs)} sections, not {len(ours)}, or of other levels"
        return
    for (_, line, text), (_, there, translated) in zip(ours, theirs):
        wanted, found = shape(text), shape(translated)
        for what in wanted:
            if wanted[what] != found[what]:
                yield f"{other}:{there}: {what}: {lacking(wanted[what], found[what])} " \
                    f"({page}:{line})"
    yield from other_blocks(page, other)


def lacking(wanted, found):
    if isinstance(wanted, int):
        return f"{found}, not {wanted}"
    return "; ".join(filter(None, (
        wanted - found and "not there: " + ", ".join(sorted(wanted - found)),
        found - wanted and "too much: " + ", ".join(sorted(found - wanted)))))


def other_blocks(page, other):
    ours, theirs = list(blocks(page)), list(blocks(other))
    if [b.language for b in ours] != [b.language for b in theirs]:
        yield f"{other}: other blocks of code than {page}"
        return
    for a, b in zip(ours, theirs):
        same = a.text == b.text if a.language != "sh" else \
            [c.text for c in a.commands()] == [c.text for c in b.commands()]
        if a.language and not same:
            yield f"{other}:{b.line}: not the code of {page}:{a.line}"
