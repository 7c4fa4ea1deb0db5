#!/usr/bin/env python3
"""The simulated AI as a whole program: what a client sees of it. Prints TAP. MILLRACE_BIN is the
program."""
import asyncio
import base64
import http.client
import json
import math
import os
import resource
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time
from types import SimpleNamespace

from harness import BIN, equal as same, folder, ok, run_tests, test
from screening import person, reaches, server, submit, view
from sim import certificate

PAPER = "Question: Which catalysts split water?\nTitle: %s\nAbstract: %s\nDOI: %s"


class Sim:
    """A running simulator; ends with the `with` block."""

    def __init__(self, *args, listen="127.0.0.1:0", ca=None):
        self.tls = ca and ssl.create_default_context(cafile=ca)
        self.process = subprocess.Popen([BIN, "sim", "--listen", listen, *map(str, args)],
                                        stdout=subprocess.PIPE, text=True)
        self.line = self.process.stdout.readline()
        self.url = self.line.split("://")[-1].strip()
        self.host, port = self.url.rsplit(":", 1)
        self.port = int(port)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(20)
        self.process.stdout.close()
        return status

    def connect(self):
        if self.tls:
            return http.client.HTTPSConnection(self.host, self.port, timeout=30, context=self.tls)
        return http.client.HTTPConnection(self.host.strip("[]"), self.port, timeout=30)

    def send(self, method, path, body=None, key="test", connection=None):
        """(status, headers, text) of one exchange."""
        c = connection or self.connect()
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        if body is not None and not isinstance(body, (str, bytes)):
            body = json.dumps(body)
        c.request(method, path, body, headers)
        r = c.getresponse()
        text = r.read().decode()
        if not connection:
            c.close()
        return r.status, r.headers, text

    def chat(self, text, key="test", connection=None, **more):
        body = {"model": "m", "messages": [{"role": "user", "content": text}], **more}
        return self.send("POST", "/v1/chat/completions", body, key, connection)

    def content(self, text, **more):
        return json.loads(self.chat(text, **more)[2])["choices"][0]["message"]["content"]

    def relevant(self, title, abstract="", doi="10.1/x"):
        return json.loads(self.content(PAPER % (title, abstract, doi)))["relevant"]

    def embed(self, texts, **more):
        status, _, text = self.send("POST", "/v1/embeddings",
                                    {"model": "e", "input": texts} | more)
        return status, json.loads(text)

    def stats(self):
        return json.loads(self.send("GET", "/stats", key=None)[2])

    def settled(self, field, want):
        """The stats once field has the value, or after a while."""
        for _ in range(100):
            stats = self.stats()
            if stats[field] == want:
                break
            time.sleep(0.05)
        return stats


def error_of(reply):
    status, _, text = reply
    return status, set(json.loads(text)["error"]) >= {"message", "type", "code"}


def run(*args):
    return subprocess.run([BIN, "sim", *args], capture_output=True, text=True, timeout=20)


def said(r):
    return (r.stderr.splitlines() or [""])[0][:80]


def test_command_line():
    help_text = run("--help")
    same(help_text.returncode, 0, "--help succeeds")
    ok("--latency-ms" in help_text.stdout and "millrace sim --listen" in help_text.stdout,
       "it lists the options and gives examples")
    for args, part in [([], "--listen"), (["--listen", "x", "--fail", "2"], "--fail"),
                       (["--listen", "x", "--bogus"], "bogus"),
                       (["--listen", "nowhere"], "nowhere"),
                       (["--listen", "127.0.0.1:99999"], "99999"),
                       (["--listen", "127.0.0.1:0", "--fail-kinds", "429,fire"], "fire")]:
        r = run(*args)
        ok(r.returncode == 2 and part in r.stderr, f"wrong command line {args}: {said(r)}")
    r = run("--listen", "127.0.0.1:0", "--labels", "/nonexistent")
    ok(r.returncode == 1 and "/nonexistent" in r.stderr, f"a missing file: {said(r)}")
    with Sim() as s:
        same(s.line, f"millrace sim listens at http://127.0.0.1:{s.port}\n",
             "it says where it listens")
        r = run("--listen", s.url)
        ok(r.returncode == 1 and "in use" in r.stderr, "a port that is taken is said to be")
    with Sim(listen="[::1]:0") as s:
        same(s.send("GET", "/healthz")[0], 200, "IPv6 works as well")


