"""Machines of a network of their own: each is a network namespace on one bridge, with a server of
two nodes; stores and the simulated AI have addresses of their own, so that a machine can be cut off
from each of them alone.

Namespaces, mounts and addresses belong to this process and its children: nothing is left, however
they end. Wants root, and the programs ip and nft."""
import ctypes
import glob
import json
import os
import shutil
import signal
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "server"), os.path.join(HERE, "..", "fault")]

import disk
from harness import Client, environment, folder, freeze, redis_link, sql, wait_for
from stores import Server, Sim, Stores

NEW_NET = 0x40000000  # CLONE_NEWNET
NET = "10.77.0"
REDIS, MYSQL, AI = (f"{NET}.{n}" for n in (10, 11, 12))
FAKETIME = glob.glob("/usr/lib/*/faketime/libfaketime.so.1")


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True)


def missing():
    """Why there can be no machines here; None: there can."""
    if os.geteuid() != 0:
        return "only root may make network namespaces"
    for program in ("ip", "nft"):
        if not shutil.which(program):
            return f"there is no program {program}"
    return None if FAKETIME else "there is no libfaketime"


def separate():
    """This process has a network of its own from now on."""
    if not disk.separate():
        return "mount namespaces cannot be made here"
    if ctypes.CDLL(None, use_errno=True).unshare(NEW_NET):
        return "network namespaces cannot be made here"
    os.makedirs("/run/netns", exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run/netns"], check=True)
    ip("link", "set", "lo", "up")
    # Without an address of its own it takes a port's, and another one when there are more ports:
    # what machines know of it would be wrong.
    ip("link", "add", "hub", "address", "02:00:00:00:00:fe", "type", "bridge")
    for address in (REDIS, MYSQL, AI, f"{NET}.254"):
        ip("address", "add", address + "/24", "dev", "hub")
    ip("link", "set", "hub", "up")
    return None


class NetStores(Stores):
    """Both stores at addresses of the network; the test itself asks them by their sockets."""

    def _command(self, pid, name):
        argv, program, where = super()._command(pid, name)
        argv = [a for a in argv if a != "--skip-networking"]
        argv += (["--bind", REDIS, "--port", "6379", "--protected-mode", "no"] if name == "redis"
                 else [f"--bind-address={MYSQL}", "--port=3306", "--skip-networking=0",
                       "--skip-name-resolve"])
        return argv, program, where

    def __enter__(self):
        super().__enter__()
        sql(self, f"CREATE USER millrace@'{NET}.%' IDENTIFIED BY '{self.secret('mariadb')}';"
                  f"GRANT ALL ON {self.database}.* TO millrace@'{NET}.%'")
        return self

    def settings(self):
        return {**self.by_socket(), "MILLRACE_REDIS_URL": f"redis://{REDIS}:6379",
                "MILLRACE_MYSQL_URL": f"mysql://millrace@{MYSQL}:3306/{self.database}"}


    def by_socket(self):
        return super().settings()


class NetSim(Sim):
    host, reached_at = "0.0.0.0", AI


class Machine(Server):
    """A server of two nodes in a namespace, with a clock of its own (clock: seconds that it is
    off)."""

    def __init__(self, number, stores, sim, clock=0, **settings):
        self.host, self.ns = f"{NET}.{number}", f"machine{number}"
        self.clock_file = os.path.join(folder(), "clock")
        self.set_clock(clock)
        super().__init__(stores, sim, MILLRACE_NODES="2", **settings)
        self.args = [a.replace("127.0.0.1", self.host) for a in self.args]
        self.env.update(LD_PRELOAD=FAKETIME[0], FAKETIME_TIMESTAMP_FILE=self.clock_file,
                        FAKETIME_NO_CACHE="1", FAKETIME_DONT_FAKE_MONOTONIC="1",
                        ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") +
                        ":verify_asan_link_order=0")
        ip("netns", "add", self.ns)
        ip("link", "add", f"port{number}", "type", "veth", "peer", "name", "eth0", "netns", self.ns)
        ip("link", "set", f"port{number}", "master", "hub", "up")
        for words in (("link", "set", "lo", "up"), ("link", "set", "eth0", "up"),
                      ("address", "add", self.host + "/24", "dev", "eth0")):
            ip("-n", self.ns, *words)

    def launch(self, **popen):
        binary, self.binary = self.binary, os.path.join(HERE, "in_machine")
        self.env.update(MACHINE=self.ns, MACHINE_BIN=binary)
        try:
            return super().launch(**popen)
        finally:
            self.binary = binary

    def get(self, path, **kw):
        c = Client(self.port, self.host)
        try:
            return c.request(path, **kw)
        finally:
            c.close()

    def set_clock(self, seconds):
        with open(self.clock_file + ".new", "w") as f:
            f.write(f"{seconds:+}s\n")
        os.rename(self.clock_file + ".new", self.clock_file)

    # --- what can happen to it ---

    def cut(self, peer=None, out=True, into=True):
        """Packets to a peer, from it, or both are lost; peer None: all of the network."""
        rules = [f"chain {name} {{ type filter hook {name} priority 0;"
                 f" {f'ip {side} {peer}' if peer else f'{card} eth0'} drop; }}"
                 for name, side, card, on in (("output", "daddr", "oifname", out),
                                              ("input", "saddr", "iifname", into)) if on]
        self._nft("table inet cut {\n" + "\n".join(rules) + "\n}")

    def mend(self):
        self._nft("delete table inet cut")

    def _nft(self, text):
        done = subprocess.run(["ip", "netns", "exec", self.ns, "nft", "-f", "/dev/stdin"],
                              input=text + "\n", text=True, capture_output=True)
        assert done.returncode == 0, done

    def pids(self):
        """The supervisor, and what it has started."""
        return [self.process.pid, *self.children("millrace ")]

    def freeze(self):
        for pid in self.pids():
            freeze(pid)

    def thaw(self):
        for pid in self.pids():
            os.kill(pid, signal.SIGCONT)

    def die(self):
        for pid in self.pids():
            os.kill(pid, signal.SIGKILL)
        self.process.wait()


def notes(stores):
    """{incarnation: note} of the nodes that live."""
    flat = redis_link(stores)("HGETALL", "sys:nodes:info")
    return {k.decode(): json.loads(v) for k, v in zip(flat[::2], flat[1::2])}


def incarnations(stores, machine):
    """Of a machine's nodes, by the ids of their processes."""
    pids = {str(p) for p in machine.nodes()}
    return {i for i, note in notes(stores).items() if note["name"].rpartition(":")[2] in pids}


def holds(stores, nodes):
    """How many units of runs these nodes have leased."""
    link = redis_link(stores)
    return sum(lease.decode().split(":")[0] in nodes for key in link("KEYS", "task:*:inflight")
               for lease in link("HVALS", key))


def works(stores, machine):
    """Each of its nodes has workers."""
    ours = incarnations(stores, machine)
    return len(ours) == 2 and all(notes(stores).get(i, {}).get("workers", 0) for i in ours)
