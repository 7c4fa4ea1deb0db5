"""`millrace ai test`: against services that answer in every way, or not at all."""
import contextlib
import gzip
import http.server
import json
import socket
import threading

from admins import admin
from harness import Millrace, equal, ok, run, run_tests, sql, test, wait_for
from proxy import Proxy
from screening import person, reaches, server, submit
from sim import Sim

ANSWER = '{"relevant": true, "reason": "It splits water."}'
KEY = "sk-very-secret-1"


def message(finish="stop", **members):
    return json.dumps({"choices": [{"message": members, "finish_reason": finish}],
                       "usage": {"total_tokens": 42}}).encode()


def events(*pieces):
    chunks = [{"choices": [{"delta": {"content": p}, "finish_reason": None}]} for p in pieces]
    return b"".join(b"data: " + json.dumps(c).encode() + b"\n\n" for c in chunks) + \
        b"data: [DONE]\n\n"


def error(words):
    return json.dumps({"error": {"message": words}}).encode()


# What a service may say: (status, headers, body). All shapes are in judge_verdict and ai_reply.
READ = {
    "as asked": (200, {}, message(content=ANSWER)),
    "think": (200, {}, message(content="<think>No? {\"relevant\": false}</think>" + ANSWER)),
    "parts": (200, {}, message(content=[{"type": "thinking", "thinking": "No?"},
                                        {"type": "text", "text": ANSWER}])),
    "prose": (200, {}, message(content="**Relevant:** Yes\n**Reason:** It splits water.")),
    "gzip": (200, {"Content-Encoding": "gzip"}, gzip.compress(message(content=ANSWER))),
    "byte order mark": (200, {}, b"\xef\xbb\xbf" + message(content=ANSWER)),
    "201": (201, {}, message(content=ANSWER)),
    "events": (200, {"Content-Type": "text/event-stream"}, events(ANSWER[:9], ANSWER[9:])),
}
NAMED = {
    "reasoning only": ((200, {}, message(content=None, reasoning_content="Hm.")),
                       "the service sent thoughts, but no answer."),
    "length": ((200, {}, message("length", content="<think>Hm")),
               "the service sent an answer that was cut off at its limit of tokens "
               "(ai.max_tokens)."),
    "no JSON": ((200, {}, b"<html>It works</html>"), "the service sent a reply that is no JSON."),
    "400": ((400, {}, error("Unsupported parameter: 'max_tokens'")),
            "the service refuses the request (status 400): Unsupported parameter: 'max_tokens'. "
            "If it dislikes a member of the body, ai.params replaces or removes it."),
    "401": ((401, {}, error(f"Incorrect API key provided: {KEY}")),
            "the service refuses the key (status 401): Incorrect API key provided: ***. "),
    "404": ((404, {}, error("The model `m` does not exist")),
            "the service does not know the model or the address (status 404): "
            "The model `m` does not exist. Check ai.model and ai.url."),
    "307": ((307, {"Location": "https://elsewhere.example/v1/chat?secret=1"}, b""),
            "the service redirects (status 307) to https://elsewhere.example. "),
}


class Service:
    """Answers every POST with self.says; self.seen is the last request."""

    def __enter__(self):
        service = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                service.seen = self.path, self.headers, json.loads(body)
                status, headers, reply = service.says
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(reply)))
                self.end_headers()
                self.wfile.write(reply)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


@contextlib.contextmanager
def silent():
    with socket.create_server(("127.0.0.1", 0)) as s:
        yield s.getsockname()[1]


def ask(m, url, *args, **settings):
    """The command, with settings of its own: the stores are those of the server m."""
    return run("ai", "test", *args, env={**m.stores, "MILLRACE_AI_URL": url, **settings})


def refused(r, text, name):
    ok(r.returncode == 1 and text in r.stderr, f"{name}: exit status 1, and why", r.stdout,
       r.stderr)
    ok(KEY not in r.stdout + r.stderr, f"{name}: the key is not shown", r.stdout, r.stderr)


