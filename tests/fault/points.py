"""What the stores have of the points of a collection, and what the service makes of their texts."""
import base64
import json
import struct

from checks_posts import Chunk, by_post
from harness import Client, http, sql


def decoded(text):
    return base64.b64decode(text).decode()


def made(embedder, texts):
    """What the service makes of them, when it does nothing wrong any more."""
    body = json.dumps({"model": "default", "input": texts}).encode()
    r = http(embedder.port, "/v1/embeddings", method="POST", body=body,
             headers=["Content-Type: application/json", "Authorization: Bearer sk-1"])
    assert r.status == 200, r
    return [d["embedding"] for d in sorted(json.loads(r.body)["data"], key=lambda d: d["index"])]


def chunks(stores, embedder, collection):
    """{owner: [Chunk]}"""
    rows = [(int(owner), Chunk(int(space), int(part), int(version), decoded(text)),
             bytes.fromhex(vector)) for owner, space, part, version, text, vector in sql(
                 stores, "SELECT v.owner, v.space, v.part, v.version,"
                 " REPLACE(TO_BASE64(v.text), '\\n', ''), HEX(v.vector) FROM point_vector v"
                 " JOIN vector_space s ON s.number = v.space"
                 f" WHERE s.collection = '{collection}' ORDER BY v.owner, v.part")]
    for at in range(0, len(rows), 64):
        some = rows[at:at + 64]
        for (_, chunk, raw), want in zip(some, made(embedder, [c.text for _, c, _ in some])):
            got = struct.unpack(f"<{len(raw) // 4}f", raw)
            chunk.off = (max(abs(a - b) for a, b in zip(got, want)) if len(got) == len(want)
                         else 1.0)
    return by_post((owner, chunk) for owner, chunk, _ in rows)


def owners(stores, collection, words):
    """{table: owners that it has something of}; words: the table of words."""
    ask = {"point_vector": "SELECT DISTINCT v.owner FROM point_vector v JOIN vector_space s"
                           f" ON s.number = v.space WHERE s.collection = '{collection}'",
           "point_owner": f"SELECT owner FROM point_owner WHERE collection = '{collection}'",
           words: f"SELECT owner FROM {words}"}
    return {table: {int(i) for (i,) in sql(stores, statement)}
            for table, statement in ask.items()}


def space(stores, collection):
    """That searches use."""
    rows = sql(stores, f"SELECT number FROM vector_space WHERE collection = '{collection}'"
                       " AND active = 1 AND alive = 1")
    return int(rows[0][0]) if rows else 0


def store_rows(stores, collection):
    return [(place, int(number), int(applied), int(head), complete == "1")
            for place, number, applied, head, complete in sql(
                stores, "SELECT v.place, v.space, v.applied, c.number, v.cursor_owner IS NULL"
                " FROM vector_store v JOIN vector_space s ON s.number = v.space"
                " JOIN vector_collection c ON c.name = s.collection"
                f" WHERE s.collection = '{collection}' AND s.alive = 1")]


def store_points(stores, collection):
    return {int(number): int(count) for number, count in sql(
        stores, "SELECT v.space, COUNT(*) FROM point_vector v JOIN vector_space s"
        f" ON s.number = v.space WHERE s.collection = '{collection}' GROUP BY v.space")}


def counted(server, collection):
    """Points in the index of a server, by its metrics."""
    for line in http(server.port, "/metrics").body.decode().splitlines():
        if line.startswith(f'millrace_vectors_points{{collection="{collection}"'):
            return int(float(line.rpartition(" ")[2]))
    return None


class Eyes:
    """Someone who looks at one server, at the end."""

    def __init__(self, server, token):
        self.server, self.token = server, token

    def get(self, path):
        c = Client(self.server.port, timeout=20)
        try:
            r = c.request(path, headers=[f"Authorization: Bearer {self.token}"])
            return r.status, json.loads(r.body)
        finally:
            c.close()

    def search(self, path, reasons, what="id"):
        """Ids, or what else names them, of what is found."""
        status, body = self.get(path)
        if status not in (200, 404):
            reasons.add(f"{status} {body}")
        elif status == 200 and body["reason"]:
            reasons.add(body["reason"])
        return [h[what] for h in body.get("hits", [])]
