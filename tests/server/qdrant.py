"""A stand-in for a Qdrant server: collections, aliases, points and exact searches, in memory.

It knows the part of the REST API that millrace uses, by a table of its own (qdrant_api.py), and
compares with that each request that it gets and each reply that it gives; with the published
description of the API as well, if that lies beside the project. What does not fit is in `problems`.

    with Qdrant(api_key="secret") as server:
        server.fail("cut_after", 2, on="/points/delete")
        ... server.url, server.points("papers"), server.count("papers_1")
        assert not server.problems
"""
import http.server
import json
import math
import operator
import random
import socket
import ssl
import threading
import time
import traceback

import qdrant_api

FAULTS = ("slow", "500", "503", "429", "full", "cut_before", "cut_after", "half", "garbage", "huge",
          "deep", "queued")


class Refused(Exception):
    def __init__(self, status, words):
        super().__init__(words)
        self.status = status


class Collection:
    def __init__(self, size, model):
        self.size, self.model = size, model
        self.points, self.fields = {}, {}  # id: (unit vector, payload); name: type


def unit(vector):
    length = math.sqrt(sum(map(operator.mul, vector, vector)))
    return [x / length for x in vector] if length else vector


def missing(name):
    return Refused(404, f"Not found: Collection `{name}` doesn't exist!")


# --- filters ---

def listed(conditions):
    return conditions if isinstance(conditions, list) else [conditions]


def same(a, b):
    return type(a) is type(b) and a == b  # 1 is not true, nor "1"


class Matcher:
    """Lists become sets once, not for each point."""

    def __init__(self):
        self.sets = {}

    def among(self, items, value):
        kept = self.sets.setdefault(id(items), {(type(x), x) for x in items})
        return (type(value), value) in kept

    def field(self, condition, payload):
        values = payload.get(condition["key"])
        values = values if isinstance(values, list) else [values] if values is not None else []
        if "range" in condition:
            bounds = condition["range"]
            return any(all(getattr(operator, {"gte": "ge", "lte": "le"}.get(k, k))(v, bound)
                           for k, bound in bounds.items()) for v in values)
        match = condition["match"]
        if "any" in match:
            return any(self.among(match["any"], v) for v in values)
        return any(same(match["value"], v) for v in values)

    def condition(self, c, key, payload):
        if "has_id" in c:
            return self.among(c["has_id"], key)
        return self.field(c, payload) if "key" in c else self.all(c, key, payload)

    def all(self, conditions, key, payload):
        def holds(c):
            return self.condition(c, key, payload)
        return (all(map(holds, listed(conditions.get("must", []))))
                and not any(map(holds, listed(conditions.get("must_not", []))))
                and (not conditions.get("should")
                     or any(map(holds, listed(conditions["should"])))))


def fields_of(conditions):
    for kind in ("must", "must_not", "should"):
        for c in listed(conditions.get(kind, [])):
            if "key" in c:
                yield c["key"]
            elif "has_id" not in c:
                yield from fields_of(c)


# --- what it does ---

