"""The units of systemd: how exposed the services are, and what the nightly backup keeps."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PROJECT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, PROJECT + "/tests/server")
from harness import equal, finish, note, ok  # noqa: E402

EXPOSURE_MAX = 2.0
SYSTEMD = PROJECT + "/deploy/systemd"


def check_exposure():
    if not shutil.which("systemd-analyze"):
        note("no systemd-analyze here: ./test slow looks at the exposure, too")
        return
    for unit in ("millrace.service", "millrace-backup.service"):
        done = subprocess.run(["systemd-analyze", "security", "--offline=true", "--no-pager",
                               f"{SYSTEMD}/{unit}"], text=True, capture_output=True)
        found = re.search(r"exposure level for \S+: ([\d.]+)", done.stdout)
        ok(found and float(found[1]) <= EXPOSURE_MAX, f"{unit}: exposure {found and found[1]}",
           done.stdout, done.stderr)


def backup(folder, program, keep):
    return subprocess.run([SYSTEMD + "/backup", folder], text=True, capture_output=True, env={
        "PATH": "/usr/bin:/bin", "MILLRACE": program, "CONFIG": "/etc/x.json", "KEEP": keep})


def program(folder, text):
    path = folder + "/millrace"
    with open(path, "w") as f:
        f.write("#!/bin/sh\n" + text)
    os.chmod(path, 0o755)
    return path


def check_backup(work):
    folder = work + "/backups"
    for name in ("20260101T030000Z", "20260102T030000Z", "20260103T030000Z", "by-hand"):
        os.makedirs(f"{folder}/{name}")
        open(f"{folder}/{name}/manifest.json", "w").close()
    os.makedirs(f"{folder}/20260104T030000Z/partial")
    before = sorted(os.listdir(folder))

    fails = program(work, "exit 1\n")
    ok(backup(folder, fails, "1").returncode != 0, "a backup that fails is a failure of the unit")
    equal(sorted(os.listdir(folder)), before, "and removes nothing")
    for keep in ("0", "x", "-1"):
        done = backup(folder, fails, keep)
        ok(done.returncode == 2 and "expected is a number from 1 on" in done.stderr,
           f"KEEP={keep} is refused", done.stderr)

    works = program(work, '[ "$1 $2 $3" = "backup --config /etc/x.json" ] || exit 3\n'
                          'mkdir "$4" && : >"$4/manifest.json"\n')
    done = backup(folder, works, "2")
    equal((done.returncode, done.stderr), (0, ""), "a backup")
    after = sorted(os.listdir(folder))
    new = [n for n in after if n not in before]
    ok(len(new) == 1 and re.fullmatch(r"\d{8}T\d{6}Z", new[0]), "in a folder named by its time",
       after)
    equal(sorted(set(before) - set(after)), ["20260101T030000Z", "20260102T030000Z"],
          "the oldest are removed; those by hand and half ones are not counted")


def main():
    work = tempfile.mkdtemp(prefix="mrunit", dir="/tmp")
    try:
        check_exposure()
        check_backup(work)
    finally:
        shutil.rmtree(work)
    finish()


main()
