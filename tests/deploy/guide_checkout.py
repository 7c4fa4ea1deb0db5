"""Rows for what is typed in a folder of sources: README.md, docs/guide.md, docs/operating.md."""
import json
import re
import time

from guide_table import PASSWORD, SERVER, equal, ok, row, settle
import guides

ENTRY = "@article{{{key},\n  title = {{On {key}}},\n  {where},\n  year = {{2024}},\n" \
    "  doi = {{10.5555/{key}}},\n  abstract = {{About {key}.}}\n}}\n"
GIVEN = "user.name=t", "user.email=t@example.org"


# --- the first hour ---

@row("./run")
def _(here):
    first = not here.exists("build/millrace")
    if first:
        # What needs the network; the server itself gets a loopback alone.
        here.run("./run --build-only", network=True, timeout=1800)
    here.server = here.start(here.log)
    said = lambda: here.text(here.log)
    settle(lambda: "millrace is ready at http://127.0.0.1:8080" in said()
           or here.server.poll() is not None, 120, f"{here.command}: it says where it is", said())
    here.wait_ready(120)
    if first:
        shown_accounts(here, said())


def shown_accounts(here, said):
    """The output is as the page shows it."""
    page = next(b for b in guides.blocks("README.md", "") if "is ready at" in b.text).text
    for line in page.splitlines():
        shape = re.sub(r"(password +)\S+$", r"\1([a-z2-9]{4}-){3}[a-z2-9]{4}", line)
        shape = shape.replace(".", r"\.")
        ok(line == "…" or re.search(f"^{shape}$", said, re.M), f"it shows: {line.strip()}", said)
    here.accounts = dict(re.findall(r"^ +name +(\S+)\n +password +(\S+)$", said, re.M))
    token = here.login("demo", here.accounts["demo"])
    equal(here.api("/me", token=token)[1]["balance"], "10000.00", "demo has 10,000.00 to spend")
    ok(here.login("admin", here.accounts["admin"], admin=True), "the admin logs in")
    found = here.api("/journals", token=token)[1]["journals"]
    r = here.api("/estimate", {"journals": [j["name"] for j in found], "year_from": 1900,
                               "year_to": 2100}, token)[1]
    ok(r["papers"] == 3000 and float(r["cost"]) <= 10000, "enough to have every paper judged", r)


@row("./run --build-only")
def _(here):
    here.run(network=True, timeout=1800)


@row("./test", why="it runs this very test: here its shortest suite")
def _(here):
    out = here.run("./test tidy", network=True)
    ok(re.search(r"^\d+ passed, 0 failed$", out, re.M), "it ends with N passed, N failed", out)


@row("kill -HUP \"$(cat var/lock)\"")
def _(here):
    old = here.nodes()
    ok(old, "there are nodes")
    here.run()
    settle(lambda: here.nodes() and not old & here.nodes(), 60, "new nodes, and no old ones",
           here.text(here.log))
    here.wait_ready()


def stop(here):
    """Ctrl-C."""
    here.sh('kill -INT "$(cat var/lock)"')
    equal(here.server.wait(60), 0, "the server stops", here.text(here.log))


# --- papers ---

def put(here, path, key, where):
    old = here.read(path) if here.exists(path) else ""
    here.write(path, old + ENTRY.format(key=key, where=where))


def count_papers(here, journal):
    token = here.login("demo", here.accounts["demo"])
    found = here.api("/journals", token=token)[1]["journals"]
    return sum(sum(j["years"].values()) for j in found if j["name"] == journal)


@row("build/millrace db init --data DIR")
def _(here):
    """Whenever the folder has changed: each time one more paper is in it."""
    here.papers += 1
    put(here, f"{here.data}/Data/GUIDE J/more.bib", f"more{here.papers}", "journal = {GUIDE J}")
    out = here.run(DIR=here.data)
    ok("GUIDE J" in out, "it prints a report", out)


@row("build/millrace db warm")
def _(here):
    here.run()
    settle(lambda: count_papers(here, "GUIDE J") == here.papers, 20,
           f"users see {here.papers} papers")


