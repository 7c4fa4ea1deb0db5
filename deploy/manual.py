#!/usr/bin/env python3
"""manual.py PROGRAM FOLDER: manual pages and shell completions of millrace, below FOLDER as they
are installed below /usr/share.

All of it is made from what the program itself says: `--help` of every command, found through the
lists of commands, and `config --markdown`. A line of help that is not understood ends this script
with a message, so that nothing is left out silently. SOURCE_DATE_EPOCH dates the pages."""
import os
import pathlib
import re
import subprocess
import sys
import time

NAME = "millrace"
COMMAND = re.compile(r"  (\S+) {2,}(\S.*)")
OPTION = re.compile(r"  --(\S+)(?: (\S+))? {2,}(\S.*)")
SETTING = re.compile(r"\| `([\w.]+)` \| `(\w+)` \| (.*?) \| (.*?) \| (.*) \|")
FILES = re.compile(r"FILE|PATH")
FOLDERS = re.compile(r"DIR")


class Command:
    """One command: its help, taken apart; with commands of its own, or with options."""

    def __init__(self, program, words, summary):
        self.words, self.summary = words, summary
        self.options, self.commands, self.text = [], [], []
        lines = said(program, *words, "--help").rstrip("\n").split("\n")
        usage = f"usage: {' '.join([NAME, *words])}"
        if not (lines[0] + " ").startswith(usage + " ") or lines[1] != "":
            fail(words, lines[0])
        self.usage = lines[0][len(usage):].strip()
        self.read(program, lines[2:])

    def read(self, program, lines):
        part = self.read_text
        for line in lines:
            if line in ("commands:", "options:"):
                part = self.read_command if line == "commands:" else self.read_option
            elif part == self.read_text or line.strip():
                part(program, line)
        while self.text and not self.text[-1]:
            self.text.pop()

    def read_text(self, program, line):
        self.text.append(line)

    def read_command(self, program, line):
        if line.endswith("tells more about a command."):
            return
        found = COMMAND.fullmatch(line) or fail(self.words, line)
        self.commands.append(Command(program, [*self.words, found[1]], found[2]))

    def read_option(self, program, line):
        found = OPTION.fullmatch(line) or fail(self.words, line)
        self.options.append((found[1], found[2], found[3]))

    def page(self):
        return "-".join([NAME, *self.words])

    def all(self):
        yield self
        for command in self.commands:
            yield from command.all()


def fail(words, line):
    sys.exit(f"manual.py: {' '.join([NAME, *words])} --help: not understood: {line!r}")


def said(program, *words):
    env = {k: v for k, v in os.environ.items() if not k.startswith("MILLRACE_")}
    done = subprocess.run([program, *words], env=env, text=True, capture_output=True)
    if done.returncode:
        sys.exit(f"manual.py: {' '.join([NAME, *words])} ends with {done.returncode}:\n"
                 f"{done.stderr}")
    return done.stdout


# --- manual pages ---

def roff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
    return re.sub(r"^\.", r"\\&.", text)