class Store:
    """What is kept, and one method for each operation of qdrant_api.OPERATIONS."""

    def __init__(self):
        self.collections, self.aliases, self.problems, self.operations = {}, {}, [], 0

    def find(self, name):
        found = self.collections.get(self.aliases.get(name, name))
        if found is None:
            raise missing(name)
        return found

    def chosen(self, c, conditions):
        for name in fields_of(conditions):
            if name not in c.fields:
                self.problems.append(f"a filter asks for {name}, which has no index")
        matcher = Matcher()
        return [key for key, (_, payload) in c.points.items()
                if matcher.all(conditions, key, payload)]

    def check_length(self, vector):
        """A real server adds up squares as floats: long vectors would overflow."""
        length = math.sqrt(sum(map(operator.mul, vector, vector)))
        if abs(length - 1) > 1e-6:
            self.problems.append(f"a vector of length {length}")

    def applied(self):
        self.operations += 1
        return {"operation_id": self.operations, "status": "completed"}

    def create(self, name, body):
        if name in self.collections or name in self.aliases:
            raise Refused(409, f"Wrong input: Collection `{name}` already exists!")
        size = body["vectors"]["size"]
        self.collections[name] = Collection(size, body.get("metadata", {}).get("model"))
        return True

    def delete(self, name, _):
        self.aliases = {a: c for a, c in self.aliases.items() if c != name}
        return self.collections.pop(name, None) is not None

    def info(self, name, _):
        c = self.find(name)
        config = {"params": {"vectors": {"size": c.size, "distance": "Cosine"}},
                  "hnsw_config": {"m": 16, "ef_construct": 100, "full_scan_threshold": 10000},
                  "optimizer_config": {"default_segment_number": 0, "flush_interval_sec": 5}}
        if c.model is not None:
            config["metadata"] = {"model": c.model}
        return {"status": "green", "optimizer_status": "ok", "segments_count": 1,
                "points_count": len(c.points), "indexed_vectors_count": 0, "config": config,
                "payload_schema": {name: {"data_type": kind, "points": len(c.points)}
                                   for name, kind in c.fields.items()}}

    def rename(self, _, body):
        after = dict(self.aliases)
        for action in body["actions"]:
            if "delete_alias" in action:
                after.pop(action["delete_alias"]["alias_name"], None)
                continue
            new = action["create_alias"]
            if new["collection_name"] not in self.collections:
                raise missing(new["collection_name"])
            if new["alias_name"] in self.collections:
                raise Refused(409, f"Wrong input: Collection `{new['alias_name']}` already exists!")
            after[new["alias_name"]] = new["collection_name"]
        self.aliases = after
        return True

    def index(self, name, body):
        self.find(name).fields[body["field_name"]] = body["field_schema"]
        return self.applied()

    def upsert(self, name, body):
        c = self.find(name)
        for p in body["points"]:
            if len(p["vector"]) != c.size:
                raise Refused(400, "Wrong input: Vector dimension error: expected dim: "
                                   f"{c.size}, got {len(p['vector'])}")
        for p in body["points"]:
            self.check_length(p["vector"])
            c.points[p["id"]] = unit(p["vector"]), p["payload"]
        return self.applied()

    def remove(self, name, body):
        c = self.find(name)
        for key in self.chosen(c, body["filter"]):
            del c.points[key]
        return self.applied()

    def payload(self, name, body):
        c = self.find(name)
        for key in self.chosen(c, body["filter"]):
            vector, payload = c.points[key]
            c.points[key] = vector, {**payload, **body["payload"]}
        return self.applied()

    def count(self, name, _):
        return {"count": len(self.find(name).points)}

    def query(self, name, body):
        c = self.find(name)
        if len(body["query"]) != c.size:
            raise Refused(400, "Wrong input: Vector dimension error: expected dim: "
                               f"{c.size}, got {len(body['query'])}")
        self.check_length(body["query"])
        wanted = unit(body["query"])
        scored = [(sum(map(operator.mul, wanted, c.points[key][0])), key)
                  for key in self.chosen(c, body.get("filter", {}))]
        scored.sort(reverse=True)
        return {"points": [{"id": key, "version": 1, "score": score,
                            "payload": {k: v for k, v in c.points[key][1].items()
                                        if k in body["with_payload"]}}
                           for score, key in scored[:body["limit"]]]}