def test_verdicts():
    with Sim() as s:
        c = s.connect()
        status, headers, text = s.chat(PAPER % ("Nickel catalysts", "x", "10.1/a"), connection=c)
        reply = json.loads(text)
        same((status, headers["Content-Type"]), (200, "application/json"),
             "a verdict is a JSON reply")
        same((reply["object"], reply["model"], reply["choices"][0]["finish_reason"]),
             ("chat.completion", "m", "stop"), "in OpenAI's form")
        verdict = json.loads(reply["choices"][0]["message"]["content"])
        ok(verdict["relevant"] is True and "catalysts" in verdict["reason"],
           "relevant, by the word it names")
        usage = reply["usage"]
        prompt = PAPER % ("Nickel catalysts", "x", "10.1/a")
        same(usage["prompt_tokens"], math.ceil(len(prompt) / 4), "four characters to a token")
        same(usage["total_tokens"], usage["prompt_tokens"] + usage["completion_tokens"],
             "usage adds up")
        again = json.loads(s.chat(prompt, connection=c)[2])
        same(again["choices"], reply["choices"], "the same prompt gets the same answer")
        ok(s.relevant("Heating", "How WATER, when heated, boils"), "case and signs do not matter")
        ok(not s.relevant("Catalyst", "watery splits; the end"), "a word is a whole word")
        chinese = "问题：石墨烯电池\n标题：新型电池\n摘要：无"
        ok(json.loads(s.content(chinese))["relevant"], "Chinese by pairs")
        system = {"role": "system", "content": "Judge.\nQuestion: Which catalysts split water?"}
        user = {"role": "user", "content": "Title: On water"}
        r = s.send("POST", "/v1/chat/completions", {"model": "m", "messages": [system, user]})
        ok(json.loads(json.loads(r[2])["choices"][0]["message"]["content"])["relevant"],
           "the question may stand in the system message")
        same(s.content("Hello"), "You asked: Hello", "anything else is echoed")
        c.close()


def test_refusals():
    with Sim() as s:
        same(error_of(s.chat("x", key=None)), (401, True), "no key")
        for body in ["", "{", "[]", "{}", '{"model": "m"}', '{"model": "m", "messages": []}',
                     '{"model": "m", "messages": [{"role": "user"}]}', b"\xff\xfe"]:
            same(error_of(s.send("POST", "/v1/chat/completions", body)), (400, True),
                 f"malformed: {body!r}")
        same(s.send("GET", "/v1/chat/completions")[0], 405, "only POST")
        same(s.send("GET", "/v1/nothing")[0], 404, "no such route")
        c = s.connect()
        c.putrequest("POST", "/v1/chat/completions")
        c.putheader("Authorization", "Bearer test")
        c.putheader("Content-Length", str(9 << 20))
        c.endheaders()
        same(c.getresponse().status, 413, "too large")
        c.close()
        stats = s.stats()
        same((stats["outcomes"]["unauthorized"], stats["outcomes"]["invalid"]), (1, 8),
             "all but the largest, which nobody read, are counted")
        ok(any(m["id"] for m in json.loads(s.send("GET", "/v1/models")[2])["data"]),
           "models are listed")


