"""A Docker engine of a test's own: docker.io and docker-compose of Debian 13 in a folder, in
namespaces of processes, mounts and network of their own. It ends with the test, and the network of
the machine is not touched: packages and modules come in through slirp4netns. Needs root.

    with Engine() as engine:
        engine.run("docker", "compose", "up", "-d", cwd="/src/deploy/docker")
        with network(engine.outside): ...     # a client elsewhere: 192.0.2.2

MILLRACE_DOCKER_DATA names a folder that keeps images, for work on the test itself.
"""
import contextlib
import ctypes
import os
import resource
import shutil
import subprocess
import tempfile

from debian import DEBIAN_12, PROJECT, apt, debian_12, sh, system
from harness import read, wait_for

ROOT = f"{PROJECT}/build-test/docker"
ADDRESS, CLIENT = "192.0.2.1", "192.0.2.2"
ADDRESS6, CLIENT6 = "2001:db8::1", "2001:db8::2"
TOOLS = ["debootstrap", "ip", "nsenter", "setpriv", "slirp4netns", "unshare"]
CGROUP = "/millrace-test"
LIBC = ctypes.CDLL(None, use_errno=True)
NEWNET = 0x40000000
# Its root is moved, not changed by chroot: what enters a container starts at the namespace's root.
START = """
root=$1 src=$2 data=$3
mount --make-rprivate /
mount --bind "$root" "$root"
mkdir -p "$root/src" "$root/old" "$root/var/lib/docker"
mount --bind "$src" "$root/src"
mount --bind "$data" "$root/var/lib/docker"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/run"
mount -t tmpfs tmpfs "$root/tmp"
echo nameserver 10.0.2.3 >"$root/tmp/resolv.conf"
mount --bind "$root/tmp/resolv.conf" "$root/etc/resolv.conf"
ip link set lo up
cd "$root"
pivot_root . old
mount -t proc proc /proc
umount -l /old
exec dockerd --group root --cgroup-parent """ + CGROUP


def missing():
    """What keeps an engine from running here, or None."""
    if os.geteuid() != 0:
        return "not root"
    return next((f"{tool} is not installed" for tool in TOOLS if not shutil.which(tool)), None)


@contextlib.contextmanager
def network(where):
    """What this thread opens meanwhile is in another network."""
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    enter(where)
    try:
        yield
    finally:
        enter(home)
        os.close(home)


def enter(where):
    if LIBC.setns(where, NEWNET) < 0:
        raise OSError(ctypes.get_errno(), "setns")


def open_files(wanted):
    """wanted, or fewer if this machine does not let even root have so many."""
    with contextlib.suppress(ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, wanted))
    return min(wanted, resource.getrlimit(resource.RLIMIT_NOFILE)[1])


def child_of(pid):
    for name in os.listdir("/proc"):
        if name.isdigit() and f"\nPPid:\t{pid}\n".encode() in read(f"/proc/{name}/status"):
            return int(name)
    return None


class Engine:
    """Sources of millrace are in src, which is /src inside."""

    def __init__(self):
        system(ROOT, "trixie", lambda root: apt(
            root, "install", "--no-install-recommends", "docker.io", "docker-cli", "docker-buildx",
            "docker-compose", "iptables"))
        debian_12()
        self.work = tempfile.mkdtemp(prefix="images", dir=f"{PROJECT}/build-test")
        self.src = f"{self.work}/src"
        self.data = os.environ.get("MILLRACE_DOCKER_DATA", f"{self.work}/data")
        for path in (self.src, self.data):
            os.makedirs(path, exist_ok=True)
        self.processes = []

    def _start(self, name, *words):
        with open(f"{self.work}/{name}.log", "w") as log:
            p = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *words], stdout=log, stderr=log,
                                 stdin=subprocess.DEVNULL, start_new_session=True)
        self.processes.append(p)
        return p

    def __enter__(self):
        try:
            p = self._start("dockerd", "unshare", "--mount", "--net", "--pid", "--uts", "--ipc",
                            "--fork", "--kill-child", "sh", "-ec", START, "sh", ROOT, self.src,
                            self.data)
            self.pid = wait_for(lambda: child_of(p.pid), 10)
            self._start("slirp", "slirp4netns", "--configure", "--disable-host-loopback",
                        str(self.pid), "tap0")
            if not wait_for(lambda: self.run("docker", "info", fails=True).returncode == 0, 60):
                raise AssertionError("dockerd does not start\n" + self.log())
            self.inside = os.open(f"/proc/{self.pid}/ns/net", os.O_RDONLY)
            self._connect()
            self.run("sh", "-c", "docker ps -aq | xargs -r docker rm -fv; docker volume prune -af; "
                     "docker network prune -f")  # of a folder that was kept
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for p in reversed(self.processes):
            p.kill()
            p.wait()
        # All of it is gone when the first process of its namespace is.
        wait_for(lambda: not os.path.exists(f"/proc/{self.pid}"), 30)
        shutil.rmtree(self.work, ignore_errors=True)
        sh("find", "/sys/fs/cgroup", "-depth", "-type", "d", "-path", f"*{CGROUP}*", "-delete",
           fails=True)

    def _connect(self):
        """A client elsewhere, which reaches the engine as the world would."""
        home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        if LIBC.unshare(NEWNET) < 0:
            raise OSError(ctypes.get_errno(), "unshare")
        self.outside = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        enter(home)
        os.close(home)
        ip = lambda *words: sh("ip", *words)
        with network(self.outside):
            ip("link", "add", "eth0", "type", "veth", "peer", "name", "world", "netns",
               str(self.pid))
            ip("addr", "add", f"{CLIENT}/24", "dev", "eth0")
            ip("addr", "add", f"{CLIENT6}/64", "dev", "eth0", "nodad")
            ip("link", "set", "eth0", "up")
        with network(self.inside):
            ip("addr", "add", f"{ADDRESS}/24", "dev", "world")
            ip("addr", "add", f"{ADDRESS6}/64", "dev", "world", "nodad")
            ip("link", "set", "world", "up")
        with network(self.outside):
            ip("route", "add", "default", "via", ADDRESS)

    def log(self):
        return read(f"{self.work}/dockerd.log").decode()[-4000:] + \
            read(f"{self.work}/slirp.log").decode()[-1000:]

    def run(self, *words, cwd="/", env=None, **kw):
        """A command inside, as root, in the engine's own system."""
        return sh("nsenter", "-t", str(self.pid), "--all", "sh", "-c", 'cd "$0" && exec "$@"', cwd,
                  *words, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root",
                               "BUILDKIT_PROGRESS": "plain", **(env or {})}, **kw)

    def base_image(self, name):
        """Debian 12, with the authorities that this machine trusts besides Debian's."""
        own = "usr/local/share/ca-certificates"
        files = ["-C", DEBIAN_12, "."] + (["-C", "/", own] if os.path.isdir(f"/{own}") else [])
        tar = subprocess.Popen(
            ["tar", "-c", "--exclude=./complete", "--exclude=./var/cache/apt/archives/*.deb",
             *files], stdout=subprocess.PIPE)
        try:
            self.run("docker", "import", "-", name, stdin=tar.stdout)
        finally:
            tar.stdout.close()
            if tar.wait():
                raise AssertionError(f"tar: {tar.returncode}")
