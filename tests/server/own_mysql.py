"""Oracle's MySQL of a test's own. Debian 12 has none, so its packages and all that they need are
unpacked into a folder below build-test/, once; mysqld is started there by the loader that came with
it, as a user without rights, on a socket and on 127.0.0.1. Nothing is installed.

MILLRACE_MYSQL_SOURCES: a file of lines as in apt's sources.list, to take another version than that
of Debian sid at this machine's mirror."""
import glob
import hashlib
import os
import pwd
import shutil
import signal
import socket as sockets
import subprocess

from harness import BIN, ROOT, SCALE, environment, folder, note, read, wait_for

PLACE = os.path.join(os.path.dirname(__file__), "../../build-test/mysql")
PACKAGE = "mysql-server-core"  # or its name with a version
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
NOBODY = "nobody"
LIMITS = ["--innodb-buffer-pool-size=64M", "--max-connections=100"]
PASSWORD = "pass-word"


class Unavailable(Exception):
    """MySQL cannot be had here, and why."""


# --- the program ---

def apt(program, top, *words):
    """An apt with sources, lists and cache of its own, for a system that has no package yet."""
    options = {"Dir::State": top, "Dir::State::status": f"{top}/status", "Dir::Cache": top,
               "Dir::Etc::sourcelist": f"{top}/sources.list", "Dir::Etc::sourceparts": "-",
               "APT::Sandbox::User": "", "Acquire::Languages": "none", "Acquire::Retries": "2"}
    done = subprocess.run([program, "-qq", *(f"-o{k}={v}" for k, v in options.items()), *words],
                          capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})
    if done.returncode:
        raise Unavailable(f"{program} {words[0]}: {(done.stderr or done.stdout).strip()[-500:]}")
    return done.stdout


def sources():
    """Lines for apt."""
    path = os.environ.get("MILLRACE_MYSQL_SOURCES")
    if path:
        with open(path) as f:
            return f.read()
    done = subprocess.run(["apt-get", "indextargets", "--format", "$(SITE)",
                           "Created-By: Packages", "Origin: Debian"], capture_output=True,
                          text=True)
    mirror = next(iter(done.stdout.split()), None)
    if not mirror:
        raise Unavailable('apt of this machine knows no mirror of Debian: run "apt-get update"')
    signed = f"[signed-by={KEYRING}] " if os.path.exists(KEYRING) else ""
    return f"deb {signed}{mirror} sid main\n"


def fetch(top, lines):
    for name in ("lists/partial", "archives/partial"):
        os.makedirs(f"{top}/{name}")
    with open(f"{top}/sources.list", "w") as f:
        f.write(lines)
    open(f"{top}/status", "w").close()
    apt("apt-get", top, "update")
    package = max(apt("apt-cache", top, "pkgnames", PACKAGE).split(), default=None)
    if not package:
        raise Unavailable(f"no package {PACKAGE} in: {lines.strip()}")
    note(f"MySQL is not in Debian 12: fetching {package} and what it needs, about 60 MB, and"
         f" unpacking it into build-test/mysql, 350 MB: {lines.strip()}")
    apt("apt-get", top, "install", "-y", "--no-install-recommends", "--download-only", package)
    return glob.glob(f"{top}/archives/*.deb")


def unpacked():
    """The folder that has it; made at the first call."""
    for tool in ("apt-get", "dpkg-deb", "mariadb"):
        if not shutil.which(tool):
            raise Unavailable(f"{tool} is not installed")
    lines = sources()
    root = f"{os.path.abspath(PLACE)}/{hashlib.sha256(lines.encode()).hexdigest()[:12]}"
    if os.path.exists(root):
        return root
    new = root + ".new"
    shutil.rmtree(new, ignore_errors=True)
    os.makedirs(new)
    for package in fetch(f"{new}/apt", lines):
        subprocess.run(["dpkg-deb", "-x", package, new], check=True)
    shutil.rmtree(f"{new}/apt")
    os.rename(new, root)
    return root


# --- a server ---