def test_stream():
    with Sim() as s:
        text = PAPER % ("Water", "x", "10.1/a")
        status, headers, body = s.chat(text, stream=True, stream_options={"include_usage": True})
        events = [e[6:] for e in body.split("\n\n") if e]
        same((status, headers["Content-Type"], events[-1]), (200, "text/event-stream", "[DONE]"),
             "a stream")
        chunks = [json.loads(e) for e in events[:-1]]
        content = "".join(
            c["choices"][0]["delta"].get("content", "") for c in chunks if c["choices"])
        same(content, s.content(text), "its pieces are the same answer")
        same([c["choices"] for c in chunks if "usage" in c], [[]], "usage comes once, alone")
        ok("usage" not in s.chat(text, stream=True)[2], "and only if asked for")
        short = json.loads(s.chat(text, max_tokens=2)[2])["choices"][0]
        same((short["finish_reason"], len(short["message"]["content"])), ("length", 8),
             "max_tokens cuts short")


def cosine(a, b):
    return sum(x * y for x, y in zip(a, b))


PLAN = "Make a plan.\n\nPlan: %s\nStart date: 2026-02-23\nWeeks: 2\n"


def test_plans():
    with Sim("--latency-ms", 800) as s:
        for kind, item in (("training", "exercises"), ("nutrition", "meals")):
            plan = json.loads(s.content(PLAN % kind))
            same([d["date"] for d in plan["days"]][:7:6], ["2026-02-23", "2026-03-01"],
                 f"a {kind} plan by the day")
            ok(len(plan["days"]) == 14 and item in plan["days"][0], f"of {item}")
        body = {"model": "m", "stream": True,
                "messages": [{"role": "user", "content": PLAN % "nutrition"}]}
        c = s.connect()
        began = time.monotonic()
        c.request("POST", "/v1/chat/completions", json.dumps(body), {"Authorization": "Bearer x"})
        r = c.getresponse()
        r.read(2000)
        first = time.monotonic() - began
        r.read()
        whole = time.monotonic() - began
        c.close()
        ok(first < 0.6 * whole and whole >= 0.75,
           f"a stream is spread over the latency: {first:.2f} s of {whole:.2f} s")
    wrong = PLAN % "training"
    again = [{"role": "user", "content": wrong}, {"role": "assistant", "content": "?"},
             {"role": "user", "content": "the answer has no JSON object"}]

    def answer(s, messages):
        body = {"model": "m", "messages": messages}
        reply = json.loads(s.send("POST", "/v1/chat/completions", body)[2])
        return reply["choices"][0]["message"]["content"]

    with Sim() as s:
        right = s.content(wrong)
    with Sim("--plan-fault", 1) as s:
        ok(s.content(wrong) != right, "a wrong plan")
        same(s.content(wrong), s.content(wrong), "wrong in the same way")
        same(answer(s, again), right, "right after a complaint")
    with Sim("--plan-fault", 1, "--plan-fault-stays") as s:
        ok(answer(s, again) != right, "or wrong for ever")
    for args in (("--plan-fault", "1.5"), ("--plan-fault-stays",)):
        r = run("--listen", "127.0.0.1:0", *args)
        same(r.returncode, 2, f"refused: {said(r)}")


FIELDS = ('Extract: fields\n{"name": "dose", "type": "number", "required": true}\n'
          '{"name": "drugs", "type": "list", "of": "text"}\n\nAnswer with JSON.')
DOCUMENT = "<<<DOCUMENT\nThe dose was 5.2 mg. Drugs: aspirin, water.\nDOCUMENT<<<"


def extracted(s, text=DOCUMENT, **more):
    body = {"model": "m", "messages": [{"role": "system", "content": FIELDS},
                                       {"role": "user", "content": text}], **more}
    reply = json.loads(s.send("POST", "/v1/chat/completions", body)[2])
    return reply["choices"][0]["message"]["content"]


