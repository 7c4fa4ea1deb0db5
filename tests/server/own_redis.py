"""A Redis of a test's own, which a server or a command is told to use."""
import shutil
import socket
import subprocess

from harness import folder, wait_for

REDIS = shutil.which("redis-server") or shutil.which("redis-check-rdb")


class Redis:
    """One of the test's own, by a socket."""

    def __init__(self, *options):
        self.port = int(options[options.index("--port") + 1]) if "--port" in options else 0
        self.dir = folder()
        self.socket = f"{self.dir}/s"
        self.url = f"unix:{self.socket}"
        self.options = options

    def __enter__(self):
        self.process = subprocess.Popen(
            ["redis-server", "--port", "0", "--unixsocket", self.socket, "--dir", self.dir,
             *self.options], executable=REDIS, cwd=self.dir, stdout=subprocess.DEVNULL)
        assert wait_for(self.answers, 10)
        return self

    def answers(self):
        with socket.socket(socket.AF_UNIX) as s:
            return s.connect_ex(self.socket) == 0

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def ask(self, line):
        """The first line of the answer."""
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(self.socket)
            s.sendall(line.encode() + b"\r\n")
            return s.recv(100).decode().split("\r\n")[0]

    def say(self, line):
        assert self.ask(line) == "+OK", line
