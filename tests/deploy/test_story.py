"""From a fresh Debian 12 to a server that was lost and restored: the package is installed, systemd
starts it, nginx is put in front by the commands of docs/deploying.md, 1,000 papers are screened
over HTTPS, and a PDF is extracted; a backup, an upgrade under load to a newer build, the end of
everything, a restore.

Needs root, debootstrap, namespaces, and for build-test/debian-12 a mirror of Debian."""
import contextlib
import json
import os
import re
import shutil
import socket
import ssl
import time

from debian import PROJECT, SMALL, apt_words, build, debian_12, missing
from booted import Booted, own_network
from admins import Admin
from client import PASSWORD, Api
from harness import Client, SCALE, equal, note, ok, run_tests, test, wait_for
from load import Load
from screening import QUESTION, reaches, submit, view
from sim import certificate
import tasks

DOMAIN = "screening.example.org"  # of deploy/nginx/millrace.conf
EXAMPLES = "/usr/share/doc/millrace/examples"
SOCKET = "/run/millrace/http.sock"  # of deploy/systemd/millrace.socket
PAPERS = 1000
WORKERS = 6  # what the rates of the sample's keys have room for, at this latency
LATENCY_MS, AI_PORT = 100, 9100
MONEY = "100000.00"
DOCUMENT_CENTS = 10  # extract.document_cents
ADMIN_PASSWORD = "correct horse battery staple"


@contextlib.contextmanager
def step(name):
    began = time.monotonic()
    yield
    note(f"step: {name}: {time.monotonic() - began:.1f} s")


# --- from outside ---

class Site:
    """What a browser reaches: nginx, by TLS."""
    port = 443

    def __init__(self, ca):
        self.tls = ssl.create_default_context(cafile=ca)

    def connect(self, source="127.0.0.1"):
        return Connection(self.tls, source)

    def get(self, path, **kw):
        client = self.connect()
        try:
            return client.request(path, **kw)
        finally:
            client.close()


class Connection(Client):
    name = DOMAIN

    def __init__(self, tls, source):
        plain = socket.create_connection(("127.0.0.1", Site.port), 30 * SCALE, (source, 0))
        self.s, self.buffer = tls.wrap_socket(plain, server_hostname=DOMAIN), b""


class Readers(Load):
    """Pages, reads and writes, each thread from an address of its own: nginx counts the requests of
    an address, and allows 100 a second."""
    PAUSE = 0.02

    def __init__(self, site, api):
        self.site, self.api = site, api
        super().__init__(site.port, threads=9)

    def connect(self, number):
        return self.site.connect(f"127.0.1.{number + 1}")

    def ask(self, client, number):
        time.sleep(self.PAUSE)
        if number % 3 == 0:
            return client.request("/")
        headers = [f"Authorization: Bearer {self.api.token}", "Content-Type: application/json"]
        if number % 3 == 1:
            return client.request("/api/me", headers=headers)
        choice = {k: QUESTION[k] for k in ("year_from", "year_to")}
        return client.request("/api/estimate", "POST", headers=headers, body=json.dumps(
            {**choice, "journals": self.api.journals}).encode())


def millrace(machine, *words, **kw):
    """As root, who names no settings."""
    return machine.run("millrace", *words, **kw)


# --- the steps ---

def install(machine, package):
    machine.install(package)
    equal(machine.run("systemctl", "is-active", "millrace", fails=True).stdout, "active\n",
          "the package is installed, and its service started", machine.journal("millrace"))
    equal(machine.run("systemctl", "is-enabled", "millrace", fails=True).stdout, "enabled\n",
          "it is enabled")


def guide(section, block=0):
    """The commands of a block of a section of docs/deploying.md."""
    with open(PROJECT + "/docs/deploying.md", encoding="utf-8") as f:
        text = f.read().split(f"\n## {section}\n", 1)[1]
    return re.findall(r"```sh\n(.*?)```", text, re.S)[block].splitlines()