@row("build/millrace db split export.bib --out DIR")
def _(here):
    for key, where in (("a", "journal = {GUIDE J}"), ("b", "journal = {Guide j}"),
                       ("c", "booktitle = {Proc. of Guides}"), ("d", "publisher = {None}")):
        put(here, "export.bib", key, where)
    here.data, here.papers = "/root/split", here.papers + 2
    here.run(DIR=here.data)
    equal(here.sh("ls /root/split/Data").splitlines(), ["GUIDE J", "Proc. of Guides", "_unsorted"],
          "a folder per journal")
    ok("GUIDE J" in here.read("/root/split/PaperAndTagInfo/InfoList.Paper.csv"),
       "and a table for prices")
    here.sh("rm -r /root/split/Data/_unsorted")


@row("build/millrace sample --papers 5000 DIR")
def _(here):
    here.run(DIR="/root/sample")
    equal(here.sh("cat /root/sample/Data/*/*.bib | grep -c '^@'").strip(), "5000", "5,000 papers")


# --- the commands ---

@row("build/millrace config")
def _(here):
    keys = re.findall(r"^\| `([\w.]+)` \|", guides.text_of("docs/configuration.md"), re.M)
    shown = re.findall(r"^([\w.]+) {2,}\S", here.run(), re.M)
    equal((shown, len(shown) > 40), (keys, True), "every setting")


@row("build/millrace db migrate")
def _(here):
    ok("Nothing to do" in here.run(), "the tables are up to date")


@row("build/millrace user add NAME --balance 100.00")
def _(here):
    here.run(stdin=PASSWORD + "\n", NAME="mei")
    equal(here.api("/me", token=here.login("mei"))[1]["balance"], "100.00",
          "the user logs in and has 100.00")


# --- API tokens ---

def token_in(text):
    return re.search(r"\bmr_[0-9a-f]{64}\b", text)[0]


@row("build/millrace token add NAME nightly --scope read")
def _(here):
    token = token_in(here.run(NAME="mei"))
    equal(here.api("/queries", token=token)[0], 200, "a program reads with it")
    equal(here.api("/queries", {"question": "?"}, token)[0], 403, "and does nothing else")


@row("build/millrace token add asher nightly --scope catalog --scope screen --days 90")
def _(here):
    here.token = token_in(here.run())
    equal([here.api(path, token=here.token)[0] for path in ("/journals", "/queries", "/me")],
          [200, 200, 403], "a program may do what the scopes name")


@row("build/millrace token list asher")
def _(here):
    out = here.run()
    ok("nightly" in out and "screen" in out and here.token not in out, "it is listed", out)
    here.token_id = re.search(r"^\s*(\d+)\b.*nightly", out, re.M)[1]


@row("build/millrace token revoke asher 7")
def _(here):
    here.run(**{"7": here.token_id})
    equal(here.api("/journals", token=here.token)[0], 401, "the program is refused at once")


@row("export TOKEN=mr_…", why="the token is one that was just made")
def _(here):
    made = here.sh("build/millrace token add asher scripts --scope read --scope download")
    here.run(here.command.text.replace("mr_…", token_in(made)))


def at_home(here):
    return here.run(here.command.text.replace("https://millrace.example", SERVER).replace(
        "…", here.done))


@row('curl -H "Authorization: Bearer $TOKEN" https://millrace.example/api/queries',
     why="the server has another name here, and no TLS")
def _(here):
    ok(here.done in at_home(here), "the run of README.md is among those of the user")


@row('curl -H "Authorization: Bearer $TOKEN" '
     '"https://millrace.example/api/download_csv?query_id=…"',
     why="the server has another name here, and no TLS; the run is that of README.md")
def _(here):
    out = at_home(here)
    ok("doi,title," in out and ",Energy Materials Open,20" in out, "a table of its papers", out)


# --- pools ---

