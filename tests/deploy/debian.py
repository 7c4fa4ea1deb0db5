"""Systems in folders: made by debootstrap from the mirror of this machine and kept, then copied for
every test. Packages of millrace for them. Needs root."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PROJECT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, PROJECT + "/tests/server")
from harness import note  # noqa: E402

DEBIAN_12 = f"{PROJECT}/build-test/debian-12"
OUT = f"{PROJECT}/build-test/packages"
TOOLS = ["debootstrap", "dpkg-deb", "chroot", "mount"]
# In apt's cache of the copies, with what they recommend: what the package of millrace wants, an
# init, a proxy. A copy may be out of reach of any mirror.
CACHED = ["mariadb-client-core", "mariadb-server-core", "redis-tools", "poppler-utils",
          "poppler-data", "adduser", "ca-certificates", "libevent-core-2.1-7", "libmariadb3",
          "libnghttp2-14", "libunistring2", "init-system-helpers", "systemd-sysv", "dbus",
          "nginx-light"]
# Of the private stores.
SMALL = {"mysql": {"buffer_bytes": 64 << 20}, "redis": {"max_bytes": 256 << 20}}


def sh(*words, fails=False, **kw):
    done = subprocess.run(words, text=True, capture_output=True, **kw)
    if done.returncode and not fails:
        raise AssertionError(f"{' '.join(words)}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def missing(*tools):
    """Why no Debian can be made here, or None."""
    if os.geteuid() != 0:
        return "not root"
    lacking = [tool for tool in [*TOOLS, *tools] if not shutil.which(tool)]
    return f"not installed: {' '.join(lacking)}; ./test slow installs them" if lacking else None


# --- a system in a folder ---

ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive",
               "LC_ALL": "C", "HOME": "/root"}


def inside(root, *words, **kw):
    return sh("chroot", root, *words, env=ENVIRONMENT, **kw)


def apt_words(*words):
    return ["apt-get", "-y", "-q", "-o", "Dpkg::Use-Pty=0", *words]


def apt(root, *words, **kw):
    return inside(root, *apt_words(*words), **kw)


def system(root, release, finish, mark=""):
    """A minimal Debian; finish(root) adds to it. Once it is complete it is taken as it is, or only
    finished again, if that was done by another mark."""
    path = root + "/complete"
    have = open(path).read() if os.path.exists(path) else None
    if have == mark:
        return
    if have is None:
        shutil.rmtree(root, ignore_errors=True)
        mirror = sh("apt-get", "indextargets", "--format", "$(SITE)",
                    "Created-By: Packages").stdout.split()[0]
        note(f"debootstrap {release}")
        sh("debootstrap", "--variant=minbase", release, root, mirror)
        shutil.copy("/etc/resolv.conf", root + "/etc/resolv.conf")
    apt(root, "update")
    finish(root)
    with open(path, "w") as f:
        f.write(mark)


def debian_12():
    system(DEBIAN_12, "bookworm", lambda root: apt(root, "install", "--download-only", *CACHED),
           " ".join(CACHED))


class System:
    """A copy of it; with /proc while programs run."""

    def __init__(self):
        self.root = tempfile.mkdtemp(prefix="mrdeb", dir="/tmp")
        sh("cp", "-a", "--reflink=auto", DEBIAN_12 + "/.", self.root)
        os.chmod(self.root, 0o755)
        sh("mount", "-t", "proc", "proc", self.root + "/proc")

    def run(self, *words, **kw):
        return inside(self.root, *words, **kw)

    def install(self, package):
        shutil.copy(package, self.path("/var/cache/millrace.deb"))
        return self.run(*apt_words("install", "/var/cache/millrace.deb"))

    def path(self, name):
        return self.root + name

    def change_settings(self, **settings):
        """As an editor does: owner and rights of the file stay."""
        with open(self.path("/etc/millrace/config.json"), "r+") as f:
            settings = {**json.load(f), **settings}
            f.seek(0)
            json.dump(settings, f, indent=2)
            f.truncate()

    def close(self):
        sh("umount", self.root + "/proc")
        shutil.rmtree(self.root)


def children(pid):
    return [int(p) for p in os.listdir("/proc") if p.isdigit() and
            re.search(rf"^PPid:\t{pid}$", read_status(p), re.M)]


def read_status(pid):
    try:
        with open(f"/proc/{pid}/status") as f:
            return f.read()
    except OSError:
        return ""


# --- packages ---

def build(*options):
    """The path of a package of this tree."""
    os.makedirs(OUT, exist_ok=True)
    done = sh("deploy/package", "--out", OUT, *options, cwd=PROJECT)
    return os.path.join(PROJECT, done.stdout.split()[-1])
