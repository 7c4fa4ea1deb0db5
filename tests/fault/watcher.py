"""Looks at balances all the time: none may ever be below zero. And lets a restarted Redis give
permits at once."""
import subprocess
import threading
import time

from harness import redis_link, sql
from snapshot import cents


class Watcher(threading.Thread):
    def __init__(self, stores, uids):
        super().__init__(name="watcher")
        self.stores, self.uids = stores, uids
        self.lowest = {}  # (where, uid): cents
        self.looks = {"Redis": 0, "MySQL": 0}
        self.stopped = threading.Event()

    def _note(self, where, uid, value):
        self.lowest[where, uid] = min(value, self.lowest.get((where, uid), value))

    def _look_at_redis(self):
        link = redis_link(self.stores)
        for _ in range(10):
            for uid, value in zip(self.uids,
                                  link("MGET", *(f"user:{uid}:balance" for uid in self.uids))):
                if value is not None:
                    self._note("Redis", uid, int(value))
            self.looks["Redis"] += 1
            if self.stopped.wait(0.1):
                return

    def _look_at_mysql(self):
        for uid, value in sql(self.stores, "SELECT uid, balance FROM user_info"):
            self._note("MySQL", int(uid),
                       -cents(value[1:]) if value.startswith("-") else cents(value))
        self.looks["MySQL"] += 1

    def run(self):
        while not self.stopped.is_set():
            for look in (self._look_at_redis, self._look_at_mysql):
                try:
                    look()
                except (OSError, AssertionError, ValueError, subprocess.TimeoutExpired):
                    time.sleep(0.05)  # it is dead


RINGS = ("sys:keyring", "sys:keyring:service:embedding")


class Permits(threading.Thread):
    """After Redis was restarted, much of the limits of the AI's keys counts as used up, and all of
    it for a minute if it came back empty (SCR-9). That is right, has tests of its own, and here
    would leave little time to work in: so each time it is forgotten, once."""

    def __init__(self, stores):
        super().__init__(name="permits")
        self.stores, self.run_id = stores, None
        self.stopped = threading.Event()

    def _look(self):
        link = redis_link(self.stores)
        run_id = link("INFO", "server").split(b"run_id:")[1][:40]
        if run_id == self.run_id or any(link("HGET", ring, "run") != run_id for ring in RINGS):
            return run_id == self.run_id
        for ring in RINGS:
            link("HSET", ring, "since", 0)
        for i in link("KEYS", "sys:window:*"):
            link("DEL", i)
        self.run_id = run_id
        return True

    def look(self):
        """Whether it is done for the Redis of now."""
        try:
            return self._look()
        except (OSError, AssertionError, ValueError, IndexError):
            return False  # it is dead

    def run(self):
        while not self.stopped.wait(0.1):
            self.look()