@row("build/millrace pool import titles 7 titles.csv")
def _(here):
    here.write("titles.csv", "text,batch\n" + "".join(f"Title {i},1\n" for i in range(3)))
    out = here.run()
    ok("3 items imported into titles/7" in out, "three items", out)
    made = here.sh("build/millrace token add mei titles --scope pool:titles/7")
    here.popped = here.api("/pools/titles/7/pop", {"count": 2}, token_in(made))
    equal((here.popped[0], [x["text"] for x in here.popped[1].get("items", [])]),
          (200, ["Title 0", "Title 1"]), "a program takes two of them")


@row("build/millrace pool list")
def _(here):
    ok(re.search(r"\btitles\b.*\b7\b", here.run()), "the group is listed")


@row("build/millrace pool export titles 7")
def _(here):
    used = lambda: here.sh(here.command.text)
    settle(lambda: "Title 1" in used(), 30, "what is used is marked soon", used())
    ok("Title 2" not in here.run(), "and nothing else is in the file")


@row("build/millrace pool drop titles 7 --yes")
def _(here):
    here.run()
    equal(here.sh("build/millrace pool export titles 7").count("Title"), 2, "what is used stays")


# --- papers that are found ---

@row("build/millrace embed --all --wait")
def _(here):
    out = here.run(timeout=600)
    ok(re.search(r"^(\d+) of \1 papers are indexed", out, re.M), "all papers are indexed", out)


@row("build/millrace embed --changed")
def _(here):
    ok("0 units are queued" in here.run(), "nothing has changed")


@row("build/millrace embed --failed")
def _(here):
    ok("0 units are queued" in here.run(), "nothing has failed")


@row("build/millrace admin add NAME --super")
def _(here):
    here.run(stdin=PASSWORD + "\n", NAME="chief")
    here.admin = here.login("chief", admin=True)
    equal(here.api("/admin/me", token=here.admin)[1]["role"], "super", "a super admin logs in")


@row("build/millrace ai test", why="it needs an AI service: millrace's own simulation of one")
def _(here):
    out = here.run(status=1)
    ok("ai.url is empty" in out, "without one it says so")
    sim = here.start(here.log + ".sim", "build/millrace sim --listen 127.0.0.1:9100")
    settle(lambda: here.curl("http://127.0.0.1:9100/healthz")[0] == 200, 20, "a service")
    out = here.run("MILLRACE_AI_URL=http://127.0.0.1:9100/v1 build/millrace ai test")
    ok("verdict" in out, "it answers", out)
    out = here.run("MILLRACE_AI_URL=http://127.0.0.1:9101/v1 build/millrace ai test", status=1)
    ok("refused" in out, "or what is wrong", out)
    here.end(sim)


@row("build/millrace audit")
def _(here):
    ok("no findings, every cent is where it belongs" in here.run(), "it has no findings")


@row("build/millrace backup DIR")
def _(here):
    here.run(DIR="/root/backup")
    here.sh("cd /root/backup && sha256sum --quiet -c SHA256SUMS")


@row("build/millrace sim --listen 127.0.0.1:9000 --latency-ms 300 --fail 0.05")
def _(here):
    sim = here.start(here.log + ".sim")
    settle(lambda: here.curl("http://127.0.0.1:9000/healthz")[0] == 200, 20,
           f"{here.command}: it listens")
    began = time.monotonic()
    status, body = here.curl(
        "-H", "Authorization: Bearer k", "-H", "Content-Type: application/json", "-d",
        json.dumps({"model": "m", "messages": [{"role": "user", "content": "?"}]}),
        "http://127.0.0.1:9000/v1/chat/completions")
    ok(status not in (0, 401) and time.monotonic() - began >= 0.3, "it takes its time", body)
    here.end(sim)


@row("curl http://127.0.0.1:8080/readyz")
def _(here):
    ok('"success":true' in here.run(), "the server is ready")


# --- the API ---

@row("api=http://127.0.0.1:8080/api", "json='Content-Type: application/json'",
     'auth="Authorization: Bearer $TOKEN"')
def _(here):
    here.run()


@row("curl -H \"$json\" -d '{\"username\": \"asher\", \"password\": \"correct horse\"}' "
     "$api/register")
def _(here):
    ok('"uid":' in here.run(), "a user registers")


@row("build/millrace user recharge asher 100.00")
def _(here):
    ok("asher has 100.00" in here.run(), "the user has 100.00")


