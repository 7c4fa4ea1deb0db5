"""Manual pages and completions: every command has them, with all of its options."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PROJECT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, PROJECT + "/tests/server")
from harness import BIN, equal, finish, ok  # noqa: E402


def told(*words):
    return subprocess.run([BIN, *words], text=True, capture_output=True).stdout


def commands(*words):
    """All commands, as lists of words, found by the lists in --help."""
    text = told(*words, "--help")
    yield list(words), set(re.findall(r"^  --([\w-]+)", text, re.M))
    for name in re.findall(r"^  (\w+)  ", text.partition("\ncommands:\n")[2], re.M):
        yield from commands(*words, name)


def make(folder, program=BIN):
    return subprocess.run([sys.executable, PROJECT + "/deploy/manual.py", program, folder],
                          text=True, capture_output=True, env={**os.environ, "SOURCE_DATE_EPOCH":
                                                               "1700000000"})


def complete(script, *words):
    """What bash offers for the last word."""
    line = " ".join(f"'{w}'" for w in words)
    run = f"source {script}; COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _millrace; " \
          "printf '%s\\n' \"${COMPREPLY[@]}\""
    return set(subprocess.run(["bash", "-c", run], text=True, capture_output=True).stdout.split())


def check_pages(folder, found):
    for words, options in found:
        name = "-".join(["millrace", *words])
        try:
            page = open(f"{folder}/man/man1/{name}.1").read()
        except OSError as e:
            ok(False, f"{name}(1)", e)
            continue
        ok(f'"{name.upper()}" "1" "2023-11-14"' in page, f"{name}(1)")
        plain = page.replace("\\-", "-")
        equal({o for o in options if f"\\fB--{o}\\fR" not in plain}, set(), "with all options")
    settings = open(f"{folder}/man/man5/millrace-settings.5").read()
    keys = re.findall(r"^\| `([\w.]+)`", told("config", "--markdown"), re.M)
    ok(len(keys) > 40 and all(f"\\fB{k}\\fR, \\fBMILLRACE_" in settings for k in keys),
       "millrace-settings(5) has every setting")
    if shutil.which("groff"):
        for folder, _, names in os.walk(folder + "/man"):
            for name in names:
                done = subprocess.run(["groff", "-man", "-ww", "-z", f"{folder}/{name}"], text=True,
                                      capture_output=True)
                equal(done.stderr, "", f"groff does not mind {name}")


def check_completions(folder, found):
    script = folder + "/bash-completion/completions/millrace"
    zsh = open(folder + "/zsh/vendor-completions/_millrace").read()
    fish = open(folder + "/fish/vendor_completions.d/millrace.fish").read()
    for words, options in found:
        here = " ".join(["millrace", *words])
        equal({"--" + o for o in options} - complete(script, "millrace", *words, "--"), set(),
              f"bash completes the options of {here}")
        if words:
            ok(words[-1] in complete(script, "millrace", *words), f"and {here} itself")
            function = "_".join(["_millrace", *words])
            part = zsh.partition(f"{function}() {{")[2].partition("\n}")[0]
            ok(all(f"'--{o}[" in part for o in options), f"zsh: {here}")
            at = "; and ".join(f"__fish_seen_subcommand_from {w}" for w in words)
            ok(all(f"-n '{at}' -l {o} " in fish for o in options), f"fish: {here}")
            ok(re.search(rf" -a {words[-1]} -d", fish), "and itself")
    for shell, path in (("zsh", "zsh/vendor-completions/_millrace"),
                        ("fish", "fish/vendor_completions.d/millrace.fish"),
                        ("bash", "bash-completion/completions/millrace")):
        if shutil.which(shell):
            done = subprocess.run([shell, "-n", f"{folder}/{path}"], text=True, capture_output=True)
            equal((done.returncode, done.stderr), (0, ""), f"{shell} can read it")


def check_operands(folder):
    """Paths are offered where a command takes one, and nowhere else."""
    script = folder + "/bash-completion/completions/millrace"
    zsh = open(folder + "/zsh/vendor-completions/_millrace").read()
    fish = open(folder + "/fish/vendor_completions.d/millrace.fish").read()
    place = folder + "/place"
    os.makedirs(place + "/folder")
    open(place + "/file", "w").close()
    both, one = {place + "/file", place + "/folder"}, {place + "/folder"}
    for words, usage, offered in ((["backup"], "DIR", one), (["restore"], "DIR", one),
                                  (["pool", "import"], "TYPE GROUP FILE", both),
                                  (["token", "revoke"], "USER NUMBER", set())):
        here = " ".join(words)
        ok(f" {usage}\n" in told(*words, "--help"), f"{here} takes {usage}")
        equal(complete(script, "millrace", *words, place + "/"), offered,
              f"bash offers paths: {here}")
        action = {0: " ", 1: "_files -/", 2: "_files"}[len(offered)]
        function = "_".join(["_millrace", *words])
        part = zsh.partition(f"{function}() {{")[2].partition("\n}")[0]
        ok(part.endswith(f"'*:{usage}:{action}'"), f"zsh offers them: {here}", part)
        at = "; and ".join(f"__fish_seen_subcommand_from {w}" for w in words)
        paths = {0: None, 1: "-a '(__fish_complete_directories)'", 2: "-F"}[len(offered)]
        found = re.findall(rf"^complete -c millrace -n '{at}' (-F|-a .*)$", fish, re.M)
        equal(found, [paths] if paths else [], f"fish offers them: {here}")
    equal(complete(script, "millrace", "backup", "--k"), {"--keep"}, "options are offered besides")
    ok("[settings to use; default: config.json if it exists]" in zsh,
       "zsh shows a colon as it is")


def check_refusal(folder):
    """Help that is not understood must not be left out silently."""
    program = folder + "/odd"
    with open(program, "w") as f:
        f.write("#!/bin/sh\n[ \"$1\" = --version ] && echo millrace 1 && exit\n"
                "printf 'usage: millrace\\n\\ntext\\n\\noptions:\\n  --odd VALUE one space\\n'\n")
    os.chmod(program, 0o755)
    done = make(folder + "/odd-out", program)
    ok(done.returncode != 0 and "not understood: '  --odd VALUE one space'" in done.stderr,
       "a line of help in another form is refused", done.stderr)


def main():
    folder = tempfile.mkdtemp(prefix="mrman", dir="/tmp")
    try:
        done = make(folder)
        equal((done.returncode, done.stderr), (0, ""), "deploy/manual.py")
        found = list(commands())
        ok(len(found) > 25, f"{len(found)} commands")
        check_pages(folder, found)
        check_completions(folder, found)
        check_operands(folder)
        check_refusal(folder)
    finally:
        shutil.rmtree(folder)
    finish()


main()
