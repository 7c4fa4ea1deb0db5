"""Requests without pause, to find those that a restart drops."""
import concurrent.futures
import threading
import time

from harness import Client, note


class Load:
    """Requests without pause from several threads, on new and on kept connections. Who needs others
    has connect and ask of its own; number is that of the thread."""

    def __init__(self, port, threads=6):
        self.port, self.end = port, threading.Event()
        self.count, self.failures, self.longest = 0, [], 0
        self.lock = threading.Lock()
        self.pool = concurrent.futures.ThreadPoolExecutor(threads)
        self.jobs = [self.pool.submit(self.work, i, i % 2 == 0) for i in range(threads)]

    def connect(self, number):
        return Client(self.port)

    def ask(self, client, number):
        return client.request("/")

    def work(self, number, keep):
        client = None
        while not self.end.is_set():
            try:
                began = time.monotonic()
                client = client or self.connect(number)
                r = self.ask(client, number)
                with self.lock:
                    self.count += 1
                    self.longest = max(self.longest, time.monotonic() - began)
                    if r.status != 200:
                        self.failures.append(repr(r))
                if not keep or r.headers.get("connection") == "close":
                    client.close()
                    client = None
            except (OSError, ConnectionError) as e:
                self.failures.append(f"{'kept' if keep else 'new'} connection: {e!r}")
                client = None

    def stop(self):
        self.end.set()
        self.pool.shutdown()
        note(f"{self.count} requests, the longest took {self.longest:.2f} s")
        return self.count, self.failures