@row("""TOKEN=$(curl -s -H "$json" -d '{"username": "asher", "password": "correct horse"}' """
     """$api/login | grep -o '"token":"[^"]*' | cut -d'"' -f4)""")
def _(here):
    here.run()
    ok(re.search(r'TOKEN="\S{20,}"', here.variables["TOKEN"]), "a token", here.variables)


@row('curl -H "$auth" $api/me')
def _(here):
    ok('"username":"asher","balance":"100.00"' in here.run(), "it is asher's")


@row("""ID=$(curl -s -H "$auth" -H "$json" -d '{"question": "Which catalysts split water?", """
     """"journals": ["ENERGY MATER OPEN"], "year_from": 2020, "year_to": 2025}' $api/queries | """
     """grep -o '"query_id":"[^"]*' | cut -d'"' -f4)""")
def _(here):
    here.run()
    found = re.search(r'ID="(\S{8,})"', here.variables["ID"])
    ok(found, "a run", here.variables)
    here.done = found[1]


@row('curl -N -H "$auth" $api/queries/$ID/events')
def _(here):
    out = here.run(timeout=120)
    states = re.findall(r'"state":"(\w+)"', out)
    ok("event: state" in out and states[-1] == "DONE", "how it goes on, to its end", out)


@row('curl -H "$auth" "$api/queries/$ID/results?relevant=1"')
def _(here):
    found = json.loads(re.search(r"^\{.*\}", here.run(), re.M)[0])["results"]
    ok(found and all(r["relevant"] and r["journal"] == "ENERGY MATER OPEN" for r in found),
       "relevant papers of that journal", found)


@row('curl -X POST -H "$auth" $api/queries/$ID/pause',
     why="the run of the page is over by then: one that waits")
def _(here):
    ok("the run is DONE" in here.run(), "one that is over says so")
    switch = lambda on: here.api("/admin/switches", {"name": "new_runs", "on": on}, here.admin)
    equal(switch(False)[0], 200, "no run starts")
    token = re.search(r'"(\S+)"', here.variables["TOKEN"])[1]
    # Another question, of five papers.
    submitted = here.api("/queries", {"question": "Which ones?", "journals": ["GUIDE J"],
                                      "year_from": 2024, "year_to": 2024}, token)
    here.waiting = submitted[1]["query_id"]
    here.run(f"ID={here.waiting}\n" + here.command.text)
    view = here.api(f"/queries/{here.waiting}", token=token)[1]
    equal(view["state"], "PAUSED", "the run is paused", view)
    switch(True)


# --- people ---

def fail(here, name, admin):
    return here.api("/admin/login" if admin else "/login",
                    {"username": name, "password": "wrong wrong wrong"})[0]


def locked_out(here, name, password, admin=False):
    equal([fail(here, name, admin) for _ in range(11)][-1], 429, f"{name} is locked out")
    here.run()
    ok(here.login(name, password, admin), f"{name} logs in again")


@row("build/millrace user unlock asher")
def _(here):
    locked_out(here, "asher", "correct horse")


@row("build/millrace admin unlock root")
def _(here):
    here.sh(f"echo '{PASSWORD}' | build/millrace admin add root")
    locked_out(here, "root", PASSWORD, admin=True)


@row("build/millrace user list")
def _(here):
    ok(re.search(r"^\d+\tasher\t1\t[\d.]+\t[\d.]+\t[\d.]+\tactive\t", here.run(), re.M),
       "permission, balance, reserved, free, state")


@row("build/millrace user list --find ash --json")
def _(here):
    equal([u["username"] for u in json.loads(here.run())["users"]], ["asher"], "asher alone")


@row("build/millrace user permission asher 8")
def _(here):
    here.run()
    equal(here.api("/me", token=here.login("asher", "correct horse"))[1]["permission"], 8,
          "eight at the same time")


def redis(here, *words):
    quoted = " ".join(f"'{w}'" for w in words)
    return here.sh("redis-cli --no-auth-warning -s var/run/redis.sock"
                   f' -a "$(cat var/secret/redis)" {quoted}').strip()


