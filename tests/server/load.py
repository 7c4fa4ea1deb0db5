"""Requests without pause, to find those that a restart drops."""
import concurrent.futures
import threading

from harness import Client, note


class Load:
    """Requests without pause from several threads, on new and on kept connections."""

    def __init__(self, port, threads=6):
        self.port, self.end = port, threading.Event()
        self.count, self.failures = 0, []
        self.lock = threading.Lock()
        self.pool = concurrent.futures.ThreadPoolExecutor(threads)
        self.jobs = [self.pool.submit(self.work, i % 2 == 0) for i in range(threads)]

    def work(self, keep):
        client = None
        while not self.end.is_set():
            try:
                client = client or Client(self.port)
                r = client.request("/")
                with self.lock:
                    self.count += 1
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
        note(f"{self.count} requests")
        return self.count, self.failures
