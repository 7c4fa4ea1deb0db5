"""Takes the last seconds off the append-only file of a Redis that is dead.

Redis 7 keeps appendonlydir/ with a manifest, a base and incremental files; what was written last is
at the end of the incremental file with the highest number. With aof-timestamp-enabled it notes the
second before the first command of each ("#TS:1700000000"). A file is cut between two commands and
never inside of MULTI and EXEC, which Redis writes around the effects of a script: as a disk would
have it that got that far, and no further.
"""
import os
import re
import shutil


class Step:
    """A command, or all from MULTI to EXEC: what is applied as a whole. at: seconds since 1970; 0:
    unknown."""

    def __init__(self, start, end, at):
        self.start, self.end, self.at = start, end, at


def last_file(folder):
    """The incremental file that is written to, or None."""
    found = []
    try:
        with open(os.path.join(folder, "appendonly.aof.manifest")) as f:
            for line in f:
                if m := re.match(r"file (\S+) seq (\d+) type i", line):
                    found.append((int(m[2]), m[1]))
    except FileNotFoundError:
        pass
    return os.path.join(folder, max(found)[1]) if found else None


def command(data, at):
    """First word, and the end, of the command at an offset; None if it is not all there."""
    end = data.find(b"\r\n", at)
    if end < 0:
        return None
    count, at, first = int(data[at + 1:end]), end + 2, b""
    for i in range(count):
        end = data.find(b"\r\n", at)
        if end < 0:
            return None
        size = int(data[at + 1:end])
        word, at = data[end + 2:end + 2 + min(size, 16)], end + 2 + size + 2
        if at > len(data):
            return None
        first = word if i == 0 else first
    return first.upper(), at


def steps(data):
    """All steps of a file, in order; what is torn off at the end is not among them."""
    found, at, second, began = [], 0, 0, None
    while at < len(data):
        if data[at:at + 1] == b"#":
            end = data.find(b"\r\n", at)
            if end < 0:
                break
            if data[at:at + 4] == b"#TS:":
                second = int(data[at + 4:end])
            at = end + 2
            continue
        got = command(data, at)
        if not got:
            break
        word, end = got
        if word == b"MULTI":
            began = at
        elif word == b"EXEC" or began is None:
            found.append(Step(at if began is None else began, end, second))
            began = None
        at = end
    spread(found)
    return found


def spread(found):
    """Within a second the steps are taken to have come evenly."""
    i = 0
    while i < len(found):
        j = i
        while j < len(found) and found[j].at == found[i].at:
            j += 1
        for k in range(i, j):
            found[k].at += (k - i) / (j - i)
        i = j


def cut(folder, now, seconds):
    """Drops what was written after now - seconds. Returns (steps lost, bytes lost)."""
    path = last_file(folder)
    if not path:
        return 0, 0
    with open(path, "rb") as f:
        data = f.read()
    all_steps = steps(data)
    kept = [s for s in all_steps if s.at <= now - seconds] if seconds > 0 else all_steps
    end = kept[-1].end if kept else 0
    os.truncate(path, end)
    return len(all_steps) - len(kept), len(data) - end


def lose(folder):
    """Drops all of it."""
    shutil.rmtree(folder)