def test_extractions():
    quote = "Drugs: aspirin, water"
    right = {"dose": {"value": "5.2 mg", "quote": "The dose was 5.2 mg"},
             "drugs": [{"value": "aspirin", "quote": quote}, {"value": "water", "quote": quote}]}
    complained = DOCUMENT + "\n\nComplaint: it is wrong"
    with Sim() as s:
        same(json.loads(extracted(s)), right, "values and quotes by the rule")
        typed = json.loads(extracted(s, response_format={"type": "json_schema"}))
        same(typed["dose"]["value"], 5.2, "typed where a schema is asked for")
        same(json.loads(extracted(s, complained)), right, "a complaint changes nothing")
    for kind in ("types", "missing", "quotes", "prose"):
        with Sim("--extract-fault", 1, "--extract-fault-kinds", kind) as s:
            wrong = extracted(s)
            ok(wrong != json.dumps(right) and wrong == extracted(s), f"{kind}: {wrong[:60]}")
            same(json.loads(extracted(s, complained)), right, "right after a complaint")
    with Sim("--extract-fault", 1, "--extract-fault-kinds", "types", "--extract-fault-stays") as s:
        ok("5.2" not in extracted(s, complained), "or wrong for ever")
    for args in (("--extract-fault", "1.5"), ("--extract-fault-stays",),
                 ("--extract-fault-kinds", "types"),
                 ("--extract-fault", "1", "--extract-fault-kinds", "typos")):
        r = run("--listen", "127.0.0.1:0", *args)
        same(r.returncode, 2, f"refused: {said(r)}")


def test_embeddings():
    with Sim() as s:
        texts = ["nickel catalysts split water", "water split by nickel", "medieval trade routes"]
        status, reply = s.embed(texts)
        a, b, c = (d["embedding"] for d in reply["data"])
        same((status, reply["object"], len(a), [d["index"] for d in reply["data"]]),
             (200, "list", 256, [0, 1, 2]), "three vectors of 256")
        ok(all(abs(cosine(v, v) - 1) < 1e-4 for v in (a, b, c)), "of length one")
        ok(cosine(a, b) > 0.5 > 0.3 > abs(cosine(a, c)), "shared words are nearness")
        same(reply["usage"]["total_tokens"], sum(math.ceil(len(t) / 4) for t in texts), "tokens")
        packed = s.embed(texts[0], encoding_format="base64")[1]["data"][0]["embedding"]
        floats = struct.unpack("<256f", base64.b64decode(packed))
        ok(max(abs(x - y) for x, y in zip(a, floats)) < 1e-6, "base64 holds the same numbers")
        same(len(s.embed("x", dimensions=4096)[1]["data"][0]["embedding"]), 4096,
             "dimensions are honoured")
        same(len(s.embed("x", model="m-768")[1]["data"][0]["embedding"]), 768,
             "or follow from the model's name")
        same(s.embed("x" * 32768)[0], 200, "8,192 tokens are taken")
        for more in [{"dimensions": 0}, {"dimensions": 4097}, {"encoding_format": "hex"}]:
            same(s.embed("x", **more)[0], 400, f"refused: {more}")
        for bad in ["", [], [1, 2], ["a", ""], None, ["x"] * 2049, "x" * 32769]:
            status, reply = s.embed(bad)
            same((status, reply["error"]["type"]), (400, "invalid_request_error"),
                 f"refused: {str(bad)[:20]}")