def put_in_front(machine):
    """nginx, by the guide; the example of the package is not changed at all."""
    ca, key = certificate("site", f"DNS:{DOMAIN}")
    os.makedirs(machine.path("/etc/ssl/millrace"))
    shutil.copy(ca, machine.path("/etc/ssl/millrace/fullchain.pem"))
    shutil.copy(key, machine.path("/etc/ssl/millrace/privkey.pem"))
    # The certificate is the test's own; test_guide lets certbot get one.
    load, = [command for command in guide("nginx", 1) if command.startswith("nginx -t")]
    for command in [*guide("nginx"), load]:
        if command.startswith("apt-get install"):
            machine.run(*apt_words(*[w for w in command.split()[1:] if w != "certbot"]))
        else:
            machine.run("sh", "-e", "-c", command.replace("deploy/", EXAMPLES + "/"))
    machine.change_settings(behind_tls=True, trusted_proxies="127.0.0.1, unix",
                            ai={"url": f"http://127.0.0.1:{AI_PORT}/v1"}, **SMALL)
    machine.run("systemctl", "reload", "millrace")
    site = Site(ca)
    page = site.get("/")
    ok(page.status == 200 and b"/assets/" in page.body and
       page.headers["server"] == "nginx", "the pages are there, over HTTPS", page, page.headers)
    equal(site.get("/readyz").status, 404, "what operators ask is not for the world")
    return site


def start_ai(machine):
    machine.run("systemd-run", "--unit=ai", "millrace", "sim", "--listen", f"127.0.0.1:{AI_PORT}",
                "--latency-ms", str(LATENCY_MS))


def load_papers(machine):
    millrace(machine, "sample", "--papers", str(PAPERS), "--seed", "7", "/srv/papers")
    done = millrace(machine, "db", "init", "--data", "/srv/papers")
    ok(f"{PAPERS:,}" in done.stdout or str(PAPERS) in done.stdout, "papers are loaded", done.stdout)
    millrace(machine, "db", "warm")


def settle_in(machine, site):
    """An admin, and a researcher who registers and is given money."""
    millrace(machine, "admin", "add", "chief", "--super", input=ADMIN_PASSWORD + "\n")
    chief, reader = Admin(site), Api(site)
    equal(chief.login("chief", ADMIN_PASSWORD).status, 200, "an admin logs in")
    equal((reader.register("reader").status, reader.login("reader").status), (201, 200),
          "a researcher registers, and logs in")
    reader.uid, reader.chief = reader.me().body["uid"], chief
    r = chief("POST", f"/api/admin/users/{reader.uid}/recharge",
              {"amount": MONEY, "request_id": "first"})
    equal(r.status, 200, "the admin gives money", r)
    allow(reader, WORKERS)
    return reader


def allow(api, workers):
    r = api.chief("POST", f"/api/admin/users/{api.uid}/permission", {"permission": workers})
    equal(r.status, 200, f"the admin allows {workers} papers at a time", r)


def cents(text):
    units, _, rest = text.partition(".")
    return int(units) * 100 + int(rest.ljust(2, "0"))


def all_results(api, qid):
    found = []
    for page in api.pages(f"/api/queries/{qid}/results?limit=500"):
        # It was archived since the last page: the list begins again, in its final order.
        found = page["results"] if page["restarted"] else found + page["results"]
    return sorted(found, key=lambda r: r["doi"])


def ledger(api):
    return [e for page in api.pages("/api/ledger?limit=500") for e in page["entries"]]


def charges(api):
    return sum(e["kind"] == "charge" for e in ledger(api))


def screen(api):
    """1,000 papers; what must be the same after the restore."""
    journals = api("GET", "/api/journals").body["journals"]
    api.journals = [j["name"] for j in journals]
    qid, total = submit(api, PAPERS)
    equal(total, PAPERS, "a run over all papers is submitted")
    ok(reaches(api, qid, "DONE", 300), "it comes to its end")
    wait_for(lambda: view(api, qid)["end_time"] and view(api, qid)["workers"] == 0, 10)
    # A charge is in Redis first, and in the ledger, which MySQL has, with the next sync.
    ok(wait_for(lambda: charges(api) == PAPERS, 30), "the ledger has every charge", charges(api))
    return told(api, qid, "it")


def extract(machine, api):
    """Values of a PDF, which a program reads in a sandbox inside of the unit's own."""
    pdf = tasks.pdf("Nothing here.", tasks.text_of(7).replace("\n", " "))
    api.task = tasks.start(api, tasks.template(api), [tasks.upload(api, pdf, "a.pdf")])
    ok(tasks.ended(api, api.task), "a task of extraction is completed", tasks.status(api, api.task))
    row, = tasks.rows(api, api.task)
    equal((row["state"], row["values"] and row["values"]["dose"]["value"]), ("completed", 7.5),
          "with what the PDF says", row)
    layers = [line for line in machine.journal("millrace").splitlines()
              if "child processes run with" in line]
    ok(layers and all("limits, seccomp, Landlock" in line for line in layers),
       "it was read with all layers that a unit leaves", *layers)
    ok(wait_for(lambda: deductions(api) == 1, 30), "and is paid", ledger(api)[:3])


