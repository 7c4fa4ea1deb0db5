"""The work on one paper, the same for every peer in Python: build the prompt, ask the AI, read the
verdict, charge. What it is told comes by the environment; bench/screen_peers.py sets it."""
import http.client
import json
import os
import time

import redis

ENV = os.environ
UID, QID = "1", "bench"
KEYS = [f"user:{UID}:balance", f"user:{UID}:ledger", f"billing_queue:{UID}", f"result:{UID}:{QID}",
        f"query:{UID}:{QID}:status", f"progress:{UID}:{QID}:finished_count",
        f"query:{UID}:{QID}:failed", f"result:{UID}:{QID}:arrivals", f"result:{UID}:{QID}:relevant"]
BLOCK = 100
HOST = ENV["AI_URL"].removeprefix("http://")
HEADERS = {"Content-Type": "application/json", "Authorization": "Bearer sk-bench"}
with open(ENV["PROMPT_HEAD"], encoding="utf-8") as f:
    HEAD = f.read()
with open(ENV["CHARGE_SCRIPT"], encoding="utf-8") as f:
    SCRIPT = f.read()

store = redis.Redis(unix_socket_path=ENV["REDIS_SOCKET"])
sha = store.script_load(SCRIPT)
idle = []  # connections to the AI, kept alive


def papers(total=int(ENV["PAPERS"])):
    """Lists of BLOCK papers, as plain JSON keeps them."""
    for block in range(0, total // BLOCK):
        yield json.loads(store.get(f"papers:{block}"))


def ask(paper):
    text = json.dumps(
        f"Title: {paper['title']}\n\nAbstract: {paper['abstract']}\n\nDOI: {paper['doi']}",
        ensure_ascii=False)
    connection = idle.pop() if idle else http.client.HTTPConnection(HOST, timeout=60)
    connection.request("POST", "/v1/chat/completions", (HEAD + text + "}]}").encode(), HEADERS)
    reply = connection.getresponse()
    body = reply.read()
    if reply.status != 200:
        raise RuntimeError(f"the AI answers {reply.status}")
    idle.append(connection)
    found = json.loads(json.loads(body)["choices"][0]["message"]["content"])
    return found["relevant"], json.dumps({"ai_result": found, "block_key": paper["block"]},
                                         ensure_ascii=False)


def charge(batch):
    """Charges [(DOI, relevant, result), ...] in one call of the project's own script."""
    words = [len(batch), "".join("r" if relevant else "n" for _, relevant, _ in batch), 1,
             f',"timestamp":{int(time.time() * 1000)},"kind":"charge","qid":"{QID}","doi":"']
    for doi, _, result in batch:
        words += [doi, result]
    told = store.evalsha(sha, len(KEYS), *KEYS, *words)
    if told != 1 and any(s not in (1, 2) for s in told):
        raise RuntimeError(f"charge: {told}")
