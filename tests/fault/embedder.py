"""The service for embeddings, and before it a port at which is noted what is asked for, and what is
answered: Redis and MySQL do not tell how often a text was embedded."""
import array
import base64
import binascii
import contextlib
import json
import math
import select
import socket
import threading
import time

from checks_papers import Call
from proxy import Forwarder
from stores import Sim

HEAD = b"\r\n\r\n"


def split(buffer):
    """The bodies of messages that are complete, and the rest."""
    bodies = []
    while (end := buffer.find(HEAD)) >= 0:
        head = buffer[:end].lower()
        length = 0
        for line in head.split(b"\r\n")[1:]:
            name, _, value = line.partition(b":")
            if name == b"content-length":
                length = int(value)
        if len(buffer) < end + len(HEAD) + length:
            break
        bodies.append((head.split(b"\r\n")[0], bytes(buffer[end + len(HEAD):][:length])))
        buffer = buffer[end + len(HEAD) + length:]
    return bodies, buffer


def numbers(vector):
    """None: it is no vector."""
    try:
        return array.array("f", base64.b64decode(vector, validate=True))
    except (ValueError, TypeError, binascii.Error):
        return None


def usable(texts, reply):
    """Those that it has a good vector for; none, if it lacks one, has one twice, or has vectors of
    several lengths: then nodes do not use it (embedding_reply.h)."""
    try:
        said = json.loads(reply)["data"]
        data = {d["index"]: numbers(d["embedding"]) for d in said}
    except (ValueError, KeyError, TypeError):
        return set()
    if len(said) != len(texts) or sorted(data) != list(range(len(texts))) or len(
            {len(v) for v in data.values() if v is not None}) > 1:
        return set()
    good = lambda v: v is not None and any(v) and all(map(math.isfinite, v))
    return {text for i, text in enumerate(texts) if good(data[i])}


class Front(Forwarder):
    """calls: those that have an end."""

    def __init__(self):
        super().__init__()
        self.calls, self.lock = [], threading.Lock()

    def open(self):
        """Again under the same port."""
        self.listener = socket.create_server(("127.0.0.1", self.port), backlog=1024)
        threading.Thread(target=self.accept, daemon=True).start()

    def close(self):
        with contextlib.suppress(OSError):  # it is closed
            self.listener.shutdown(socket.SHUT_RDWR)  # else accept() waits on, and the port is kept
        self.listener.close()

    def move(self, client, server):
        asked, said, open_ = b"", b"", []
        other = {client: server, server: client}
        try:
            while True:
                for s, data in self.received(client, server):
                    if not data:
                        return
                    if s is client:
                        bodies, asked = split(asked + data)
                        open_ += [(time.monotonic(), json.loads(b)["input"])
                                  for _, b in bodies if b]
                    other[s].sendall(data)
                    if s is server:
                        bodies, said = split(said + data)
                        self.note(open_, bodies)
        finally:
            self.note(open_, [(b"", b"")] * len(open_))

    def received(self, client, server):
        return [(s, s.recv(1 << 18)) for s in select.select([client, server], [], [])[0]]

    def note(self, open_, bodies):
        for status, body in bodies:
            if open_:
                sent, texts = open_.pop(0)
                good = usable(texts, body) if b" 200 " in status else set()
                with self.lock:
                    self.calls.append(Call(sent, time.monotonic(), texts, good))


class Embedder(Sim):
    """url: of the port before it, which is closed while the service is away. It speaks HTTP/1.1:
    calls can be told apart."""

    def __init__(self, *how, **options):
        super().__init__(*how, **options)
        self.args.append("--http1")
        self.front = Front()

    def start(self, *args):
        super().start(*args)
        self.front.to_port = self.port
        self.front.open()

    def stop(self):
        self.front.close()
        return super().stop()

    def __enter__(self):
        self.front.__enter__()
        self.front.close()
        self.start()
        self.url = f"http://127.0.0.1:{self.front.port}/v1"
        return self

    def __exit__(self, *exc):
        self.front.close()
        super().__exit__(*exc)

    def asked(self):
        with self.front.lock:
            return list(self.front.calls)
