"""A simulated AI of a test's own, that tells what was asked of it."""
import json
import subprocess

from harness import BIN, environment, folder, http


class Sim:
    def __init__(self, *args, port=0):
        self.args, self.port = args, port

    def __enter__(self):
        self.process = subprocess.Popen(
            [BIN, "sim", "--listen", f"127.0.0.1:{self.port}", "--seed", "1", *self.args],
            env=environment(), cwd=folder(), stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline().rsplit(":", 1)[1])
        self.url = f"http://127.0.0.1:{self.port}/v1"
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(20)

    def kill(self):
        self.process.kill()
        self.process.wait(20)

    def stats(self):
        return json.loads(http(self.port, "/stats").body)

    def reset(self):
        http(self.port, "/stats/reset", method="POST")
