"""The Debian package, in a folder with a fresh Debian 12: install, start by the unit's command line
in the unit's sandbox, upgrade under load, remove, purge. Needs root, debootstrap, lintian,
systemd-analyze, python3-seccomp, and a mirror of Debian within reach; half an hour at first, some
minutes when the folder build-test/debian-12 is there."""
import filecmp
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time

from debian import HERE, SMALL, System, apt, build, children, debian_12, inside, missing, sh
from harness import MARK, SCALE, equal, finish, http, note, ok, wait_for
from front import free_port
from load import Load

UNITS = ["millrace.service", "millrace.socket", "millrace-backup.service", "millrace-backup.timer",
         "millrace-embed.service", "millrace-embed.timer"]
EXPOSURE_MAX = 2.0


# --- the package itself ---

def check_form(package):
    again = shutil.copy(package, package + ".first")
    build("--binary", "build-package/millrace")
    ok(filecmp.cmp(again, package, shallow=False), "packed twice: the same bytes")
    os.unlink(again)
    done = sh("lintian", "--fail-on", "error", "--tag-display-limit", "0", package, fails=True)
    note(done.stdout)
    equal(done.returncode, 0, "lintian finds no error", done.stdout, done.stderr)
    depends = sh("dpkg-deb", "-f", package, "Depends").stdout
    for library in ("libc6", "libevent-core-2.1-7", "libmariadb3", "libssl3"):
        ok(re.search(rf"\b{library} \(>=", depends), f"it depends on {library}", depends)
    files = sh("dpkg-deb", "-c", package).stdout
    for example in ("my.cnf", "redis.conf", "nginx/millrace.conf", "prometheus/alerts.yml",
                    "grafana/millrace.json"):
        ok(f" ./usr/share/doc/millrace/examples/{example}\n" in files, f"it has {example}", files)


def unit_paths(text):
    """Files that a unit names: programs and their arguments."""
    return re.findall(r"(?<![\w.:])/(?:usr|etc|bin)/[\w./-]+", "\n".join(
        line for line in text.splitlines() if line.startswith("Exec")))


def check_units(root):
    # A minimal system has no systemd; its targets are those of this machine.
    shutil.copytree("/lib/systemd/system", root + "/lib/systemd/system", symlinks=True,
                    dirs_exist_ok=True, ignore=lambda _, names: [
                        n for n in names if not n.endswith((".target", ".slice", ".wants"))])
    for unit in UNITS:
        path = f"{root}/lib/systemd/system/{unit}"
        for name in unit_paths(open(path).read()):
            ok(os.path.exists(root + name), f"{unit}: {name} is there")
        done = sh("systemd-analyze", "verify", "--man=no", f"--root={root}", unit, fails=True)
        complaints = [line for line in (done.stdout + done.stderr).splitlines()
                      if "millrace" in line]
        equal((done.returncode, complaints), (0, []), f"{unit}: systemd-analyze verify")
        if not unit.endswith(".service"):
            continue
        done = sh("systemd-analyze", "security", "--offline=true", "--no-pager", path)
        exposure = float(re.search(r"exposure level for \S+: ([\d.]+)", done.stdout)[1])
        ok(exposure <= EXPOSURE_MAX, f"{unit}: exposure {exposure}", done.stdout)


# --- the service ---

def python():
    """One that has Debian's python3-seccomp."""
    return next((p for p in (sys.executable, "/usr/bin/python3") if os.path.exists(p) and
                 not sh(p, "-c", "import seccomp", fails=True).returncode), None)


