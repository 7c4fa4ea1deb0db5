"""A simulated AI of a test's own, that tells what was asked of it."""
import json
import subprocess

from harness import BIN, environment, folder, http


class Sim:
    def __init__(self, *args):
        self.args = args

    def __enter__(self):
        self.process = subprocess.Popen(
            [BIN, "sim", "--listen", "127.0.0.1:0", "--seed", "1", *self.args], env=environment(),
            cwd=folder(), stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline().rsplit(":", 1)[1])
        self.url = f"http://127.0.0.1:{self.port}/v1"
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(20)

    def stats(self):
        return json.loads(http(self.port, "/stats").body)

    def reset(self):
        http(self.port, "/stats/reset", method="POST")