@row("build/millrace user list --state stopped")
def _(here):
    """The run that is paused is so because the account needs the operator."""
    here.sh("mariadb --no-defaults -uroot -S var/run/mariadb.sock millrace -e \"UPDATE query_log"
            f" SET reason = 'the account needs the operator' WHERE query_id = '{here.waiting}'\"")
    equal(re.findall(r"^\d+\t(\w+)\t", here.run(), re.M), ["asher"], "asher's account is stopped")


@row("build/millrace user release asher")
def _(here):
    ok("asher is released" in here.run(), "it is released")
    token = here.login("asher", "correct horse")
    settle(lambda: here.api(f"/queries/{here.waiting}", token=token)[1]["state"] == "DONE", 60,
           "its run goes on")


@row("build/millrace user release --write-off asher")
def _(here):
    uid = here.api("/me", token=here.login("asher", "correct horse"))[1]["uid"]
    redis(here, "RPUSH", f"billing_queue:{uid}", "no record")
    redis(here, "ZADD", "sys:billing", str(int(time.time() * 1000)), str(uid))
    stopped = lambda: here.sh("build/millrace user list --state stopped")
    settle(lambda: "asher" in stopped(), 20, "a record cannot be read: asher is stopped")
    here.run("build/millrace user release asher", status=1)
    out = here.run()
    ok("1 record is written off" in out and "asher is released" in out, "it is given up", out)
    equal(stopped(), "", "none is stopped")


# --- what goes wrong ---

@row("cp -a var/redis /mnt/disk/redis-damaged")
def _(here):
    """A broken command in the middle of the file, when the server is stopped."""
    stop(here)
    here.sh("mkdir -p /mnt/disk")
    name = here.sh("ls var/redis/appendonlydir/*.incr.aof").strip()
    with open(here.box.path(f"{here.home}/{name}"), "r+b") as f:
        data = f.read()
        at = data.index(b"*3\r\n", len(data) // 2)
        f.seek(at)
        f.write(b"!!!!")
    refused = here.start(here.log + ".refused", "build/millrace serve")
    equal(refused.wait(60), 1, "serve ends with status 1", here.text(here.log + ".refused"))
    ok("redis-check-aof --fix" in here.text(here.log + ".refused"), "and shows what Redis says")
    here.run()
    ok(here.exists("/mnt/disk/redis-damaged/appendonlydir"), "there is a copy")


@row("redis-check-aof --fix var/redis/appendonlydir/appendonly.aof.manifest")
def _(here):
    out = here.run(stdin="y\n")
    ok("Successfully truncated AOF" in out, "the end is cut", out)


# --- backup ---

@row("build/millrace backup /mnt/disk/before-the-update")
def _(here):
    out = here.run()
    ok("verified" in out and "It has everything that happened before" in out, "verified", out)
    here.sh("cd /mnt/disk/before-the-update && sha256sum --quiet -c SHA256SUMS")
    ok("asher" in here.sh("zstdcat /mnt/disk/before-the-update/user_info.tsv.zst"),
       "a table can be read")


@row("build/millrace backup --keep 7 /var/backups/millrace")
def _(here):
    here.run()
    names = here.sh("ls /var/backups/millrace").split()
    ok(len(names) == 1 and re.fullmatch(r"millrace-\d{8}T\d{6}Z", names[0]), "millrace-<time>",
       names)
    here.backup = names[0]


@row("build/millrace restore /var/backups/millrace/millrace-20261117T020000Z")
def _(here):
    stop(here)
    out = here.run(status=1, **{"millrace-20261117T020000Z": here.backup})
    ok("--overwrite moves it aside" in out, "data that is there is not replaced", out)
    here.sh("rm -r var")
    out = here.run(**{"millrace-20261117T020000Z": here.backup})
    ok("Lost is what happened in the" in out, "it prints what is lost", out)


# --- updates ---

@row("git pull")
def _(here):
    here.sh("git -C /srv/origin -c {} -c {} commit -q --allow-empty -m 'a new version'".format(
        *GIVEN))
    here.run()
    ok("a new version" in here.sh("git log -1"), "a new version comes")