def test_embedding_faults():
    texts = ["water", "nickel", "mice"]

    def entries(s):
        return json.loads(s.send("POST", "/v1/embeddings", {"model": "e", "input": texts})[2],
                          parse_constant=lambda name: name)["data"]

    with Sim() as s:
        right = entries(s)
    for kind, wrong in [("length", lambda d: {len(e["embedding"]) for e in d} == {255, 256}),
                        ("missing", lambda d: len(d) == 2),
                        ("twice", lambda d: len({e["index"] for e in d}) == 2),
                        ("null", lambda d: sum(None in e["embedding"] for e in d) == 1),
                        ("nan", lambda d: sum("NaN" in e["embedding"] for e in d) == 1),
                        ("zero", lambda d: sum(not any(e["embedding"]) for e in d) == 1)]:
        with Sim("--embed-fault", 1, "--embed-fault-kinds", kind) as s:
            got = entries(s)
            ok(wrong(got), f"{kind}: as it says", str(got)[:200])
    with Sim("--embed-fault", 1, "--embed-fault-kinds", "order", "--seed", 3) as s:
        got = [entries(s) for _ in range(8)]
        ok(any(g != right for g in got), "another order")
        ok(all(sorted(g, key=lambda e: e["index"]) == right for g in got), "of right vectors")
    with Sim("--embed-fault", 0.5, "--seed", 5) as s:
        fine = sum(entries(s) == right for _ in range(40))
        ok(10 <= fine <= 35, f"about half of the replies are right ({fine} of 40)")
    with Sim("--fail", 1, "--fail-kinds", "429,500,503", "--seed", 1) as s:
        got = {s.send("POST", "/v1/embeddings", {"model": "e", "input": "x"})[0]
               for _ in range(20)}
        same(got, {429, 500, 503}, "faults of all requests are those of embeddings, too")
    for args in (("--embed-fault", "1.5"), ("--embed-fault-kinds", "null"),
                 ("--embed-fault", "1", "--embed-fault-kinds", "nil")):
        r = run("--listen", "127.0.0.1:0", *args)
        same(r.returncode, 2, f"refused: {said(r)}")


def test_files():
    with tempfile.TemporaryDirectory() as folder:
        labels, keys = f"{folder}/labels.csv", f"{folder}/keys.txt"
        with open(labels, "w") as f:
            f.write("doi,relevant\n10.1/YES,1\n10.1/no,0\n")
        with open(keys, "w") as f:
            f.write("sk-one\r\nsk-two\n")
        with Sim("--labels", labels, "--keys", keys) as s:
            same(error_of(s.chat("x", key="sk-three")), (401, True), "an unknown key is refused")
            reply = json.loads(s.chat(PAPER % ("Water", "", "10.1/no"), key="sk-one")[2])
            ok('"relevant": false' in reply["choices"][0]["message"]["content"],
               "a label outranks the words")
            reply = json.loads(s.chat("DOI: 10.1/yes", key="sk-two")[2])
            ok('"relevant": true' in reply["choices"][0]["message"]["content"],
               "and needs no words")
        with open(labels, "a") as f:
            f.write("10.1/maybe,?\n")
        r = run("--listen", "127.0.0.1:0", "--labels", labels)
        ok(r.returncode == 1 and "line 4" in r.stderr, "a wrong label is named by its line")


def test_limits():
    with Sim("--rate-limit", 5) as s:
        statuses = [s.chat("hi", key="a")[0] for _ in range(5)]
        status, headers, text = s.chat("hi", key="a")
        same((statuses, status), ([200] * 5, 429), "five in a minute and no more")
        ok(50 <= int(headers["Retry-After"]) <= 60,
           "Retry-After is when the first one leaves the window")
        same(json.loads(text)["error"]["code"], "rate_limit_exceeded", "with its code")
        same(s.chat("hi", key="b")[0], 200, "another key has its own window")
        keys = {k["key"]: k for k in s.stats()["keys"]}
        same((keys["a"]["requests"], keys["a"]["limited"], keys["a"]["requests_60s_max"],
              keys["a"]["granted_60s_max"]), (6, 1, 6, 5), "the stats tell arrivals from grants")
        s.chat("hi", key="sk-0123456789abcdefghijklmnop")
        ok("sk-0…op" in {k["key"] for k in s.stats()["keys"]}, "what may be a real key is masked")
        reset = json.loads(s.send("POST", "/stats/reset")[2])
        same((reset["requests"], reset["keys"][0]["requests_60s_max"]), (0, 0),
             "stats can begin anew")
        same(s.chat("hi", key="a")[0], 429, "the limit does not")
    with Sim("--tokens-limit", 100) as s:
        first = json.loads(s.chat("x" * 160)[2])["usage"]["total_tokens"]
        status, headers, _ = s.chat("x" * 160)
        ok(first < 100 and status == 429 and int(headers["Retry-After"]) >= 1,
           "tokens have a window too")
        same(s.chat("hi")[0], 200, "what is small enough still fits")
        ok(s.stats()["keys"][0]["tokens_60s_max"] <= 100, "no window held more")


