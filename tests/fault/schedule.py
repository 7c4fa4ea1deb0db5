"""When what happens: all of it from a seed."""
import random
import threading
import time
import traceback
from dataclasses import dataclass

# kind: seconds between two, on average
FAULTS = {"node": 7, "freeze": 15, "supervisor": 30, "redis": 14, "older": 11, "mariadb": 18,
          "cut_redis": 9, "cut_mysql": 9, "stall_redis": 25, "stall_mariadb": 25, "ai": 25,
          "disk_redis": 35, "disk_mysql": 35, "pdf_child": 6, "embedding": 18, "index": 10}
DISK = ("disk_redis", "disk_mysql")  # need one that can be filled
ONCE = ("empty",)


@dataclass
class Fault:
    at: float  # seconds after the start
    kind: str
    a: float
    b: float


def make(seed, seconds, kinds=None, pace=1):
    """pace: so many times as often."""
    rng, found = random.Random(seed), []
    for kind, mean in FAULTS.items():
        mean /= pace
        at = rng.uniform(1, mean)
        while at < seconds:
            found.append(Fault(at, kind, rng.random(), rng.random()))
            at += mean * rng.uniform(0.5, 1.5)
    for kind in ONCE:
        found.append(Fault(seconds * rng.uniform(0.2, 0.7), kind, rng.random(), rng.random()))
    return sorted((f for f in found if not kinds or f.kind in kinds), key=lambda f: f.at)


class Events:
    """What happened, with the time; for whoever looks for the cause."""

    def __init__(self):
        self.began, self.lines, self.lock = time.time(), [], threading.Lock()

    def __call__(self, who, text):
        now = time.time()
        stamp = time.strftime("%H:%M:%S", time.gmtime(now)) + f".{int(now % 1 * 1000):03}"
        with self.lock:
            self.lines.append(f"{stamp} {now - self.began:6.2f} {who}: {text}")


class Chaos:
    """Carries the schedule out; each fault on a thread of its own."""

    def __init__(self, world, schedule, events):
        self.world, self.schedule, self.events = world, schedule, events
        self.problems, self.threads = [], []
        self.stopped = threading.Event()
        self.runner = threading.Thread(target=self._run)

    def start(self):
        self.began = time.monotonic()
        self.runner.start()

    def _run(self):
        for fault in self.schedule:
            if self.stopped.wait(max(0, self.began + fault.at - time.monotonic())):
                return
            thread = threading.Thread(target=self._do, args=(fault,))
            thread.start()
            self.threads.append(thread)

    def _do(self, fault):
        self.events(fault.kind, "begins")
        try:
            self.world.do(fault, lambda text: self.events(fault.kind, text))
        except Exception:
            self.problems.append(f"{fault}: {traceback.format_exc()}")

    def finish(self):
        """After this nothing is dead or frozen by our hand."""
        self.stopped.set()
        self.runner.join()
        for thread in self.threads:
            thread.join()