def heading(page, section, version):
    day = time.strftime("%Y-%m-%d", time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH", "0"))))
    return [f'.TH "{page.upper()}" "{section}" "{day}" "{NAME} {version}" "{NAME}"', ".ad l"]


def paragraphs(lines):
    """Indented lines are shown as they are, all others are filled."""
    literal = False
    for line in lines:
        if line.startswith("  ") != literal and line:
            yield ".PP\n.nf" if not literal else ".fi\n.PP"
            literal = not literal
        yield roff(line) if line else ("" if literal else ".PP")
    if literal:
        yield ".fi"


def see_also(pages):
    return [".SH SEE ALSO", ", ".join(f"\\fB{roff(p)}\\fR({s})" for p, s in pages)]


def manual_page(c, root, version):
    lines = heading(c.page(), 1, version)
    lines += [".SH NAME", f"{roff(c.page())} \\- {roff(c.summary)}", ".SH SYNOPSIS",
              f"\\fB{roff(' '.join([NAME, *c.words]))}\\fR {roff(c.usage)}"]
    if c.text:
        lines += [".SH DESCRIPTION", *paragraphs(c.text)]
    if c.commands:
        lines += [".SH COMMANDS"]
        for sub in c.commands:
            lines += [".TP", f"\\fB{roff(' '.join([NAME, *sub.words]))}\\fR({1})",
                      roff(sub.summary)]
    if c.options:
        lines += [".SH OPTIONS"]
    for name, value, text in c.options:
        shown = f" \\fI{roff(value)}\\fR" if value else ""
        lines += [".TP", f"\\fB\\-\\-{roff(name)}\\fR{shown}", roff(text)]
    lines += [".SH EXIT STATUS", "0 done, 1 failed, 2 wrong command line."]
    near = [("millrace-settings", 5)] + [(s.page(), 1) for s in c.commands]
    if c is not root:
        above = [x for x in root.all() if x.words == c.words[:-1]][0]
        near.insert(0, (above.page(), 1))
    return "\n".join([*lines, *see_also(near)]) + "\n"


def settings_page(program, version):
    lines = heading("millrace-settings", 5, version)
    lines += [".SH NAME", "millrace\\-settings \\- settings of millrace", ".SH DESCRIPTION",
              "Settings are read from a JSON file, which \\fB\\-\\-config\\fR names, and from",
              "environment variables, which outrank it. A key with a dot is a member of an object:",
              "\\fBai.url\\fR is {\\(dqai\\(dq: {\\(dqurl\\(dq: \\(dq...\\(dq}} in the file.",
              "\\fBmillrace config\\fR(1) shows the value of each one and where it comes from.",
              ".SH SETTINGS"]
    rows = [line for line in said(program, "config", "--markdown").split("\n")
            if line.startswith("| `")]
    for row in rows:
        found = SETTING.fullmatch(row) or sys.exit(f"manual.py: not understood: {row!r}")
        key, variable, default, allowed, meaning = (
            g.replace("`", "").replace("\\|", "|").strip() for g in found.groups())
        lines += [".TP", f"\\fB{roff(key)}\\fR, \\fB{roff(variable)}\\fR", roff(meaning) + ".",
                  f"Allowed: {roff(allowed)}. Default: {roff(default) or 'empty'}."]
    return "\n".join([*lines, *see_also([("millrace", 1), ("millrace-config", 1)])]) + "\n"


# --- completions ---

def kind(value):
    if FILES.search(value or ""):
        return "files"
    return "folders" if FOLDERS.search(value or "") else ""


def operand(c):
    """What follows the options of a command, like "TYPE GROUP FILE"."""
    return "" if c.commands else c.usage.replace("[options]", "").strip()


def bash(root):
    lines = ["# bash completion of millrace; made by deploy/manual.py", "_millrace() {",
             "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}",
             "    local word command= words=", "    COMPREPLY=()",
             "    for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do",
             "        case \"$command $word\" in"]
    for c in list(root.all())[1:]:
        above = " ".join(c.words[:-1])
        lines.append(f'        "{above} {c.words[-1]}") command="{" ".join(c.words)}" ;;')
    lines += ["        esac", "    done", "    case \"$command $prev\" in"]
    for c in root.all():
        for name, value, _ in c.options:
            here = f'    "{" ".join(c.words)} --{name}")'
            if kind(value):
                flag = "-f" if kind(value) == "files" else "-d"
                lines.append(f'{here} COMPREPLY=($(compgen {flag} -- "$cur")); return ;;')
            elif value:
                lines.append(f"{here} return ;;")
    lines += ["    esac", "    case \"$command\" in"]
    for c in root.all():
        words = [s.words[-1] for s in c.commands] + [f"--{o[0]}" for o in c.options] + ["--help"]
        if c is root:
            words.append("--version")
        lines.append(f'    "{" ".join(c.words)}") words="{" ".join(words)}" ;;')
    lines += ["    esac", "    [[ $cur == -* ]] || case \"$command\" in"]
    for c in root.all():
        if kind(operand(c)):
            flag = "-f" if kind(operand(c)) == "files" else "-d"
            lines.append(f'    "{" ".join(c.words)}") COMPREPLY=($(compgen {flag} -- "$cur")); '
                         "return ;;")
    lines += ["    esac", "    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))",
              "}", "complete -o filenames -F _millrace millrace"]
    return "\n".join(lines) + "\n"


def quoted(text):
    return text.replace("\\", "\\\\").replace("'", "'\\''")


def zsh(root):
    def function(c):
        return "_".join(["_millrace", *c.words]).replace("-", "_")

    def explained(text):
        return quoted(re.sub(r"([\[\]:\\])", r"\\\1", text))

    def bracketed(text):  # where a colon is one
        return quoted(re.sub(r"([\[\]\\])", r"\\\1", text))

    actions = {"files": "_files", "folders": "_files -/", "": " "}
    lines = ["#compdef millrace", "# zsh completion of millrace; made by deploy/manual.py"]
    for c in reversed(list(root.all())):
        lines += ["", f"{function(c)}() {{"]
        rows = [f"'--help[show help]'"]
        for name, value, text in c.options:
            rows.append(f"'--{name}[{bracketed(text)}]" +
                        (f":{explained(value)}:{actions[kind(value)]}'" if value else "'"))
        if not c.commands:
            action = actions[kind(operand(c))]
            lines += ["    _arguments -S \\", *[f"        {r} \\" for r in rows],
                      f"        '*:{explained(operand(c)) or 'nothing more'}:{action}'", "}"]
            continue
        lines += ["    local line state", "    _arguments -C \\",
                  *[f"        {r} \\" for r in rows], "        '1:command:->command' \\",
                  "        '*::arguments:->arguments'", "    case $state in", "    command)",
                  "        local -a commands=("]
        lines += [f"            '{s.words[-1]}:{explained(s.summary)}'" for s in c.commands]
        lines += ["        )", "        _describe command commands ;;", "    arguments)",
                  "        case $line[1] in"]
        lines += [f"        {s.words[-1]}) {function(s)} ;;" for s in c.commands]
        lines += ["        esac ;;", "    esac", "}"]
    return "\n".join([*lines, "", "_millrace \"$@\""]) + "\n"


def fish(root):
    lines = ["# fish completion of millrace; made by deploy/manual.py",
             "complete -c millrace -f", "complete -c millrace -n __fish_use_subcommand "
             "-l version -d 'show the version'", "complete -c millrace -l help -d 'show help'"]
    for c in root.all():
        at = "; and ".join(f"__fish_seen_subcommand_from {w}" for w in c.words)
        if c.commands:
            names = " ".join(s.words[-1] for s in c.commands)
            test = "__fish_use_subcommand" if c is root else \
                f"{at}; and not __fish_seen_subcommand_from {names}"
            for s in c.commands:
                lines.append(f"complete -c millrace -n '{test}' -a {s.words[-1]} "
                             f"-d '{quoted(s.summary)}'")
        if kind(operand(c)):
            paths = "-F" if kind(operand(c)) == "files" else "-a '(__fish_complete_directories)'"
            lines.append(f"complete -c millrace -n '{at}' {paths}")
        for name, value, text in c.options:
            take = {"files": " -r -F", "folders": " -x -a '(__fish_complete_directories)'",
                    "": " -x"}[kind(value)] if value else ""
            lines.append(f"complete -c millrace -n '{at}' -l {name}{take} -d '{quoted(text)}'")
    return "\n".join(lines) + "\n"


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__.split(":")[0])
    program, folder = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2])
    version = said(program, "--version").split()[1]
    root = Command(program, [], "literature screening through an AI service")
    for c in root.all():
        write(folder / "man/man1" / f"{c.page()}.1", manual_page(c, root, version))
    write(folder / "man/man5/millrace-settings.5", settings_page(program, version))
    write(folder / "bash-completion/completions/millrace", bash(root))
    write(folder / "zsh/vendor-completions/_millrace", zsh(root))
    write(folder / "fish/vendor_completions.d/millrace.fish", fish(root))


main()