def outcome(s, text=PAPER % ("Water", "", "10.1/x")):
    """What a client makes of a reply, and how long it took."""
    began = time.monotonic()
    try:
        status, headers, body = s.chat(text)
        if status != 200:
            got = f"{status} {headers['Retry-After'] or ''}".strip()
        else:
            got = json.loads(body)["choices"][0]["message"]["content"]
    except http.client.RemoteDisconnected:
        got = "cut before"
    except http.client.IncompleteRead:
        got = "cut within"
    except ssl.SSLEOFError:
        got = "ssl"
    except ValueError:
        got = "garbage"
    return got, time.monotonic() - began


def test_faults():
    def with_kind(kind, *more):
        return Sim("--fail", 1, "--fail-kinds", kind, "--seed", 7, *more)

    with Sim() as s:
        right = outcome(s)[0]
    for kind, want in [("429", "429 3"), ("500", "500"), ("503", "503"), ("garbage", "garbage")]:
        with with_kind(kind, "--retry-after", 3) as s:
            same({outcome(s)[0] for _ in range(4)}, {want}, f"{kind} is {want}")
            same(s.stats()["faults"][kind], 4, "and is counted")
    with with_kind("cut") as s:
        same({outcome(s)[0] for _ in range(12)}, {"cut before", "cut within"},
             "cut, in both places")
    with with_kind("timeout", "--stall-ms", 700) as s:
        got, took = outcome(s)
        ok(got == "cut before" and 0.7 <= took < 5, f"a timeout stalls and is cut ({took:.2f} s)")
    with with_kind("trickle") as s:
        got, took = outcome(s)
        ok(got == right and took > 0.5, f"trickling takes its time and is right ({took:.2f} s)")
    with with_kind("fenced") as s:
        all_got = {outcome(s)[0] for _ in range(12)}
        ok(len(all_got) == 2 and all(right in g and g != right for g in all_got),
           "fenced, still readable")
    with with_kind("unreadable") as s:
        ok("{" not in outcome(s)[0], "unreadable")
    with with_kind("cut") as s:
        try:
            s.chat("x", stream=True)
            ok(False, "a stream is cut as well")
        except (http.client.RemoteDisconnected, http.client.IncompleteRead):
            ok(True, "a stream is cut as well")


def test_seed():
    def sequence(seed):
        kinds = "429,500,503,cut,garbage,fenced,unreadable"
        with Sim("--fail", 0.5, "--fail-kinds", kinds, "--seed", seed) as s:
            got = [outcome(s)[0] for _ in range(60)]
            stats = s.settled("in_flight", 0)
        same(sum(stats["outcomes"].values()), 60, "every request has one outcome")
        same(sum(stats["faults"].values()), stats["outcomes"]["fault"], "every fault its kind")
        return got

    one, again, other = sequence(1), sequence(1), sequence(2)
    same(again, one, "the same seed goes the same way")
    ok(other != one, "another seed does not")


def test_latency():
    with Sim("--latency-ms", 300, "--jitter-ms", 100) as s:
        took = sorted(outcome(s)[1] for _ in range(5))
        ok(0.3 <= took[0] and took[-1] < 5,
           f"latency and jitter ({took[0]:.2f} to {took[-1]:.2f} s)")
        impatient = socket.create_connection((s.host, s.port))
        body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "x"}]})
        impatient.sendall(
            f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer k\r\n"
            f"Content-Length: {len(body)}\r\n\r\n{body}".encode())
        s.settled("in_flight", 1)
        impatient.close()
        stats = s.settled("in_flight", 0)
        same(stats["outcomes"]["gone"], 1, "who hangs up is no longer in flight")


