"""The units of systemd: how exposed the services are, and what the nightly backup runs."""
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PROJECT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, PROJECT + "/tests/server")
from harness import BIN, equal, finish, note, ok  # noqa: E402
from unit import Unit, allowed_calls  # noqa: E402

EXPOSURE_MAX = 2.0
SYSTEMD = PROJECT + "/deploy/systemd"


def check_exposure():
    if not shutil.which("systemd-analyze"):
        note("no systemd-analyze here: ./test slow looks at the exposure, too")
        return
    for unit in ("millrace.service", "millrace-backup.service", "millrace-embed.service"):
        done = subprocess.run(["systemd-analyze", "security", "--offline=true", "--no-pager",
                               f"{SYSTEMD}/{unit}"], text=True, capture_output=True)
        found = re.search(r"exposure level for \S+: ([\d.]+)", done.stdout)
        ok(found and float(found[1]) <= EXPOSURE_MAX, f"{unit}: exposure {found and found[1]}",
           done.stdout, done.stderr)


def check_calls():
    """What src/loop/process.c and sandbox.c call to start a program in a sandbox: where Landlock is
    refused a program that reads PDFs could read every file of the service."""
    if not shutil.which("systemd-analyze"):
        return
    wanted = {"clone", "close_range", "execve", "landlock_add_rule", "landlock_create_ruleset",
              "landlock_restrict_self", "memfd_create", "pidfd_open", "prctl", "prlimit64",
              "setsid", "waitid"}
    refused = wanted - allowed_calls(Unit(SYSTEMD + "/millrace.service"))
    equal(refused, set(), "the unit allows what a sandbox needs")


def check_backup():
    """The unit's words are such that the program takes; test_story lets systemd start it."""
    with open(SYSTEMD + "/millrace-backup.service") as f:
        text = f.read()
    keep = re.search(r"^Environment=KEEP=(\d+)$", text, re.M)[1]
    words = re.search(r"^ExecStart=(.*)$", text, re.M)[1].replace("${KEEP}", keep).split()
    equal((words[0], words[-1]), ("/usr/bin/millrace", "/var/backups/millrace"), "its command")
    done = subprocess.run([BIN, *words[1:-1]], text=True, capture_output=True)
    ok(done.returncode == 2 and "DIR is missing" in done.stderr, "all of its options are known",
       done.stderr)


def check_embed():
    with open(SYSTEMD + "/millrace-embed.service") as f:
        words = re.search(r"^ExecStart=(.*)$", f.read(), re.M)[1].split()
    equal(words[0], "/usr/bin/millrace", "its command")
    done = subprocess.run([BIN, *words[1:]], text=True, capture_output=True)
    ok(done.returncode == 1 and "/etc/millrace/config.json" in done.stderr,
       "all of its options are known", done.stderr)


def main():
    check_exposure()
    check_calls()
    check_backup()
    check_embed()
    finish()


main()
