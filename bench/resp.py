"""A Redis client in a few lines, for benchmarks: Redis("/path/of/socket")("GET", "key")."""
import socket


class RedisError(Exception):
    pass


class Redis:
    def __init__(self, path, password=None):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.file = self.socket.makefile("rwb")
        if password:
            self("AUTH", password)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.file.close()
        self.socket.close()

    def send(self, *words):
        words = [w if isinstance(w, bytes) else str(w).encode() for w in words]
        self.file.write(b"*%d\r\n" % len(words) +
                        b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words))

    def read(self):
        line = self.file.readline()
        kind, rest = line[:1], line[1:-2]
        if kind == b"-" or not line:
            raise RedisError(rest.decode() or "the connection has ended")
        if kind == b"$":
            return None if rest == b"-1" else self.file.read(int(rest) + 2)[:-2]
        if kind == b"*":
            return [self.read() for _ in range(int(rest))]
        return int(rest) if kind == b":" else rest.decode()

    def __call__(self, *words):
        self.send(*words)
        self.file.flush()
        return self.read()

    def info(self, section):
        lines = self("INFO", section).decode().splitlines()
        return dict(line.split(":", 1) for line in lines if ":" in line)