def free_port():
    with sockets.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class MySQL:
    """A server with a database and a user that has this database alone; tls: certificate and key,
    without which that user gets in by the socket only. A server that is killed can be started
    again, with its data or, after destroy(), without."""

    database = "millrace"

    def __init__(self, root, *options, tls=None, defaults=None):
        self.root, self.options, self.tls = root, options, tls
        self.defaults = [f"--defaults-file={defaults}"] if defaults else ["--no-defaults", *LIMITS]
        self.dir, self.port, self.process = folder(), free_port(), None
        self.socket = f"{self.dir}/s"
        self.env = {"MILLRACE_MYSQL_URL": f"unix:{self.socket}?user=millrace&database=millrace",
                    "MILLRACE_MYSQL_PASSWORD": PASSWORD}
        if ROOT:
            for path in (self.dir, *(tls or ())):
                os.chown(path, pwd.getpwnam(NOBODY).pw_uid, -1)

    def command(self, *words):
        usr = f"{self.root}/usr"
        loader = glob.glob(f"{usr}/lib/*/ld-linux-*.so.*")
        if not loader:
            raise Unavailable(f"{self.root} has no loader: remove it, and try again")
        return [loader[0], "--library-path", os.path.dirname(loader[0]), "--argv0", "mysqld",
                f"{usr}/sbin/mysqld", *self.defaults, *([f"--user={NOBODY}"] if ROOT else []),
                f"--basedir={usr}", f"--lc-messages-dir={usr}/share/mysql",
                f"--plugin-dir={usr}/lib/mysql/plugin", f"--datadir={self.dir}/data",
                f"--tmpdir={self.dir}", *words]

    def log(self):
        return read(f"{self.dir}/log").decode("utf-8", "replace")[-4000:]

    def launch(self, *words):
        with open(f"{self.dir}/log", "a") as log:
            return subprocess.Popen(self.command(*words), env=environment(), cwd=self.dir,
                                    stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def ask(self, statement):
        """What it prints; None if it does not answer, or refuses."""
        done = subprocess.run(["mariadb", "--no-defaults", "-uroot", "-S", self.socket, "-N", "-B",
                               "-e", statement], capture_output=True, text=True)
        return None if done.returncode else done.stdout.strip()

    def start(self):
        fresh = not os.path.exists(f"{self.dir}/data")
        if fresh:
            made = self.launch("--initialize-insecure").wait(120 * SCALE)
            assert made == 0, self.log()
        words = [f"--socket={self.socket}", f"--port={self.port}", "--bind-address=127.0.0.1",
                 f"--pid-file={self.dir}/pid", "--mysqlx=OFF", "--secure-file-priv=NULL",
                 *self.options]
        if self.tls:
            words += [f"--ssl-cert={self.tls[0]}", f"--ssl-key={self.tls[1]}"]
        self.process = self.launch(*words)
        up = wait_for(lambda: self.process.poll() is not None or self.ask("SELECT 1"), 120)
        assert up and self.process.poll() is None, self.log()
        if fresh:
            host = "127.0.0.1" if self.tls else "localhost"
            made = self.ask(f"CREATE USER millrace@'{host}' IDENTIFIED BY '{PASSWORD}'"
                            f"{' REQUIRE SSL' if self.tls else ''};"
                            f"GRANT ALL ON millrace.* TO millrace@'{host}';"
                            "CREATE DATABASE millrace")
            assert made is not None, self.log()
        return self

    def kill(self):
        self.process.kill()
        self.process.wait()

    def destroy(self):
        """As if its disk were gone."""
        self.kill()
        shutil.rmtree(f"{self.dir}/data")

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(60 * SCALE)
        except subprocess.TimeoutExpired:
            self.kill()


# --- one for many servers ---

class Lent:
    """A database on a MySQL that serves several tests. sample: the folder that was loaded."""

    sample = None

    def __init__(self, socket, database):
        self.socket, self.database = socket, database
        self.env = {"MILLRACE_MYSQL_URL": f"unix:{socket}?user=root&database={database}"}


def lent(socket, data, env):
    """The database of the server in folder data, with what a private one would have: the tables,
    and a sample."""
    mysql = Lent(socket, "mr_" + hashlib.sha256(data.encode()).hexdigest()[:12])
    env = {**env, **mysql.env, "MILLRACE_DATA_DIR": data}
    ask = lambda statement, *words: subprocess.run(
        ["mariadb", "--no-defaults", "-uroot", "-S", socket, "-N", *words, "-e", statement],
        check=True, capture_output=True, text=True).stdout
    ask(f"CREATE DATABASE IF NOT EXISTS {mysql.database}")
    tool = lambda *words: subprocess.run([BIN, *words], env=env, check=True, cwd=folder(),
                                         stdout=subprocess.DEVNULL)
    tool("db", "migrate")
    if env["MILLRACE_SAMPLE_PAPERS"] != "0" and not ask("SELECT 1 FROM paperinfo LIMIT 1",
                                                        mysql.database):
        top = mysql.sample = f"{folder()}/sample"
        tool("sample", "--papers", env["MILLRACE_SAMPLE_PAPERS"], "--seed", "1", top)
        tool("db", "init", "--data", top)
    return mysql