# --- how it is asked ---

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def setup(self):
        super().setup()
        self.server.owner.open.add(self.connection)

    def finish(self):
        self.server.owner.open.discard(self.connection)
        super().finish()

    def cut(self):
        self.close_connection = True
        try:
            self.connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def send(self, status, data, kind="application/json", whole=True):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data if whole else data[:len(data) // 2])
        if not whole:
            self.cut()

    def answer(self, status, result, words=None):
        body = {"time": 0.001, "status": {"error": words} if words else "ok"}
        if not words:
            body.update(usage=None, result=result)
        return status, body

    def work(self, data):
        """Status and body of the reply; all of them are valid ones."""
        owner = self.server.owner
        path, _, query = self.path.partition("?")
        with owner.lock:
            operation, name = qdrant_api.find(self.command, path)
            if not operation:
                owner.problems.append(f"{self.command} {self.path}: there is no such operation")
                return 404, {}
            body = json.loads(data) if data else None
            wrong = qdrant_api.request_problems(operation, query, body)
            owner.problems += [f"{self.command} {self.path}: {w}" for w in wrong]
            if wrong:
                return self.answer(400, None, "Format error in JSON body: " + wrong[0])
            try:
                reply = self.answer(200, getattr(owner.store, operation.name)(name, body))
            except Refused as refusal:
                reply = self.answer(refusal.status, None, str(refusal))
            owner.problems += [f"reply of {self.command} {self.path}: {w}"
                               for w in qdrant_api.reply_problems(operation, *reply)]
            return reply

    def spoil(self, fault, data):
        """Whether a fault has seen to the request."""
        if fault in ("500", "503", "429"):
            self.send(*encoded(self.answer(int(fault), None, "Service internal error: a fault")))
        elif fault == "full":
            words = "Service internal error: No space left on device: WAL buffer size exceeds " \
                    "available disk space"
            self.send(*encoded(self.answer(500, None, words)))
        elif fault == "cut_before":
            self.cut()
        elif fault == "cut_after":
            self.work(data)
            self.cut()
        elif fault == "slow":  # it does what it gets in its order, and answers late
            reply = self.work(data)
            time.sleep(self.server.owner.slow_seconds)
            self.send(*encoded(reply))
        elif fault == "half":
            self.send(*encoded(self.work(data)), whole=False)
        elif fault in SPOILED:
            self.work(data)
            self.send(200, SPOILED[fault])
        else:
            return False
        return True

    def handle_any(self):
        owner = self.server.owner
        data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path.startswith("/stand-in/"):
            self.send(200, owner.told(self.path.split("/")[2:]))
            return
        owner.asked.append((self.command, self.path, len(data)))
        if owner.api_key and self.headers.get("api-key") != owner.api_key:
            self.send(401, b"Invalid API key or JWT", "text/plain")
            return
        fault = owner.next_fault(self.command + " " + self.path)
        if not self.spoil(fault, data):
            self.send(*encoded(self.work(data)))

    def handle_one(self):
        try:
            self.handle_any()
        except OSError:
            self.close_connection = True  # a client that has gone
        except Exception:
            self.server.owner.problems.append(traceback.format_exc())
            raise

    do_GET = do_PUT = do_POST = do_DELETE = handle_one


def encoded(reply):
    status, body = reply
    return status, json.dumps(body).encode()


SPOILED = {
    "garbage": b"<html>it works!</html>",
    "huge": b'{"status":"ok","result":"' + b"x" * (5 << 20) + b'"}',
    "deep": b'{"status":"ok","result":' + b"[" * 100000 + b"]" * 100000 + b"}",
    "queued": b'{"time":0,"status":"ok","result":{"operation_id":1,"status":"wait_timeout"}}',
}


class Qdrant:
    """tls: what sim.certificate() returns. port 0: any. After stop() it keeps what it has, and
    start() takes the same port."""

    def __init__(self, api_key="", port=0, tls=None):
        self.api_key, self.port, self.slow_seconds, self.tls = api_key, port, 1.0, tls
        self.lock, self.store = threading.Lock(), Store()
        self.problems = self.store.problems
        self.open = set()  # connections
        self.asked = []  # method, path, bytes of the body
        self.faults = []  # [name, how many times, part of "METHOD /path"]
        self.chance, self.kinds, self.random = 0.0, (), random.Random(1)

    def start(self):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self.server.daemon_threads, self.server.owner = True, self
        self.server.handle_error = lambda *_: None  # it is among the problems
        self.port = self.server.server_port
        self.url = f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"
        if self.tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*self.tls)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True,
                                                     do_handshake_on_connect=False)
        self.thread = threading.Thread(target=self.server.serve_forever,
                                       kwargs={"poll_interval": 0.02}, daemon=True)
        self.thread.start()
        return self

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(20)
        for connection in list(self.open):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    __enter__ = start

    def __exit__(self, *_):
        self.stop()

    def fail(self, fault, times=1, on=""):
        assert fault in FAULTS
        self.faults.append([fault, times, on])

    def fail_at_random(self, chance, seed, kinds=FAULTS):
        """Each request meets one of these faults with this chance; 0: none any more."""
        self.chance, self.kinds, self.random = chance, kinds, random.Random(seed)

    def next_fault(self, request):
        with self.lock:
            for fault in self.faults:
                if fault[1] > 0 and fault[2] in request:
                    fault[1] -= 1
                    return fault[0]
            if self.random.random() < self.chance:
                return self.random.choice(self.kinds)
        return None

    def told(self, words):
        """For programs that play with it: /stand-in/fail/503, /stand-in/mend, /stand-in/lose/NAME,
        /stand-in/names."""
        if words[0] == "fail":
            self.fail(words[1], 1000000)
        elif words[0] == "mend":
            self.faults.clear()
        elif words[0] == "lose":
            self.lose(words[1])
        with self.lock:
            return json.dumps({**{c: len(x.points) for c, x in self.store.collections.items()},
                               **self.store.aliases}, sort_keys=True).encode()

    def names(self):
        with self.lock:
            return sorted(self.store.collections)

    def points(self, name):
        """Payloads of a collection, or of what an alias means, by id."""
        with self.lock:
            return {key: dict(p[1]) for key, p in self.store.find(name).points.items()}

    def count(self, name):
        return len(self.points(name))

    def lose(self, name):
        """As if somebody had deleted it."""
        with self.lock:
            return self.store.delete(name, None)

    def requests(self, part):
        return sum(part in f"{method} {path}" for method, path, _ in self.asked)
