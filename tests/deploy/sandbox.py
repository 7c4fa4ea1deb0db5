"""sandbox.py ROOT UNIT: starts what a unit of systemd starts, in a folder with a system in it, with
the restrictions of the unit that can be had without systemd; needs root.

User=, Group=, UMask=, LimitNOFILE=, WorkingDirectory=, Environment=, NoNewPrivileges=,
CapabilityBoundingSet= (empty), MemoryDenyWriteExecute= (from Linux 6.3 on), SystemCallFilter= and
RestrictAddressFamilies= (as the same seccomp rules), ProtectSystem=strict with StateDirectory= and
ReadWritePaths=, PrivateTmp=. Not: PrivateUsers=, PrivateDevices=, and what protects the kernel's
own files."""
import ctypes
import errno
import os
import resource
import shlex
import socket
import sys

import seccomp

from unit import Unit, allowed_calls

LIBC = ctypes.CDLL(None, use_errno=True)
NEWNS = 0x20000
RDONLY, NOSUID, NODEV, REMOUNT, BIND, REC, PRIVATE = 1, 2, 4, 32, 4096, 16384, 1 << 18
NO_NEW_PRIVS, CAPBSET_DROP, SET_MDWE = 38, 24, 65


def call(what, *args):
    if what(*args) < 0:
        raise OSError(ctypes.get_errno(), f"{what.__name__}{args}")


def mount(source, target, kind=None, flags=0):
    encode = lambda s: s.encode() if s else None
    call(LIBC.mount, encode(source), encode(target), encode(kind), flags, None)


def system_call_filter(unit):
    f = seccomp.SyscallFilter(defaction=seccomp.ERRNO(errno.EPERM))
    for name in sorted(allowed_calls(unit) - {"socket"}):
        try:
            f.add_rule(seccomp.ALLOW, name)
        except (RuntimeError, ValueError):
            pass  # of another processor
    for family in unit.one("RestrictAddressFamilies").split():
        f.add_rule(seccomp.ALLOW, "socket",
                   seccomp.Arg(0, seccomp.EQ, int(getattr(socket, family))))
    return f


def arrange_files(root, unit):
    """All of it read-only but the folders that the unit names; /tmp is empty."""
    call(LIBC.unshare, NEWNS)
    mount(None, "/", flags=REC | PRIVATE)
    mount(root, root, flags=BIND | REC)
    writable = [f"/var/lib/{unit.one('StateDirectory')}"] + [
        p.lstrip("-") for line in unit.all("ReadWritePaths") for p in line.split()]
    for path in writable:
        if os.path.isdir(root + path):
            mount(root + path, root + path, flags=BIND)
    mount(None, root, flags=BIND | REMOUNT | RDONLY)
    mount("proc", root + "/proc", "proc")
    mount("/dev", root + "/dev", flags=BIND | REC)
    mount("tmpfs", root + "/tmp", "tmpfs", NOSUID | NODEV)
    os.chmod(root + "/tmp", 0o1777)


def give_up_rights(unit, uid, gid, call_filter):
    files = int(unit.one("LimitNOFILE", "1024"))
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    files = files if hard == resource.RLIM_INFINITY else min(files, max(hard, 1024))
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    if unit.one("CapabilityBoundingSet", "all") == "":
        for capability in range(64):
            LIBC.prctl(CAPBSET_DROP, capability, 0, 0, 0)
    os.umask(int(unit.one("UMask", "0022"), 8))
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    call(LIBC.prctl, NO_NEW_PRIVS, 1, 0, 0, 0)
    if unit.one("MemoryDenyWriteExecute") == "yes" and LIBC.prctl(SET_MDWE, 1, 0, 0, 0) < 0:
        print("sandbox: this kernel is older than MemoryDenyWriteExecute by prctl",
              file=sys.stderr)
    call_filter.load()


def user_of(root, name):
    with open(root + "/etc/passwd") as f:
        fields = [line.split(":") for line in f]
    return next((int(x[2]), int(x[3])) for x in fields if x[0] == name)


def main():
    root, unit = os.path.realpath(sys.argv[1]), Unit(sys.argv[2])
    uid, gid = user_of(root, unit.one("User"))
    state = f"{root}/var/lib/{unit.one('StateDirectory')}"
    if not os.path.isdir(state):
        os.mkdir(state)
        os.chown(state, uid, gid)
        os.chmod(state, int(unit.one("StateDirectoryMode", "0755"), 8))
    call_filter = system_call_filter(unit)  # before chroot: it asks systemd-analyze
    arrange_files(root, unit)
    os.chroot(root)
    os.chdir(unit.one("WorkingDirectory", "/"))
    environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                   "USER": unit.one("User"), "HOME": "/var/lib/millrace"}
    environment.update(e.split("=", 1) for e in unit.all("Environment"))
    environment.update({k: v for k, v in os.environ.items()
                        if k in ("NOTIFY_SOCKET", "WATCHDOG_USEC", "MRTEST")})
    command = shlex.split(unit.one("ExecStart"))
    give_up_rights(unit, uid, gid, call_filter)
    os.execve(command[0], command, environment)


main()
