"""Programs that take items out of a pool, many at once, and what they were given."""
import asyncio
import json
import threading

HEADER_END = b"\r\n\r\n"


class Poppers:
    """As a context manager: clients that pop until the group is empty, or until the end.

    given: {id: times}; cut: items that a pop asked for that was not answered, or not surely."""

    def __init__(self, port, token, pool, clients=64, count=1, pause=0.0):
        self.port, self.pool, self.clients, self.count = port, pool, clients, count
        self.pause, self.token = pause, token
        self.given, self.cut, self.answers, self.statuses = {}, 0, 0, {}
        self.empty = threading.Event()
        self.stopping = False

    def __enter__(self):
        self.thread = threading.Thread(target=lambda: asyncio.run(self.run()))
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopping = True
        self.thread.join()

    @property
    def twice(self):
        return sum(n > 1 for n in self.given.values())

    async def run(self):
        await asyncio.gather(*(self.client() for _ in range(self.clients)))
        self.empty.set()

    async def client(self):
        link = None
        while not self.stopping and not self.empty.is_set():
            try:
                if not link:
                    link = await asyncio.wait_for(
                        asyncio.open_connection("127.0.0.1", self.port), 5)
            except (OSError, asyncio.TimeoutError):
                await asyncio.sleep(0.02)
                continue
            try:
                status, body = await asyncio.wait_for(self.ask(*link), 20)
            except (OSError, asyncio.IncompleteReadError, asyncio.TimeoutError):
                self.cut += self.count
                link[1].close()
                link = None
                continue
            self.note(status, body)
            if status == 409:
                break
            await asyncio.sleep(self.pause if status == 200 else 0.02)
        if link:
            link[1].close()

    async def ask(self, reader, writer):
        body = json.dumps({"count": self.count}).encode()
        writer.write((f"POST /api/pools/{self.pool}/pop HTTP/1.1\r\nHost: test\r\n"
                      f"Authorization: Bearer {self.token}\r\nContent-Type: application/json\r\n"
                      f"Content-Length: {len(body)}\r\n\r\n").encode() + body)
        head = (await reader.readuntil(HEADER_END)).decode().lower()
        length = int(head.split("content-length:")[1].split("\r\n")[0])
        return int(head.split()[1]), json.loads(await reader.readexactly(length))

    def note(self, status, body):
        self.statuses[status] = self.statuses.get(status, 0) + 1
        if status == 200:
            self.answers += 1
            for item in body["items"]:
                self.given[item["id"]] = self.given.get(item["id"], 0) + 1
        elif status not in (409, 503):  # those are surely not done
            self.cut += self.count