class Service:
    """What systemd would start, and the socket that it reports to."""

    def __init__(self, system):
        self.system = system
        notify = system.path("/run/notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(notify)
        os.chmod(notify, 0o777)
        self.socket.setblocking(False)
        self.told = []
        self.log_path = system.path("/service.log")
        key, value = MARK.split("=")
        env = {"NOTIFY_SOCKET": "/run/notify", "WATCHDOG_USEC": "120000000", key: value,
               "PATH": os.environ["PATH"]}
        with open(self.log_path, "w") as log:
            self.process = subprocess.Popen(
                [python(), HERE + "/sandbox.py", system.root,
                 system.path("/lib/systemd/system/millrace.service")],
                env=env, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)

    def log(self):
        with open(self.log_path) as f:
            return f.read()

    def ready(self):
        """Whether READY=1 has come since the last call."""
        try:
            while True:
                self.told.append(self.socket.recv(65536).decode())
        except BlockingIOError:
            pass
        found = any("READY=1" in t for t in self.told)
        if found:
            self.told.clear()
        return found

    def wait_ready(self):
        return wait_for(lambda: self.ready() or self.process.poll() is not None, 180) and \
            self.process.poll() is None

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(90 * SCALE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return "it does not end"


def check_installed(system):
    root = system.root
    passwd = [x.split(":") for x in open(root + "/etc/passwd") if x.startswith("millrace:")]
    equal([x[5:] for x in passwd], [["/var/lib/millrace", "/usr/sbin/nologin\n"]],
          "a system user without a shell")
    st = os.stat(root + "/etc/millrace/config.json")
    equal((oct(st.st_mode & 0o777), st.st_uid, st.st_gid), ("0o640", 0, int(passwd[0][3])),
          "settings are for root and the service only")
    st = os.stat(root + "/var/backups/millrace")
    equal((oct(st.st_mode & 0o777), st.st_uid), ("0o700", int(passwd[0][2])), "so are backups")
    wants = root + "/etc/systemd/system/"
    ok(os.path.islink(wants + "multi-user.target.wants/millrace.service"), "the service is enabled")
    ok(not os.path.exists(wants + "sockets.target.wants/millrace.socket") and
       not os.path.exists(wants + "timers.target.wants/millrace-backup.timer"),
       "socket and backups are not")
    equal(inside(root, "millrace", "config", "--check").returncode, 0,
          "the program finds its settings by itself")
    ok("/etc/millrace/config.json" in inside(root, "millrace", "config").stdout, "and says where")


def check_serving(system, service, port):
    ready = http(port, "/readyz")
    equal(ready.status, 200, "/readyz", ready)
    page = http(port, "/")
    ok(page.status == 200 and b"/assets/" in page.body, "the pages are served", page)
    done = inside(system.root, "millrace", "admin", "add", "chief", "--super",
                  input="correct horse battery staple\n", fails=True)
    equal(done.returncode, 0, "root adds an admin, without naming settings", done.stderr)
    uid = os.stat(system.path("/var/lib/millrace")).st_uid
    for pid in [service.process.pid, *children(service.process.pid)]:
        status = open(f"/proc/{pid}/status").read()
        name = re.search(r"Name:\t(.*)", status)[1]
        equal(re.search(r"Uid:\t(\d+)", status)[1], str(uid), f"{name} runs as the system user")
        equal(re.search(r"Seccomp:\t(\d)", status)[1], "2", f"{name} has a filter of calls")
        equal(re.search(r"CapBnd:\t(\w+)", status)[1].strip("0"), "", f"{name} has no capability")


def check_upgrade(system, service, port, package):
    nodes = children(service.process.pid)
    load = Load(port)
    time.sleep(1)
    system.install(package)
    equal(inside(system.root, "dpkg-query", "-W", "-f", "${Version}", "millrace").stdout[-2:], "-2",
          "the newer package is installed")
    ok(str(port) in open(system.path("/etc/millrace/config.json")).read(),
       "settings that were changed stay")
    ok(os.readlink(f"/proc/{service.process.pid}/exe").endswith("(deleted)"),
       "the old program runs until it is told")
    service.ready()
    # There is no systemd here that postinst could ask.
    unit = open(system.path("/lib/systemd/system/millrace.service")).read()
    command = re.search(r"^ExecReload=(.*)", unit, re.M)[1]
    inside(system.root, *shlex.split(command.replace("$MAINPID", str(service.process.pid))))
    ok(service.wait_ready(), "reload: READY=1", service.log())
    ok(wait_for(lambda: "the old nodes have ended" in service.log(), 30), "the old nodes end",
       service.log())
    count, failures = load.stop()
    ok(count > 20, f"{count} requests meanwhile")
    equal(failures, [], "and none was dropped")
    ok(not os.readlink(f"/proc/{service.process.pid}/exe").endswith("(deleted)"),
       "the same process runs the new program")
    ok(not set(nodes) & {p for p in children(service.process.pid)
                         if b"node" in open(f"/proc/{p}/cmdline", "rb").read()}, "in new nodes")


def left(root):
    found = sh("find", root, "-xdev", "-path", root + "/proc", "-prune", "-o", "-ipath",
               "*millrace*", "-not", "-path", "*/var/lib/millrace/*", "-print").stdout.split()
    return sorted(p[len(root):] for p in found)


def check_removal(system):
    root = system.root
    apt(root, "remove", "millrace")
    gone = [p for p in left(root) if p.startswith(("/usr", "/lib"))]
    equal(gone, [], "removed: nothing is left below /usr and /lib")
    ok(os.path.exists(root + "/etc/millrace/config.json"), "settings are kept")
    done = apt(root, "purge", "millrace")
    ok("/var/lib/millrace is kept; to remove it: rm -r /var/lib/millrace" in
       done.stdout + done.stderr, "purged: it says that the data is kept", done.stdout, done.stderr)
    note("left after purge: " + " ".join(left(root)))
    # The log of this test, the package that was copied in, and dpkg's own records apart.
    allowed = re.compile(r"/var/lib/millrace|/var/log/.*|/var/cache/.*")
    equal([p for p in left(root) if not allowed.fullmatch(p)], [], "nothing else is left")
    ok(os.path.isdir(root + "/var/lib/millrace/mariadb"), "the data is there")
    ok("millrace" in open(root + "/etc/passwd").read(), "so is the system user, its owner")


def main():
    why = missing("lintian", "systemd-analyze") or \
        (None if python() else "not installed: python3-seccomp; ./test slow installs it")
    if why:
        ok(False, f"the package cannot be tried here: {why}")
        finish()
    debian_12()
    package = build()
    check_form(package)
    newer = build("--revision", "2", "--binary", "build-package/millrace")
    system, service = System(), None
    try:
        system.install(package)
        check_installed(system)
        check_units(system.root)
        port = free_port()
        system.change_settings(listen=f"127.0.0.1:{port}", nodes=2, **SMALL)
        service = Service(system)
        if ok(service.wait_ready(), "it starts in the sandbox of its unit", service.log()):
            check_serving(system, service, port)
            check_upgrade(system, service, port, newer)
        equal(service.stop(), 0, "it stops", service.log())
        check_removal(system)
    finally:
        if service:
            service.stop()
        system.close()
    finish()


main()
