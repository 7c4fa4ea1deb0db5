"""Follows the guides, command by command, on a copy of this machine (machine.py): README.md,
docs/guide.md and docs/operating.md as in a folder of sources, deploy/debian/README.md,
docs/deploying.md and docs/upgrading.md as on a machine that serves. guide_checkout.py and
guide_service.py have the rows that say how each command is tried. Needs root and mirrors of Debian
and npm within reach; some minutes.

"pages" only compares pages and table, and has the settings of the pages checked; "checkout" and
"service" follow half of the pages."""
import functools
import json
import re
import subprocess
import sys
import tempfile
import traceback

import guide_checkout  # noqa: F401: rows
import guide_service
import guides
import machine
from guide_table import PROJECT, ROWS, Here, plain
from harness import BIN, environment, equal, finish, note, ok

CHECKOUT = ["README.md", "docs/guide.md", "docs/operating.md"]
SERVICE = ["deploy/debian/README.md", "docs/deploying.md", "docs/upgrading.md"]
# Files that settings of a page name, and one that is here.
FILES = {f"/etc/millrace/{name}.pem": "/etc/ssl/certs/ca-certificates.crt"
         for name in ("redis-ca", "qdrant-ca")}
# Blocks of JSON that are no settings, by a word in them.
NO_SETTINGS = {'"event": "begun"': "docs/monitoring.md"}
HOME = "/root/millrace"


# --- pages ---

def check_table():
    """Every command has a row, and every row a command."""
    used = set()
    for page in guides.PAGES:
        for command in guides.commands(page):
            ok(plain(command.text) in ROWS, f"{command}: there is a row for it")
            ok(page in CHECKOUT + SERVICE, "and its page is followed")
            used.add(plain(command.text))
    for text in ROWS.keys() - used:
        ok(False, f"no page has the command of this row: {text}")


def check_settings():
    for page in guides.PAGES:
        for block in guides.blocks(page, "json"):
            other = next((p for mark, p in NO_SETTINGS.items() if mark in block.text), None)
            if other:
                equal((other, bool(json.loads(block.text))), (page, True), "a message, as JSON")
                continue
            with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
                f.write(functools.reduce(lambda s, x: s.replace(*x), FILES.items(), block.text))
                f.flush()
                done = subprocess.run([BIN, "config", "--check", "--config", f.name], text=True,
                                      capture_output=True, env=environment())
            equal(done.returncode, 0, f"{page}:{block.line}: millrace takes these settings",
                  done.stdout, done.stderr)


@functools.cache
def help_of(*words):
    """(commands, options) of a command of millrace."""
    text = subprocess.run([BIN, *words, "--help"], text=True, capture_output=True).stdout
    options = set(re.findall(r"^  --([\w-]+)", text, re.M))
    return set(re.findall(r"^  (\w+)  ", text.partition("\ncommands:\n")[2], re.M)), options


def check_inline():
    """Commands in a line of text: there is such a command, with these options."""
    for page in guides.PAGES + [guides.twin(p) for p in guides.TWINS]:
        for code in guides.inline(guides.prose(page)):
            words = code.split()
            if words[0] not in ("millrace", "build/millrace") or words[1:2] in ([], ["--version"]):
                continue
            at = []
            while (names := help_of(*at)[0]) and len(words) > len(at) + 1:
                if words[len(at) + 1] not in names:
                    break
                at.append(words[len(at) + 1])
            commands, options = help_of(*at)
            given = set(re.findall(r"--([\w-]+)", code))
            ok(at and not commands and given <= options, f"{page}: {code}", at, options)


# --- machines ---

def bring_sources(box):
    """A repository, and a clone of it, with the files of this tree as they are."""
    names = subprocess.run(["git", "ls-files", "-z", "-co", "--exclude-standard"], cwd=PROJECT,
                           capture_output=True, check=True).stdout
    box.run("mkdir -p /srv/origin && git init -q -b main /srv/origin")
    packed = subprocess.Popen(["tar", "--null", "--ignore-failed-read", "-T", "-", "-cf", "-"],
                              cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    unpack = subprocess.Popen(box.words("tar xf -", cwd="/srv/origin"), stdin=packed.stdout)
    packed.stdin.write(names)
    packed.stdin.close()
    assert unpack.wait() == 0
    box.run("git add -A && git -c user.name=t -c user.email=t@example.org commit -qm all && "
            f"git clone -q /srv/origin {HOME}", cwd="/srv/origin")


def follow(here, pages, settings=None):
    """settings: what is to be done with a block of settings."""
    for page in pages:
        here.cwd, here.variables = here.home, {}
        for block in guides.blocks(page):
            if block.language == "json" and settings:
                settings(here, block.text)
            for command in block.commands() if block.language == "sh" else []:
                try_one(here, command)


def try_one(here, command):
    here.command = command
    row = ROWS[plain(command.text)]
    if row.why:
        note(f"{command}: not as it stands: {row.why}")
    try:
        row.fn(here)
    except Exception:
        ok(False, f"{command}", traceback.format_exc())


def prepared(box):
    # That file keeps images of containers from starting services.
    box.run("rm -f /usr/sbin/policy-rc.d; echo 127.0.0.1 screening.example.org >>/etc/hosts")
    bring_sources(box)
    return box


def follow_checkout():
    with machine.Machine() as box, tempfile.TemporaryDirectory() as logs:
        here = Here(prepared(box), HOME, logs)
        follow(here, CHECKOUT)
        guide_checkout.stop(here)


def follow_service():
    with machine.Machine() as box, tempfile.TemporaryDirectory() as logs:
        follow(Here(prepared(box), HOME, logs), SERVICE, guide_service.settings)


def check_elsewhere():
    """What another test runs, it must find."""
    with open(PROJECT + "/tests/deploy/test_images.py") as f:
        ok('split("\\n## Containers\\n")' in f.read(), "test_images.py reads that section")
    for command in guides.commands("docs/deploying.md"):
        row = ROWS.get(plain(command.text))
        if row and row.fn is guide_service.containers:
            equal(command.section, "Containers", f"{command}: it is in that section")


def pages():
    check_table()
    check_elsewhere()
    check_settings()
    check_inline()


def main():
    parts = sys.argv[1:] or ["pages", "checkout", "service"]
    if "pages" in parts:
        pages()
    why = None if parts == ["pages"] else machine.missing()
    if why:
        ok(False, f"the guides cannot be followed here: {why}")
        finish()
    if "checkout" in parts:
        follow_checkout()
    if "service" in parts:
        follow_service()
    finish()


main()