def deductions(api):
    return sum(e["kind"] == "deduction" for e in ledger(api))


def told(api, qid, name):
    """All that its user can read of a run, and of the money."""
    v, found, me = view(api, qid), all_results(api, qid), api.me().body
    equal((v["finished"], v["failed"], len(found), len({r["doi"] for r in found})),
          (PAPERS, 0, PAPERS, PAPERS), f"{name} has a verdict on each paper")
    equal(cents(me["balance"]), cents(MONEY) - cents(v["cost"]) - DOCUMENT_CENTS,
          "the balance is what was paid in, less what the run and the document cost", me, v)
    return {"run": v, "results": found, "balance": me["balance"], "ledger": ledger(api),
            "documents": tasks.rows(api, api.task)}


def back_up(machine):
    """The unit of the nightly backup, then one by hand, which is the one restored."""
    machine.run("systemctl", "enable", "--now", "millrace-backup.timer")
    ok("millrace-backup.service" in machine.run("systemctl", "list-timers", "--no-pager").stdout,
       "the timer of the nightly backup is on")
    machine.run("systemctl", "start", "millrace-backup.service", fails=True)
    made = os.listdir(machine.path("/var/backups/millrace"))
    ok(len(made) == 1 and re.fullmatch(r"millrace-\d{8}T\d{6}Z", made[0]),
       "the unit makes a backup", made, machine.journal("millrace-backup"))
    done = millrace(machine, "backup", "/var/backups/millrace/by-hand")
    note(done.stdout)
    ok("verified" in done.stdout, "a backup by hand", done.stdout)
    return "/var/backups/millrace/by-hand", time.time()


def upgrade(machine, site, api, package, version):
    """By apt alone, while users work and a run goes on: postinst has the service reload."""
    ended = lambda: machine.journal("millrace").count("the old nodes have ended")
    before_ended = ended()
    allow(api, 1)  # the run must last longer than the upgrade
    before = json.loads(site.get("/openapi.json").body)["info"]["version"]
    qid, _ = submit(api, PAPERS)
    load = Readers(site, api)
    time.sleep(2)
    ok(view(api, qid)["state"] == "RUNNING", "a run is under way")
    with step("upgrade"):
        machine.install(package)
        ok(view(api, qid)["state"] == "RUNNING", "it still is, when the newer package is installed")
        ok(wait_for(lambda: ended() > before_ended, 60), "the old nodes end",
           machine.journal("millrace"))
    time.sleep(2)
    count, failures = load.stop()
    ok(count > 200, f"{count} requests meanwhile")
    equal((len(failures), failures[:5]), (0, []), "none was dropped", machine.journal("millrace"))
    after = json.loads(site.get("/openapi.json").body)["info"]["version"]
    equal((before == after, after), (False, version), "the newer program answers")
    allow(api, WORKERS)
    ok(reaches(api, qid, "DONE", 300), "the run comes to its end")
    equal(view(api, qid)["failed"], 0, "without a failure")
    return qid


def destroy(machine):
    machine.cut_power()
    shutil.rmtree(machine.path("/var/lib/millrace"))


def away(machine, site, stop):
    machine.run("sh", "-e", "-c", stop)
    reply = site.get("/api/me")
    equal((site.get("/").status, reply.status, json.loads(reply.body)["error"]["code"]),
          (200, 503, "unavailable"), "while millrace is away nginx has the pages, and says so")


def owners(machine):
    return set(machine.run("find", "/var/lib/millrace", "-printf", "%u:%g\n").stdout.split())


def restore(machine, site, path, taken):
    """By the guide. The service has started anew, and made an empty database."""
    stop, bring_back, start, audit = guide("The Debian package", 1)
    machine.boot()
    away(machine, site, stop)
    done = millrace(machine, "restore", path, fails=True)
    ok(done.returncode == 1 and "has a database already" in done.stderr,
       "it does not overwrite what it is not told to", done.stdout, done.stderr)
    done = machine.run("sh", "-c", re.sub(r"/var/backups/millrace/[\w-]+", path, bring_back),
                       fails=True)
    lost = re.search(r"Lost is what happened in the (\d+) s since then", done.stdout)
    note(done.stdout)
    since = time.time() - taken
    if not ok(done.returncode == 0 and lost, "it is restored", done.stdout, done.stderr):
        return False
    ok(since - 5 <= int(lost[1]) <= since + 30,
       f"it says that {lost[1]} s are lost, of {since:.0f}")
    done = machine.run("sh", "-c", start, fails=True)
    ok(done.returncode == 0, "the service starts", done.stderr, machine.journal("millrace"))
    equal(owners(machine), {"millrace:millrace"}, "all that root has restored is the service's")
    done = machine.run("sh", "-c", audit, fails=True)
    note(done.stdout)
    return ok(done.returncode == 0 and "no findings" in done.stdout, "the audit finds nothing",
              done.stdout, done.stderr)


