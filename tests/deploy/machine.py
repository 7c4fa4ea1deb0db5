"""A copy of this machine that forgets everything: its files are an overlay in memory, its network
is a loopback of its own, and systemd runs in it (boot). Commands that would change a real machine,
or need fixed ports, can be tried there as they stand. Needs root.

    with Machine() as box:
        box.run("apt-get install -y nginx-light", network=True)
        box.run("systemctl start nginx; curl http://127.0.0.1/")
"""
import ctypes
import fcntl
import os
import shlex
import shutil
import signal
import subprocess
import tempfile

from booted import BOOT_SECONDS, Group
from debian import HERE, children
from harness import read, wait_for

TOOLS = ["unshare", "nsenter", "pivot_root", "ip", "systemctl"]
PDEATHSIG = 1
DPKG_LOCK = "/var/lib/dpkg/lock-frontend"
# What systemd shall not do to a kernel that is not its own.
MASKED = ["systemd-sysctl", "systemd-modules-load", "systemd-binfmt", "systemd-random-seed",
          "systemd-udevd", "systemd-udev-trigger", "systemd-tmpfiles-setup-dev",
          "systemd-remount-fs", "systemd-timesyncd", "systemd-logind"]
# $1: a folder; $2: the program that boots what is in it; $3: units that are masked. Services of the
# real machine are not started.
OVERLAY = r"""set -eu
mount --make-rprivate /
ip link set lo up
mount -t tmpfs -o mode=755 tmpfs "$1"
cd "$1"
mkdir upper work root
mount -t overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" overlay root
# What apt and dpkg do to the real machine meanwhile would show through, half done.
for folder in dpkg apt; do
    cp -a /var/lib/$folder root/var/lib/$folder.copy
    rm -r root/var/lib/$folder
    mv root/var/lib/$folder.copy root/var/lib/$folder
done
cd root/etc/systemd/system
for unit in $3; do
    ln -sf /dev/null $unit.service
done
ln -sf /lib/systemd/system/basic.target default.target
exec "$2" "$1/root"
"""


def missing():
    """Why there cannot be one here, or None."""
    if os.geteuid() != 0:
        return "not root"
    lacking = [tool for tool in TOOLS if not shutil.which(tool)]
    return f"not installed: {' '.join(lacking)}; ./test slow installs them" if lacking else None


def dpkg_rests():
    """Whether no other program installs packages at this moment."""
    with open(DPKG_LOCK, "a") as f:
        try:
            fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except OSError:
            return False


class Machine:
    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="mrbox", dir="/tmp")
        self.group = Group(os.path.basename(self.folder))
        # TMPDIR may be a folder of ./test, which is not there.
        self.environment = {k: v for k, v in os.environ.items() if k != "TMPDIR" and
                            not k.startswith(("MILLRACE_", "MRTEST", "ASAN_", "UBSAN_"))}
        self.environment.update(HOME="/root", DEBIAN_FRONTEND="noninteractive")

    def __enter__(self):
        assert wait_for(dpkg_rests, 300), "dpkg is at work on this machine"
        self.log = open(self.folder + ".log", "w+")
        self.outer = subprocess.Popen(
            ["unshare", "--mount", "--pid", "--net", "--uts", "--ipc", "--cgroup", "--fork",
             "--kill-child", "bash", "-c", OVERLAY, "overlay", self.folder, HERE + "/boot",
             " ".join(MASKED)],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, preexec_fn=self._begin)
        if not wait_for(lambda: self._settled() or self.outer.poll() is not None, BOOT_SECONDS) or \
                self.outer.poll() is not None:
            said = read(self.folder + ".log").decode()
            self.__exit__()
            raise AssertionError(f"the machine does not start\n{said}")
        return self

    def _begin(self):
        ctypes.CDLL(None).prctl(PDEATHSIG, signal.SIGKILL)
        self.group.enter()

    def _settled(self):
        self.init = next(iter(children(self.outer.pid)), None)
        return self.init and b"systemd" in read(f"/proc/{self.init}/comm") and \
            self.run("systemctl is-system-running", check=False).stdout.strip() in (
                "running", "degraded")

    def __exit__(self, *_):
        self.outer.kill()  # takes process 1 along, and that all others
        self.outer.wait()
        self.log.close()
        os.unlink(self.folder + ".log")
        assert wait_for(self.group.empty, 20), "a process of the machine is left"
        self.group.close()
        os.rmdir(self.folder)

    def words(self, command, cwd="/root", network=False):
        """For subprocess. network: with the network of the real machine, not the loopback."""
        spaces = ["-m", "-p", "-u", "-i", "-C"] + ([] if network else ["-n"])
        return ["nsenter", "-t", str(self.init), *spaces, "-r", "bash", "-c",
                f"cd {shlex.quote(cwd)} || exit\n{command}"]

    def run(self, command, cwd="/root", network=False, stdin=None, timeout=600, check=True):
        done = subprocess.run(self.words(command, cwd, network), env=self.environment, text=True,
                              input=stdin or "", capture_output=True, timeout=timeout, cwd="/")
        if check and done.returncode:
            raise AssertionError(
                f"{command}: {done.returncode}\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
        return done

    def start(self, command, cwd="/root", **popen):
        """A process that goes on."""
        return subprocess.Popen(self.words(command, cwd), env=self.environment, text=True,
                                stdin=subprocess.DEVNULL, start_new_session=True, cwd="/", **popen)

    def path(self, name):
        """A file of the machine, as the test can open it."""
        return f"/proc/{self.init}/root{name}"
