"""A Debian that runs: systemd as process 1 of namespaces of its own, with real units and their real
sandboxes. It has the network of the test, which is a loopback interface without others: all ports
are free there, 80 and 443 too, and no mirror is within reach.

    own_network()
    with Booted() as machine:
        machine.run("systemctl", "is-active", "nginx")
        machine.cut_power()
        machine.boot()
"""
import ctypes
import fcntl
import os
import socket
import struct
import subprocess
import tempfile

from debian import ENVIRONMENT, HERE, System, apt, children, sh
from harness import read, wait_for

NEWNET, SET_FLAGS, UP = 0x40000000, 0x8914, 1
BOOT_SECONDS = 60


def own_network():
    """For this process, and what it starts from now on."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(NEWNET) < 0:
        raise OSError(ctypes.get_errno(), "no network namespace can be had")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, SET_FLAGS, struct.pack("16sH14x", b"lo", UP))


class Group:
    """A control group (version 2) for a machine."""

    def __init__(self, name):
        self.top = tempfile.mkdtemp(prefix="mrcg", dir="/tmp")
        sh("mount", "-t", "cgroup2", "none", self.top)
        self.path = f"{self.top}/{name}"
        os.mkdir(self.path)

    def enter(self):
        with open(self.path + "/cgroup.procs", "w") as f:
            f.write("0")

    def empty(self):
        return b"populated 0" in read(self.path + "/cgroup.events")

    def close(self):
        for folder, _, _ in os.walk(self.path, topdown=False):
            os.rmdir(folder)
        sh("umount", self.top)
        os.rmdir(self.top)


class Booted(System):
    def __init__(self):
        super().__init__()
        self.group = self.process = None
        apt(self.root, "install", "--no-install-recommends", "systemd-sysv", "dbus")

    def __enter__(self):
        try:
            self.group = Group(os.path.basename(self.root))
        except AssertionError:
            self.close()
            raise
        self.log = open(self.path("/console.log"), "w")
        return self

    def __exit__(self, *_):
        self.cut_power()
        self.log.close()
        self.group.close()
        self.close()

    def boot(self):
        self.process = subprocess.Popen(
            ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--cgroup", "--ipc", "--uts",
             HERE + "/boot", self.root], stdin=subprocess.DEVNULL, stdout=self.log,
            stderr=self.log, preexec_fn=self.group.enter)
        state = wait_for(self.settled, BOOT_SECONDS)
        if state != "running":
            raise AssertionError("systemd does not run in a namespace here: "
                                 f"{state or self.process.poll()}\n{self.console()}")

    def settled(self):
        if self.process.poll() is not None or not children(self.process.pid):
            return None
        state = self.run("systemctl", "is-system-running", fails=True).stdout.strip()
        return state if state in ("running", "degraded") else None

    def console(self):
        return read(self.path("/console.log")).decode("utf-8", "replace")[-4000:]

    def cut_power(self):
        """Every process ends at once, by SIGKILL."""
        if self.process:
            self.process.kill()  # takes process 1 along, and that all others
            self.process.wait()
            self.process = None
            if not wait_for(self.group.empty, 20):
                raise AssertionError("a process of the machine is left")

    def run(self, *words, **kw):
        if not self.process:
            return super().run(*words, **kw)
        first, = children(self.process.pid)
        return sh("nsenter", "-t", str(first), "--all", "--root", "--wd", *words, env=ENVIRONMENT,
                  **kw)

    def journal(self, unit):
        return self.run("journalctl", "--no-pager", "-o", "cat", "-n", "1000", "-u", unit).stdout
