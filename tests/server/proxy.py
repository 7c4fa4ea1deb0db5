"""An HTTP proxy of a test's own, and a forwarder: both slow on demand. Names lead to this
machine."""
import base64
import random
import select
import socket
import threading
import time


class Forwarder:
    """Passes connections on to a port of this machine, each after a wait of its own of up to
    wait_s: until then nothing of it is read. life_s: ends each connection after so long."""

    def __init__(self, port=0, wait_s=0.0, life_s=None):
        self.to_port, self.wait_s, self.life_s = port, wait_s, life_s
        self.random = random.Random(1)
        self.accepted = 0

    def __enter__(self):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.listener.close()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            self.accepted += 1
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        try:
            with client, self.connected(client) or client as server:
                if server is not client:
                    self.move(client, server)
        except OSError:
            pass

    def connected(self, client):
        time.sleep(self.random.uniform(0, self.wait_s))
        return socket.create_connection(("127.0.0.1", self.to_port), 10)

    def move(self, client, server):
        until = time.monotonic() + (self.life_s or 1e9)
        other = {client: server, server: client}
        while (left := until - time.monotonic()) > 0:
            for s in select.select([client, server], [], [], min(left, 60))[0]:
                data = s.recv(65536)
                if not data:
                    return
                other[s].sendall(data)


class Proxy(Forwarder):
    """Answers CONNECT after late_s, with refusal if it is not None, or else with a tunnel. login:
    "user:password" that it wants. seen: what it was asked, the last one last."""

    def __init__(self, login=None, late_s=0.0, refusal=None, **how):
        super().__init__(**how)
        self.login, self.late_s, self.refusal = login, late_s, refusal
        self.seen = []

    def url(self, login=""):
        return f"http://{login and login + '@'}127.0.0.1:{self.port}"

    def connected(self, client):
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            byte = client.recv(1)
            if not byte:
                return None
            head += byte
        self.seen.append(head.decode())
        wanted = self.login and base64.b64encode(self.login.encode()).decode()
        time.sleep(self.late_s)
        refusal = self.refusal
        if wanted and f"\r\nProxy-Authorization: Basic {wanted}\r\n" not in self.seen[-1]:
            refusal = "407 Proxy Authentication Required"
        if refusal:
            client.sendall(f"HTTP/1.1 {refusal}\r\nContent-Length: 0\r\n\r\n".encode())
            return None
        port = int(self.seen[-1].split()[1].rsplit(":", 1)[1])
        server = socket.create_connection(("127.0.0.1", port), 10)
        client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        return server
