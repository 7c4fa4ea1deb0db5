"""Queues of jobs: looked at all the time, each time as a whole; and paused for a while, again and
again, as admins do."""
import threading
import time

from admins import ADMIN_HASH, ADMIN_PASSWORD
from caller import Caller, Reply
from checks import Job, Queue
from harness import http, redis_link, sql

# name: key of those that wait
QUEUES = {"download": "download_queue", "plan": "jobs:plan", "extract": "jobs:extract",
          "embedding": "jobs:embedding", "papers": "jobs:papers"}
LOOK = """
local found = {redis.call('TIME')}
for i = 1, 6 do
    found[#found + 1] = redis.call('ZRANGE', KEYS[i], 0, -1, 'WITHSCORES')
end
for i = 7, 9 do
    found[#found + 1] = redis.call('HGETALL', KEYS[i])
end
found[#found + 1] = redis.call('XREVRANGE', KEYS[10], '+', '-', 'COUNT', 1)
found[#found + 1] = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
return found"""
PARTS = ("delays", "leases", "held", "probes", "aside", "info", "users", "state", "wake")


def keys(name):
    return [QUEUES[name], *(f"jobs:{name}:{part}" for part in PARTS)]


def pairs(flat):
    return {flat[i].decode(): flat[i + 1].decode() for i in range(0, len(flat), 2)}


def look(link, name):
    """A queue at one moment."""
    before = time.monotonic()
    found = link("EVAL", LOOK, 10, *keys(name))
    waiting, delays, leases, held, probes, aside, info, users, state = map(pairs, found[1:10])
    jobs = {i: Job(*(int(w) for w in text.split()[:6]), *text.split()[6:])
            for i, text in info.items()}
    return Queue(name, before, time.monotonic(), found[11].decode(),
                 {i: int(float(score)) for i, score in waiting.items()}, set(delays), set(leases),
                 {member[17:]: int(float(uid)) for member, uid in held.items()},
                 {int(uid) for uid in probes}, set(aside), jobs,
                 {int(u): int(n) for u, n in users.items()}, state, str(found[10]))


class QueueWatcher(threading.Thread):
    """samples: {queue: [Queue]}, without those that are empty and follow an empty one."""

    def __init__(self, stores, pause_s):
        super().__init__(name="queues")
        self.stores, self.pause_s = stores, pause_s
        self.samples = {name: [] for name in QUEUES}
        self.looks, self.stopped = 0, threading.Event()

    def _look(self):
        link = redis_link(self.stores)
        for _ in range(100):
            for name, seen in self.samples.items():
                q = look(link, name)
                if q.jobs or not seen or seen[-1].jobs:
                    seen.append(q)
            self.looks += 1
            if self.stopped.wait(self.pause_s):
                return

    def run(self):
        while not self.stopped.is_set():
            try:
                self._look()
            except (OSError, AssertionError, ValueError, IndexError):
                time.sleep(0.05)  # it is dead


class Admin(Caller):
    """Pauses a queue for a moment, so that jobs wait. paused: [queue, from when it surely was, to
    when; None: it still is]."""

    def __init__(self, world, seed, events, pause_s):
        super().__init__("admin", world, seed, events)
        self.pause_s, self.paused = pause_s, []

    def log_in(self):
        sql(self.world.stores, "INSERT INTO admin_info (username, username_folded, password, role)"
                               f" VALUES ('root', 'root', '{ADMIN_HASH}', 'super')")
        r = Reply(http(self.world.servers[0].port, "/api/admin/login", method="POST",
                       headers=["Content-Type: application/json"],
                       body=b'{"username": "root", "password": "%s"}' % ADMIN_PASSWORD.encode()))
        assert r.status == 200, r.body
        self.token = r.body["token"]

    def say(self, queue, what):
        """Whether that was acknowledged."""
        r = self.ask("POST", f"/api/admin/queues/{queue}/{what}", {})
        self.events(self.name, f"{what} {queue}: {r.status if r else None}")
        return r is not None and r.status == 200

    def run(self):
        while not self.stopped.wait(self.random.expovariate(1 / self.pause_s)):
            queue = self.random.choice(list(QUEUES))
            if self.say(queue, "pause"):
                self.paused.append([queue, time.monotonic(), None])
            self.stopped.wait(self.random.uniform(0.5, 2.5))
            self.resume(queue)

    def resume(self, queue):
        """Until it is sure."""
        for span in self.paused:
            span[2] = span[2] or time.monotonic()
        for _ in range(200):
            if self.say(queue, "resume"):
                return
            time.sleep(0.2)
        self.problem(f"{queue} cannot be resumed")


def empty(stores):
    """Whether nothing is left in any queue."""
    try:
        link = redis_link(stores)
        return not any(look(link, name).jobs for name in QUEUES)
    except OSError:
        return False
