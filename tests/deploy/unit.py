"""A unit of systemd: its lines, and the system calls that it allows."""
import subprocess


class Unit:
    """Lines of a unit by their names, in order."""

    def __init__(self, path):
        self.lines = {}
        with open(path) as f:
            for line in f:
                name, equals, value = line.strip().partition("=")
                if equals and not line.startswith(("#", ";")):
                    self.lines.setdefault(name, []).append(value)

    def all(self, name):
        return self.lines.get(name, [])

    def one(self, name, default=""):
        return self.lines.get(name, [default])[-1]


def calls_of(name):
    """The system calls of a set such as @system-service, by the systemd of this machine."""
    if not name.startswith("@"):
        return {name}
    text = subprocess.run(["systemd-analyze", "syscall-filter", "--no-pager", name], text=True,
                          capture_output=True, check=True).stdout
    found = set()
    for line in text.splitlines()[1:]:
        word = line.strip()
        if word and not word.startswith("#"):
            found |= calls_of(word)
    return found


def allowed_calls(unit):
    allowed = calls_of("@default") | {"execve", "exit", "exit_group", "rt_sigreturn"}
    for line in unit.all("SystemCallFilter"):
        names = line.lstrip("~").split()
        listed = set().union(*(calls_of(n) for n in names))
        allowed = allowed - listed if line.startswith("~") else allowed | listed
    return allowed