@test("ai test")
def _():
    with Millrace(env={"MILLRACE_SAMPLE_PAPERS": "50"}) as m, Service() as s:
        assert wait_for(m.ready, 40), m.log()
        sql(m, f"DELETE FROM api_list; INSERT INTO api_list (api_key, api_name) VALUES ('{KEY}',"
               " 'main')")
        for name, said in READ.items():
            s.says = said
            r = ask(m, s.url)
            ok(r.returncode == 0 and "verdict   relevant: It splits water.\n" in r.stdout,
               f"{name}: a verdict", r.stdout, r.stderr)
            ok(KEY not in r.stdout + r.stderr, f"{name}: the key is not shown", r.stdout)
        s.says = READ["as asked"]
        r = ask(m, s.url)
        for part in (f"request   POST {s.url}/chat/completions\n", "Authorization: Bearer ***\n",
                     '"max_tokens":200', "reply     status 200 after ", "tokens    42; ",
                     "key       ", ", main\n", "Title: Nickel-iron catalysts"):
            ok(part in r.stdout, f"shown: {part.strip()}", r.stdout)
        for name, (said, text) in NAMED.items():
            s.says = said
            refused(ask(m, s.url), text, name)

        s.says = READ["as asked"]
        doi = sql(m, "SELECT DOI FROM paperinfo WHERE DOI LIKE '10.%' ORDER BY DOI LIMIT 1")[0][0]
        r = ask(m, s.url, "--doi", f"https://doi.org/{doi}")
        ok(r.returncode == 0 and r.stdout.startswith(f"paper     {doi}: "), "another paper",
           r.stdout, r.stderr)
        ok(f"DOI: {doi}" in s.seen[2]["messages"][1]["content"], "is asked about", s.seen)
        refused(ask(m, s.url, "--doi", "10.1/none"), "there is no paper 10.1/none", "no such paper")

        r = ask(m, s.url.replace("/v1", "/d/x?api-version=1"),
                MILLRACE_AI_KEY_HEADER="api-key", MILLRACE_AI_HEADERS='{"X-Team": "hush"}',
                MILLRACE_AI_PARAMS='{"max_tokens": null, "max_completion_tokens": 900}')
        path, headers, body = s.seen
        equal((r.returncode, path), (0, "/d/x/chat/completions?api-version=1"), "as Azure has it",
              r.stderr)
        equal((headers["api-key"], headers["Authorization"], headers["X-Team"]),
              (KEY, None, "hush"), "headers")
        equal((body.get("max_tokens"), body["max_completion_tokens"]), (None, 900), "parameters")
        ok("api-key: ***\n" in r.stdout and "X-Team: ***\n" in r.stdout, "both masked", r.stdout)

        with Sim("--fail", "1", "--fail-kinds", "thinking,wrapped") as sim:
            for i in range(3):
                r = ask(m, sim.url)
                ok(r.returncode == 0 and "verdict   relevant: " in r.stdout,
                   f"the simulated AI, reply {i}", r.stdout, r.stderr)
            r = ask(m, sim.url, MILLRACE_AI_PARAMS='{"stream": true}',
                    MILLRACE_AI_KEY_HEADER="api-key")
            ok(r.returncode == 0 and "verdict   relevant: " in r.stdout, "a stream", r.stdout,
               r.stderr)

        r = ask(m, "http://no-such-host.invalid/v1")
        refused(r, "DNS knows no such host: ", "DNS")
        with socket.socket() as bound:  # but does not listen
            bound.bind(("127.0.0.1", 0))
            refused(ask(m, f"http://127.0.0.1:{bound.getsockname()[1]}/v1"),
                    "nothing listens at that address: ", "refused")
        with silent() as port:
            refused(ask(m, f"http://127.0.0.1:{port}/v1", MILLRACE_AI_TIMEOUT_MS="300"),
                    "there was no answer in time: ", "time-out")
        refused(ask(m, s.url.replace("http:", "https:")), "TLS failed: ", "TLS")
        refused(ask(m, ""), "ai.url is empty: ", "the simulated AI")
        sql(m, "UPDATE api_list SET is_active = 0")
        refused(ask(m, s.url), "there is no active key for the AI service: ", "no key")


VECTOR = {"model": "m", "data": [{"index": 0, "embedding": [3, 4]}], "usage": {"total_tokens": 9}}
NO_VECTOR = {
    "no vector": ((200, {}, b'{"data": []}'), "the service sent 0 vectors for 1 texts."),
    "null": ((200, {}, b'{"data": [{"index": 0, "embedding": [1, null]}]}'),
             "the service sent a vector with numbers that are not finite."),
    "404": ((404, {}, error("The model `m` does not exist")),
            "Check ai.embedding.model and ai.embedding.url."),
    "401": ((401, {}, error(f"Wrong key: {KEY}")), "Check the key, and ai.embedding.key_header."),
    "307": ((307, {"Location": "https://elsewhere.example/"}, b""),
            "set ai.embedding.url to the address that answers."),
}


