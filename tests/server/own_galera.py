"""A Galera cluster of a test's own: three MariaDB on 127.0.0.1, with folders and
ports of their own.

The nodes begin with copies of one folder, and those that were killed come back with what they have
(wsrep_recover): each gets the rest from the others. None needs a transfer of everything, for which
Galera calls programs that no package but mariadb-server has (wsrep_sst_known)."""
import contextlib
import os
import re
import shutil
import signal
import subprocess

from harness import ROOT, SCALE, environment, folder, read, wait_for
from own_mysql import free_port

PROVIDER = "/usr/lib/galera/libgalera_smm.so"
SERVER = "/usr/sbin/mariadbd"
PASSWORD = "pass-word"
# As docs/operating.md advises: without these, commits stop for five seconds when a node is killed.
DETECTION = ("evs.keepalive_period=PT0.5S;evs.inactive_check_period=PT0.25S;"
             "evs.suspect_timeout=PT2S;evs.inactive_timeout=PT5S;evs.install_timeout=PT5S")

PATH = {"PATH": f"{os.path.dirname(os.path.abspath(__file__))}:{os.environ['PATH']}"}


class Unavailable(Exception):
    """Galera cannot be had here, and why."""


def available():
    for path in (PROVIDER, SERVER):
        if not os.path.exists(path):
            raise Unavailable(f"{path} is missing; ./test --only test_galera installs galera-4")
    for tool in ("mariadb", "mariadb-install-db"):
        if not shutil.which(tool):
            raise Unavailable(f"{tool} is not installed")


class Node:
    def __init__(self, cluster, name):
        self.cluster, self.name, self.dir = cluster, name, folder()
        self.data, self.socket = f"{self.dir}/data", f"{self.dir}/s"
        self.port, self.group_port, self.state_port = free_port(), free_port(), free_port()
        self.process = None

    def words(self):
        group = ",".join(f"127.0.0.1:{n.group_port}" for n in self.cluster.nodes)
        provider = (f"base_port={self.group_port};gmcast.listen_addr=tcp://127.0.0.1:"
                    f"{self.group_port};ist.recv_addr=127.0.0.1:{self.state_port};gcache.size=64M;"
                    + DETECTION)
        return [SERVER, "--no-defaults", *(["--user=root"] if ROOT else []),
                f"--datadir={self.data}", f"--socket={self.socket}", f"--port={self.port}",
                "--bind-address=127.0.0.1", f"--pid-file={self.dir}/pid", f"--tmpdir={self.dir}",
                "--innodb-buffer-pool-size=64M", "--max-connections=100", "--binlog-format=ROW",
                "--innodb-autoinc-lock-mode=2", "--wsrep-on=ON", f"--wsrep-provider={PROVIDER}",
                "--wsrep-cluster-name=millrace", f"--wsrep-cluster-address=gcomm://{group}",
                "--wsrep-node-address=127.0.0.1", f"--wsrep-node-name={self.name}",
                "--wsrep-sst-method=known",
                f"--wsrep-provider-options={provider}", *self.cluster.options]

    def log(self):
        return read(f"{self.dir}/log").decode("utf-8", "replace")

    def launch(self, *more):
        with open(f"{self.dir}/log", "a") as log:
            self.process = subprocess.Popen(self.words() + list(more), cwd=self.dir, stdout=log,
                                            stderr=log, stdin=subprocess.DEVNULL,
                                            env=environment(PATH))

    def ask(self, statement):
        """What it prints; None if it does not answer, or refuses."""
        try:
            done = subprocess.run(["mariadb", "--no-defaults", "-uroot", "-S", self.socket, "-N",
                                   "-B", "-e", statement], capture_output=True, text=True,
                                  timeout=60 * SCALE)
        except subprocess.TimeoutExpired:
            return None
        return None if done.returncode else done.stdout.strip()

    def status(self, name):
        said = self.ask(f"SHOW GLOBAL STATUS LIKE '{name}'")
        return said.split("\t")[1] if said else None

    def synced(self):
        return self.status("wsrep_local_state_comment") == "Synced"

    def wait_synced(self):
        up = wait_for(lambda: self.process.poll() is not None or self.synced(), 60)
        assert up and self.process.poll() is None, self.log()[-4000:]

    def kill(self):
        self.process.kill()
        self.process.wait()

    def freeze(self):
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)

    def recover(self):
        """Where a node that was killed stands: the cluster's number of its last transaction."""
        done = subprocess.run(self.words() + ["--wsrep-recover"], cwd=self.dir, text=True,
                              capture_output=True, timeout=120 * SCALE, env=environment())
        found = re.search(r"Recovered position: ?(\S+)", done.stderr + done.stdout)
        assert found, (done.stdout + done.stderr)[-3000:]
        return found[1]

    def start_again(self):
        self.launch(f"--wsrep-start-position={self.recover()}")
        self.wait_synced()

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(30 * SCALE)
            except subprocess.TimeoutExpired:
                self.kill()


class Galera:
    """Three nodes that agree; a database millrace, and a user that has this database alone."""

    database = "millrace"

    def __init__(self, *options):
        self.options = options
        self.nodes = []
        self.nodes = [Node(self, f"node{i}") for i in (1, 2, 3)]
        self.env = {"MILLRACE_MYSQL_URL": self.url(), "MILLRACE_MYSQL_PASSWORD": PASSWORD}

    def url(self, first=0):
        """With all nodes, that one first."""
        nodes = self.nodes[first:] + self.nodes[:first]
        hosts = ",".join(f"127.0.0.1:{n.port}" for n in nodes)
        return f"mysql://millrace@{hosts}/millrace"

    @property
    def socket(self):
        """Of a node that is up: what harness.sql asks."""
        return next(n.socket for n in self.nodes if n.process and n.process.poll() is None)

    def fill_first(self):
        first = self.nodes[0]
        made = subprocess.run(["mariadb-install-db", "--no-defaults", f"--datadir={first.data}",
                               "--auth-root-authentication-method=normal", "--skip-test-db",
                               *(["--user=root"] if ROOT else [])], capture_output=True,
                              text=True, timeout=120 * SCALE)
        assert made.returncode == 0, made.stdout + made.stderr
        first.launch("--wsrep-new-cluster")
        first.wait_synced()
        made = first.ask(f"CREATE USER millrace@'127.0.0.1' IDENTIFIED BY '{PASSWORD}';"
                         "GRANT ALL ON millrace.* TO millrace@'127.0.0.1';"
                         "CREATE DATABASE millrace")
        assert made is not None, first.log()[-2000:]
        first.stop()

    def __enter__(self):
        first = self.nodes[0]
        try:
            self.fill_first()
            for n in self.nodes[1:]:
                shutil.copytree(first.data, n.data, ignore=lambda _, names: {
                    name for name in names if name.startswith(("galera.cache", "gvwstate"))})
            first.launch("--wsrep-new-cluster")
            first.wait_synced()
            for n in self.nodes[1:]:
                n.launch()
                n.wait_synced()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for n in self.nodes:
            with contextlib.suppress(ProcessLookupError):
                n.stop()