async def crowd(s, n, patience):
    """Sends a request on each of n connections at the same time; how many were answered."""
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "x"}]})
    head = (f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer k\r\n"
            f"Content-Length: {len(body)}\r\n\r\n").encode()

    async def one():
        reader, writer = await asyncio.open_connection(s.host, s.port)
        writer.write(head + body.encode())
        line = await reader.readline()
        writer.close()
        return line.startswith(b"HTTP/1.1 200")

    return sum(await asyncio.wait_for(asyncio.gather(*(one() for _ in range(n))), patience))


def test_crowd():
    n = 2000
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with Sim("--latency-ms", 2000) as s:
        began = time.monotonic()
        answered = asyncio.run(crowd(s, n, 60))
        same(answered, n,
             f"{n} connections at once are all answered ({time.monotonic() - began:.1f} s)")
        ok(s.stats()["in_flight_peak"] > n / 2, "they were in flight together")
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def greeting(s):
    """What the server says to the preface of HTTP/2 and settings without a setting."""
    with socket.create_connection((s.host, s.port), timeout=10) as c:
        c.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]))
        return c.recv(9)


def test_http2():
    with Sim() as s:
        first = greeting(s)
        same((len(first), first[3]), (9, 4),
             "a client that begins with HTTP/2's preface gets settings")
    with Sim("--http1") as s:
        same(greeting(s), b"HTTP/1.1 ", "with --http1 it gets an answer in HTTP/1.1")


def curl(s, ca, *more, path="/healthz", scheme="https"):
    """(version, status, exit status) of a client that is not ours."""
    r = subprocess.run([
        "curl", "-sS", "--noproxy", "*", "--cacert", ca, "-o", "/dev/null", "-w",
        "%{http_version} %{http_code}", *more, f"{scheme}://{s.url}{path}"], capture_output=True,
                       text=True, timeout=30)
    return (*r.stdout.split(), r.returncode)


def test_tls():
    cert, key = certificate()
    with Sim("--tls-cert", cert, "--tls-key", key, ca=cert) as s:
        same(s.line, f"millrace sim listens at https://127.0.0.1:{s.port}\n",
             "it says that it speaks TLS")
        same(curl(s, cert, "--http1.1"), ("1.1", "200", 0), "curl over HTTP/1.1")
        same(curl(s, cert, "--http2"), ("2", "200", 0), "curl over HTTP/2, by ALPN")
        same(curl(s, cert, "--http1.1", "--tls-max", "1.2"), ("1.1", "200", 0), "TLS 1.2")
        same(curl(s, cert, "--tls-max", "1.1", "--ciphers", "DEFAULT@SECLEVEL=0")[2], 35,
             "but not TLS 1.1")
        same(curl(s, cert, scheme="http"), ("1.1", "400", 0), "plain HTTP is told so")
        c = s.connect()
        same([s.chat("x" * 200000, connection=c)[0] for _ in range(3)], [200] * 3,
             "large requests on one connection")
        c.close()
        body = f"{folder('certs')}/body"
        with open(body, "w") as f:
            json.dump({"model": "m", "messages": [{"role": "user", "content": "x" * 500000}]}, f)
        same(curl(s, cert, "--http2", "-H", "Authorization: Bearer k", "-d", "@" + body,
                  path="/v1/chat/completions"), ("2", "200", 0), "and over HTTP/2")
        same(s.settled("in_flight", 0)["requests"], 4, "all are counted")
    with Sim("--http1", "--tls-cert", cert, "--tls-key", key) as s:
        same(curl(s, cert, "--http2"), ("1.1", "200", 0), "with --http1 ALPN has only that")
    with Sim("--fail", 1, "--fail-kinds", "cut", "--seed", 7, "--tls-cert", cert, "--tls-key", key,
             ca=cert) as s:
        got = {outcome(s)[0] for _ in range(12)}
        ok(got <= {"cut before", "cut within", "ssl"} and len(got) > 1, "cut over TLS", got)