@test("ai test --embedding")
def _():
    with Millrace(env={"MILLRACE_SAMPLE_PAPERS": "0"}) as m, Service() as s:
        assert wait_for(m.ready, 40), m.log()
        sql(m, f"INSERT INTO api_list (api_key, api_name, service) VALUES ('{KEY}', 'own',"
               " 'embedding')")
        here = {"MILLRACE_AI_EMBEDDING_URL": s.url, "MILLRACE_AI_EMBEDDING_MODEL": "vec"}
        s.says = (200, {}, json.dumps(VECTOR).encode())
        r = ask(m, "", "--embedding", **here)
        for part in (f"request   POST {s.url}/embeddings\n", "key       ", ", own\n",
                     '{"model":"vec","input":["Nickel-iron ', "vector    2 numbers\n",
                     "tokens    9; "):
            ok(r.returncode == 0 and part in r.stdout, f"shown: {part.strip()}", r.stdout, r.stderr)
        path, headers, body = s.seen
        equal((path, headers["Authorization"]), ("/v1/embeddings", f"Bearer {KEY}"), "asked there")
        r = ask(m, "", "--embedding", MILLRACE_AI_EMBEDDING_DIMENSIONS="2", **here)
        equal((r.returncode, s.seen[2]["dimensions"]), (0, 2), "dimensions are asked for")
        r = ask(m, "", "--embedding", MILLRACE_AI_EMBEDDING_DIMENSIONS="3", **here)
        refused(r, "a vector of 2 numbers, and ai.embedding.dimensions is 3", "other dimensions")
        for name, (said, text) in NO_VECTOR.items():
            s.says = said
            refused(ask(m, "", "--embedding", **here), text, name)
        with Sim() as sim:
            r = ask(m, "", "--embedding", MILLRACE_AI_EMBEDDING_URL=sim.url)
            ok(r.returncode == 0 and "vector    256 numbers" in r.stdout, "the simulated AI",
               r.stdout, r.stderr)
        refused(ask(m, s.url, "--embedding"), "ai.embedding.url is empty: there", "no address")
        refused(ask(m, "", "--embedding"), "built-in simulated AI", "the simulated AI of a server")
        sql(m, "UPDATE api_list SET is_active = 0")
        refused(ask(m, "", "--embedding", **here),
                "there is no active key for the embedding service: ", "no key")


LOGIN, WRITTEN = "me:p@ss/w:rd", "me:p%40ss%2Fw%3Ard"


def proxy_refuses(r, words, advice, name):
    refused(r, "the proxy does not let the call through: ", name)
    ok(words in r.stderr and advice in r.stderr, f"{name}: cause and advice", r.stderr)
    ok(all(part not in r.stdout + r.stderr for part in ("p@ss", "p%40ss", "bWU6")),
       f"{name}: no password is shown", r.stdout, r.stderr)


@test("ai test through a proxy")
def _():
    with Millrace(env={"MILLRACE_SAMPLE_PAPERS": "50"}) as m, Service() as s, \
            Proxy(login=LOGIN) as proxy:
        assert wait_for(m.ready, 40), m.log()
        sql(m, f"DELETE FROM api_list; INSERT INTO api_list (api_key) VALUES ('{KEY}')")
        s.says = READ["as asked"]
        url = s.url.replace("127.0.0.1", "api.test")
        where = url.split("/")[2]
        through = lambda login="": ask(m, url, MILLRACE_AI_PROXY=proxy.url(login))
        r = through(WRITTEN)
        ok(r.returncode == 0 and f"proxy     127.0.0.1:{proxy.port} (ai.proxy)\n" in r.stdout and
           "p%40ss" not in r.stdout, "the proxy is shown, its password is not", r.stdout, r.stderr)
        equal(proxy.seen[-1].split("\r\n")[0], f"CONNECT {where} HTTP/1.1", "a tunnel")
        r = ask(m, url, http_proxy=f"{WRITTEN}@127.0.0.1:{proxy.port}")
        ok(r.returncode == 0 and f"proxy     127.0.0.1:{proxy.port} (http_proxy)\n" in r.stdout,
           "the environment's", r.stdout, r.stderr)
        tunnels = len(proxy.seen)
        r = ask(m, s.url, http_proxy=proxy.url(WRITTEN))
        ok(r.returncode == 0 and "proxy " not in r.stdout and len(proxy.seen) == tunnels,
           "is not for this machine", r.stdout, r.stderr)
        r = ask(m, s.url, MILLRACE_AI_PROXY=proxy.url(WRITTEN), no_proxy="127.0.0.0/8")
        ok(r.returncode == 0 and len(proxy.seen) == tunnels, "no_proxy", r.stdout, r.stderr)
        r = ask(m, s.url, MILLRACE_AI_PROXY=proxy.url(WRITTEN))
        ok(r.returncode == 0 and len(proxy.seen) > tunnels, "but ai.proxy is", r.stdout)
        r = ask(m, url, http_proxy=proxy.url(WRITTEN), MILLRACE_AI_PROXY="none")
        refused(r, "DNS knows no such host: ", "none")

        proxy_refuses(through(), "wants a user and a password: 407", "Write them into the address",
                      "no login")
        proxy_refuses(through("me:wrong"), "refuses the user and the password: 407 ", "Check both",
                      "wrong login")
        proxy.refusal = "403 Not to there"
        proxy_refuses(through(WRITTEN), "refuses CONNECT: 403 Not to there", "allow CONNECT",
                      "refused")
        proxy_refuses(ask(m, url, MILLRACE_AI_PROXY=f"http://{WRITTEN}@no-such-host.invalid:1"),
                      "cannot find no-such-host.invalid", "Check the name of the proxy", "no name")
        proxy_refuses(ask(m, url, MILLRACE_AI_PROXY=f"http://{WRITTEN}@127.0.0.1:1"),
                      "no connection: Connection refused", "Check host and port of the proxy",
                      "no proxy")