def items(value):
    return list(value.items()) if isinstance(value, dict) else list(value)


def look(machine, site, api, run, lost):
    equal(Api(site).login("reader", PASSWORD).status, 200, "the researcher logs in")
    api.login("reader")
    now = told(api, run["run"]["query_id"], "the restored run")
    for what in ("run", "results", "balance", "ledger", "documents"):
        ok(now[what] == run[what], f"its user reads the same {what} as before",
           *[f"{b} was {a}" for a, b in zip(*map(items, (run[what], now[what]))) if a != b][:5])
    equal(api("GET", f"/api/queries/{lost}").status, 404, "the run that came later is lost")
    done = millrace(machine, "audit", fails=True)
    equal(done.returncode, 0, "the audit still finds nothing", done.stdout, done.stderr)


def listens(machine):
    return machine.run("test", "-e", SOCKET, fails=True).returncode == 0


def proxy_to(machine, address):
    machine.run("sed", "-i", rf"s|^    server [^;]*;|    server {address};|",
                "/etc/nginx/sites-available/millrace.conf")
    machine.run("systemctl", "reload", "nginx")


def by_socket(machine, site):
    """millrace.socket: systemd listens, nginx passes on to a path, the first request starts it."""
    machine.run("systemctl", "stop", "millrace")
    machine.run("systemctl", "enable", "--now", "millrace.socket")
    proxy_to(machine, f"unix:{SOCKET}")
    state = lambda: machine.run("systemctl", "is-active", "millrace", fails=True).stdout.strip()
    equal(state(), "inactive", "only systemd listens")
    ok(wait_for(lambda: site.get("/healthz").status == 200, 60), "a request starts the service",
       machine.journal("millrace"))
    equal(state(), "active", "and is answered")
    api = Api(site)
    equal(api.login("reader", PASSWORD).status, 200, "the researcher logs in through the socket")
    equal({s["ip_address"] for s in api("GET", "/api/sessions").body["sessions"]}, {"127.0.0.1"},
          "from the address that nginx tells")
    machine.run("systemctl", "disable", "--now", "millrace.socket")
    equal(listens(machine), False, "a socket that is switched off is gone")
    machine.run("systemctl", "restart", "millrace")
    proxy_to(machine, "127.0.0.1:8080")
    ok(wait_for(lambda: site.get("/healthz").status == 200, 30), "back to TCP",
       machine.journal("millrace"))


def version_of_sources():
    with open(PROJECT + "/meson.build") as f:
        return re.search(r"version: '([\d.]+)'", f.read())[1]


@test("a story")
def _():
    why = missing("unshare", "nsenter", "pivot_root", "openssl")
    assert not why, f"the story cannot be told here: {why}"
    newer_version = version_of_sources() + "+1"
    with step("base system"):
        debian_12()
    with step("two packages are built"):
        package, newer = build(), build("--version", newer_version)
    own_network()
    with step("a Debian 12 with systemd"):
        machine = Booted()
    with machine:
        with step("boot"):
            machine.boot()
        with step("install"):
            install(machine, package)
        with step("nginx"):
            start_ai(machine)
            site = put_in_front(machine)
        with step("papers"):
            load_papers(machine)
        reader = settle_in(machine, site)
        with step("extract a PDF"):
            extract(machine, reader)
        with step(f"screen {PAPERS} papers"):
            run = screen(reader)
        with step("back up, twice"):
            path, taken = back_up(machine)
        with step("upgrade under load, and the rest of a second run"):
            lost = upgrade(machine, site, reader, newer, newer_version)
        with step("destroy"):
            destroy(machine)
        with step("restore"):
            restored = restore(machine, site, path, taken)
        if restored:
            with step("look"):
                look(machine, site, reader, run, lost)
            with step("systemd's socket"):
                by_socket(machine, site)


run_tests()