def test_tls_handshakes():
    """Slow ones, and those that never end."""
    cert, key = certificate()
    with Sim("--tls-cert", cert, "--tls-key", key, "--tls-handshake-ms", 700, ca=cert) as s:
        idle = [socket.create_connection((s.host, s.port)) for _ in range(20)]
        for c in idle[:10]:
            c.sendall(bytes([22, 3, 1, 2, 0, 1, 0, 1, 252]))
        began = time.monotonic()
        same(curl(s, cert), ("2", "200", 0), "a slow handshake succeeds")
        took = time.monotonic() - began
        ok(0.7 <= took < 10, f"and is slow ({took:.2f} s)")
        for c in idle[5:]:
            c.close()
        began = time.monotonic()
        same(s.stop(), 0, "clients in a handshake do not keep it from ending")
        ok(time.monotonic() - began < 20, "for ever")
        for c in idle[:5]:
            c.close()


def test_tls_files():
    cert, key = certificate()
    other = certificate("other")[1]
    listen = ("--listen", "127.0.0.1:0")
    for args, part in [(("--tls-cert", cert), "belong together"),
                       (("--tls-key", key), "belong together"),
                       (("--tls-handshake-ms", "5"), "no handshake")]:
        r = run(*listen, *args)
        ok(r.returncode == 2 and part in r.stderr, f"wrong command line: {said(r)}", r)
    for files, part in [((cert + ".no", key), "sim.crt.no cannot be read: No such file"),
                        ((cert, key + ".no"), "sim.key.no cannot be read: No such file"),
                        ((key, key), "the certificate"),
                        ((cert, cert), "sim.crt cannot be used: it must hold a private key"),
                        ((cert, other), "other.key cannot be used: its key is not that of")]:
        r = run(*listen, "--tls-cert", files[0], "--tls-key", files[1])
        ok(r.returncode == 1 and part in r.stderr, f"wrong files: {part}", r)


def test_tls_screening():
    """The whole way: papers are screened by an AI whose certificate ai.ca_file vouches for."""
    cert, key = certificate()
    for http1 in ((), ("--http1",)):
        with Sim("--tls-cert", cert, "--tls-key", key, *http1, ca=cert) as s:
            ai = SimpleNamespace(url=f"https://{s.url}/v1")
            with server(ai, papers=300, MILLRACE_NODES="1", MILLRACE_AI_CA_FILE=cert) as m:
                api = person(m, "reader")
                qid, total = submit(api)
                ok(reaches(api, qid, "DONE"), f"a run over TLS {http1} is done")
                seen = view(api, qid)
                same((seen["finished"], seen["failed"]), (total, 0), "with all its papers")
                same(s.stats()["outcomes"]["ok"], total, "the AI has answered each once")


def test_drain():
    s = Sim("--latency-ms", 800)
    got = []
    client = threading.Thread(target=lambda: got.append(outcome(s)[0]))
    client.start()
    s.settled("in_flight", 1)
    began = time.monotonic()
    status = s.stop()
    client.join()
    same((status, len(got), '"relevant": true' in got[0]), (0, 1, True),
         "SIGTERM lets the call in flight finish")
    ok(time.monotonic() - began < 5, "and ends soon")

    s = Sim("--fail", 1, "--fail-kinds", "timeout", "--stall-ms", 600000)
    client = threading.Thread(target=lambda: got.append(outcome(s)[0]))
    client.start()
    s.settled("in_flight", 1)
    status = s.stop()
    client.join()
    same((status, got[-1]), (0, "cut before"), "who only stalls is cut")


def main():
    if not os.access(BIN, os.X_OK):
        sys.exit(f"{BIN} is not a program; set MILLRACE_BIN")
    for fn in [
            test_command_line, test_verdicts, test_refusals, test_stream, test_plans,
            test_extractions, test_embeddings,
            test_embedding_faults, test_files, test_limits, test_faults, test_seed,
            test_latency, test_crowd, test_http2, test_tls, test_tls_handshakes, test_tls_files,
            test_tls_screening, test_drain]:
        test(fn.__name__)(fn)
    run_tests()


if __name__ == "__main__":
    main()