@test("settings of a proxy")
def _():
    for env, words in (({"MILLRACE_AI_PROXY": "socks5://me:p@ss@host:1"}, "MILLRACE_AI_PROXY is "),
                       ({"HTTPS_PROXY": "https://me:p@ss@host:1",
                         "MILLRACE_AI_URL": "https://api.test/v1"}, "HTTPS_PROXY is ")):
        for command in (("serve",), ("config", "--check")):
            r = run(*command, env=env)
            ok(r.returncode == 1 and f"{words}not accepted: only HTTP proxies can be used; " in
               r.stderr and "p@ss" not in r.stderr, f"{' '.join(command)}: {words}", r.stderr)
    r = run("config", env={"MILLRACE_AI_PROXY": f"http://{WRITTEN}@host:1"})
    ok("http://me:***@host:1 " in r.stdout and "p%40ss" not in r.stdout, "config masks it",
       r.stdout)


@test("the built-in simulated AI needs no proxy")
def _():
    class Nothing:
        url = ""
    with server(Nothing, papers=200, MILLRACE_AI_PROXY="http://127.0.0.1:1") as m:
        api = person(m, "alice")
        ok(reaches(api, submit(api, 100)[0], "DONE", 60), "a run is done")


@test("an embedding service beside the simulated AI keeps its proxy")
def _():
    with Service() as s, Proxy() as proxy, Millrace(
            env={"MILLRACE_SAMPLE_PAPERS": "0", "MILLRACE_AI_PROXY": proxy.url(),
                 "MILLRACE_AI_EMBEDDING_URL": s.url}) as m:
        assert wait_for(m.ready, 40), m.log()
        root = admin(m, "root")
        s.says = (200, {}, json.dumps(VECTOR).encode())
        kid = root("POST", "/api/admin/keys", {"key": KEY, "service": "embedding"}).body["id"]
        equal(root("POST", f"/api/admin/keys/{kid}/test").body["outcome"], "works", "it is asked")
        tunnels = len(proxy.seen)
        ok(tunnels, "through the proxy")
        kid = root("POST", "/api/admin/keys", {"key": KEY}).body["id"]
        equal(root("POST", f"/api/admin/keys/{kid}/test").body["outcome"], "works",
              "the simulated AI is, too")
        equal(len(proxy.seen), tunnels, "but not through it")


@test("files that are not there refuse the start")
def _():
    for name, key in (("AI_CA_FILE", "ai.ca_file"), ("ALERT_CA_FILE", "alert.ca_file"),
                      ("AI_CERT_FILE", "ai.cert_file"), ("AI_KEY_FILE", "ai.key_file"),
                      ("AI_PROMPT_FILE", "ai.prompt_file")):
        env = {f"MILLRACE_{name}": "/nonexistent/file"}
        for command in (("serve",), ("config", "--check")):
            r = run(*command, env=env)
            ok(r.returncode == 1 and f"{key}: /nonexistent/file" in r.stderr and
               r.stderr.rstrip().endswith("No such file or directory"),
               f"{' '.join(command)}: {key}", r.stderr)
    for url, text in (("https://u:pw@host/v1", 'leave user and password before "@" out'),
                      ("https://host/v1#x", 'leave "#" and what follows it out')):
        r = run("serve", env={"MILLRACE_AI_URL": url})
        ok(r.returncode == 1 and text in r.stderr and "pw@h" not in r.stderr, url, r.stderr)


run_tests()
