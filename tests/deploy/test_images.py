"""deploy/docker: every image is built from the Dockerfile and the three compose files are started,
by a Docker engine of the test's own (engine.py); the commands are those of docs/deploying.md. No
image registry is needed: Debian is made by debootstrap, and what compose takes from others is
replaced by stand-ins/. Needs root, and mirrors of Debian and npm within reach; some minutes."""
import http.client
import json
import os
import re
import socket
import ssl
import subprocess
import threading
import time
import traceback

from debian import PROJECT, sh
from engine import ADDRESS, ADDRESS6, CLIENT, Engine, missing, network, open_files
from harness import equal, finish, note, ok, wait_for
from screening import reaches, submit, view
import tasks

DOCKER = "/src/deploy/docker"
LOCAL = "docker-compose.local.yml"
MANAGED = ["docker-compose.yml", "docker-compose.managed-mysql.yml"]
PASSWORD = "correct horse battery staple"
SECRETS = {"MYSQL_PASSWORD": "of-mysql", "REDIS_PASSWORD": "of-redis", "GRAFANA_PASSWORD": "g"}
SETTINGS = {**SECRETS, "AI_URL": "http://sim:8090/v1", "AI_MODEL": "simulated"}
NAMES = f"DNS:site.example.org,DNS:db.example.org,IP:{ADDRESS},IP:{ADDRESS6}"


def read(path):
    with open(path) as f:
        return f.read()


def certificate(folder):
    """One for the site and for the managed MySQL, which vouches for itself."""
    sh("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
       "-nodes", "-days", "2", "-subj", "/CN=site.example.org", "-addext",
       f"subjectAltName={NAMES}", "-out", f"{folder}/fullchain.pem", "-keyout",
       f"{folder}/privkey.pem")
    os.chmod(f"{folder}/privkey.pem", 0o600)


class Api:
    """Calls from a network, as screening.py makes them."""

    def __init__(self, where, address, ca=None, token=None):
        self.where, self.address, self.ca, self.token = where, address, ca, token

    def connection(self):
        if not self.ca:
            return http.client.HTTPConnection(self.address, 8080, timeout=30)
        return http.client.HTTPSConnection(
            self.address, 443, timeout=30, context=ssl.create_default_context(cafile=self.ca))

    def get(self, path, method="GET", body=None):
        with network(self.where):
            c = self.connection()
            try:
                c.request(method, path, body, {"Content-Type": "application/json",
                                               **({"Authorization": f"Bearer {self.token}"}
                                                  if self.token else {})})
                r = c.getresponse()
                r.body = r.read()
                return r
            finally:
                c.close()

    def __call__(self, method, path, body=None, raw=None):
        r = self.get(path, method, raw if body is None else json.dumps(body))
        r.body = json.loads(r.body)
        return r

    def login(self, name, password=PASSWORD, path="/api/login"):
        r = self("POST", path, {"username": name, "password": password})
        assert r.status == 200, (r.status, r.body)
        return Api(self.where, self.address, self.ca, r.body["token"])


class Boxes:
    """The compose files, in a copy of the sources."""

    def __init__(self, engine):
        self.engine, self.at = engine, f"{engine.src}/deploy/docker"
        # New files count, those that git ignores do not.
        listed = subprocess.run(["git", "ls-files", "-z", "-co", "--exclude-standard"],
                                cwd=PROJECT, capture_output=True, check=True).stdout
        subprocess.run("tar -c --null --ignore-failed-read -T - | tar -x -C " + engine.src,
                       shell=True, input=listed, cwd=PROJECT, check=True)
        self.env = {}

    def sh(self, text, **kw):
        return self.engine.run("sh", "-ec", text, cwd=DOCKER, env=self.env, **kw)

    def compose(self, *words, files=(), **kw):
        chosen = [w for f in files for w in ("-f", f)]
        return self.engine.run("docker", "compose", *chosen, *words, cwd=DOCKER, env=self.env, **kw)

    def config(self, files=(), **kw):
        return json.loads(self.compose("config", "--format", "json", files=files, **kw).stdout)

    def inspect(self, name):
        return json.loads(self.engine.run("docker", "inspect", name).stdout)[0]

    def exec(self, service, text, files=(), **kw):
        return self.compose("exec", "-T", service, "sh", "-c", text, files=files, **kw)

    def containers(self, files=()):
        """{service: what docker knows of it}"""
        names = self.compose("ps", "-a", "--format", "{{.Name}}", files=files).stdout.split()
        found = [self.inspect(n) for n in names]
        return {x["Config"]["Labels"]["com.docker.compose.service"]: x for x in found}

    def logs(self, *services, files=()):
        done = self.compose("logs", "--no-log-prefix", *services, files=files, fails=True)
        return (done.stdout + done.stderr).replace("\x1b[2K", "")[-6000:]


# --- the guide ---

def guide():
    """The blocks of commands about containers in docs/deploying.md."""
    page = read(f"{PROJECT}/docs/deploying.md")
    part = page.split("\n## Containers\n")[1].split("\n## ")[0]
    text = re.sub(r"\bsudo ", "", part).replace("compose exec ", "compose exec -T ")
    return re.findall(r"```sh\n(.*?)```", text, re.S)


# --- what compose makes of the files ---

def check_files(boxes):
    config = boxes.config()
    ports = {name: [(p.get("host_ip"), p["published"]) for p in s["ports"]]
             for name, s in config["services"].items() if "ports" in s}
    equal(ports, {"nginx": [(None, "80"), (None, "443")]}, "only 80 and 443 are published")
    equal({n for n, x in config["networks"].items() if x.get("internal")}, {"back", "watch"},
          "two networks lead nowhere")
    for name in ("mariadb", "redis", "prometheus"):
        equal(list(config["services"][name]["networks"]), ["back"], f"{name} is in one of them")
    local = boxes.config([LOCAL])["services"]
    equal([(p["host_ip"], p["published"]) for p in local["millrace"]["ports"]],
          [("127.0.0.1", "8080")], "the local one publishes to this machine alone")
    for name, s in [*config["services"].items(), *local.items()]:
        equal((s["read_only"], s["cap_drop"], s["security_opt"], s.get("privileged")),
              (True, ["ALL"], ["no-new-privileges:true"], None), f"{name} is confined")
    managed = boxes.config(MANAGED, fails=False)
    equal((set(config["services"]) - set(managed["services"]),
           set(config["volumes"]) - set(managed["volumes"])), ({"mariadb"}, {"mysql"}),
          "with a managed MySQL there is no MariaDB")
    migrate = managed["services"]["migrate"]
    equal((list(migrate["networks"]), migrate.get("depends_on")), (["front"], None),
          "and tables are made over the network that leads there")
    equal({managed["services"][n]["environment"]["MILLRACE_MYSQL_URL"]
           for n in ("millrace", "migrate")}, {boxes.mysql_url}, "by its address")


def check_refusals(boxes):
    """.env as it comes: every value that is missing is named."""
    whole = read(f"{boxes.at}/.env")
    for name in [*SETTINGS, "MYSQL_URL"]:
        with open(f"{boxes.at}/.env", "w") as f:
            f.write(re.sub(rf"^{name}=.*", f"{name}=", whole, flags=re.M))
        done = boxes.compose("config", "-q", files=MANAGED, fails=True)
        ok(done.returncode != 0 and f"{name} is missing a value: set it in .env" in done.stderr,
           f"without {name} nothing starts", done.stdout, done.stderr)
    with open(f"{boxes.at}/.env", "w") as f:
        f.write(whole)


# --- images ---

def build_stand_ins(boxes):
    for name, service in boxes.config()["services"].items():
        if "build" not in service:
            boxes.engine.run("docker", "build", "-q", "--target", name, "-t", service["image"],
                             "/src/tests/deploy/stand-ins")


def check_context(boxes):
    """What is in the folder of an installation is not taken into a build."""
    boxes.engine.run("docker", "build", "-q", "-f", "deploy/docker/Dockerfile", "--target", "build",
                     "-t", "millrace-build", ".", cwd="/src")
    done = boxes.engine.run("docker", "run", "--rm", "millrace-build", "find", "/src/deploy/docker")
    found = {p.split("/")[4] for p in done.stdout.split() if p.count("/") > 3}
    ok("Dockerfile" in found, "the sources are in the stage that compiles", found)
    equal(found & {".env", "acme", "backups", "ca", "papers", "tls"}, set(),
          "keys, passwords and papers are not")
    boxes.engine.run("docker", "rmi", "millrace-build")


def check_images(boxes):
    for name, user in (("millrace", "10001:10001"), ("millrace-local", "10001:10001"),
                       ("millrace-front", "www-data")):
        config = boxes.inspect(name)["Config"]
        equal((config["User"], bool(config["Healthcheck"]["Test"])), (user, True),
              f"{name}: its user, and a health check")
        size = boxes.inspect(name)["Size"] - boxes.inspect("debian:12-slim")["Size"]
        note(f"{name}: {size >> 20} MB on top of Debian")
        tools = boxes.engine.run("docker", "run", "--rm", "--entrypoint", "sh", name, "-c",
                                 "command -v gcc meson node npm curl", fails=True).stdout
        equal(tools, "", f"{name} has no tools of the build")
    done = boxes.engine.run("docker", "run", "--rm", "millrace", "--version")
    ok(re.match(r"millrace \d", done.stdout), "the program runs", done.stdout)


def check_confined(boxes, files=()):
    """Of every container that runs: not as root, no capability, nothing to write to but what the
    compose file names."""
    running = {n: x for n, x in boxes.containers(files).items() if x["State"]["Running"]}
    for name, x in running.items():
        status = boxes.engine.run("cat", f"/proc/{x['State']['Pid']}/status").stdout
        field = lambda key: re.search(rf"^{key}:\s+(\w+)", status, re.M)[1]
        ok(field("Uid") != "0" and field("Gid") != "0", f"{name} does not run as root", status)
        equal((field("CapEff").strip("0"), field("CapBnd").strip("0"), field("NoNewPrivs"),
               field("Seccomp")), ("", "", "1", "2"), f"{name} has no capability, and a filter")
        done = boxes.exec(name, "for d in / /etc /usr/bin /var/lib /root; do "
                          "touch $d/x 2>/dev/null && echo $d; done; mount | grep ' / '",
                          files=files)
        ok(re.fullmatch(r"overlay on / type overlay \(ro,.*\n", done.stdout),
           f"{name}: its root is read-only", done.stdout, done.stderr)
    return set(running)


def healthy(boxes, files=()):
    return {n: x["State"]["Health"]["Status"] for n, x in boxes.containers(files).items()
            if x["State"].get("Health")}


# --- docker-compose.local.yml ---

def local_redis(boxes, *words):
    return boxes.exec("millrace", "REDISCLI_AUTH=$(cat secret/redis) redis-cli -s run/redis.sock "
                      + " ".join(words), files=[LOCAL]).stdout.split()


def check_local(boxes):
    boxes.compose("up", "-d", "--build", "--wait", files=[LOCAL])
    equal(healthy(boxes, [LOCAL]), {"millrace": "healthy"}, "local: up, by its own health check")
    equal(check_confined(boxes, [LOCAL]), {"millrace"}, "local: one container")
    log = boxes.logs(files=[LOCAL])
    password = re.search(r"name +demo\s+password +(\S+)", log)
    assert password, log
    near = Api(boxes.engine.inside, "127.0.0.1")
    ok(b"/assets/" in near.get("/").body, "local: the pages are there")
    equal(reachable(boxes, [8080]), [], "local: 8080 cannot be reached from elsewhere")
    api = near.login("demo", password[1])
    qid, papers = submit(api, 100)
    ok(reaches(api, qid, "DONE", 90), "local: a run is done, by the simulated AI", view(api, qid))
    equal(view(api, qid)["finished"], papers, f"local: {papers} papers are judged")
    check_pdf(boxes, api)
    balance = api("GET", "/api/me").body["balance"]
    equal([local_redis(boxes, "CONFIG GET", x)[1:] for x in ("appendonly", "save")], [["no"], []],
          "local: Redis writes nothing to the disk")
    local_redis(boxes, "SET", "mark", "1")
    boxes.compose("restart", files=[LOCAL])
    ok(wait_for(lambda: near_ready(near), 60), "local: it starts again", boxes.logs(files=[LOCAL]))
    equal(local_redis(boxes, "EXISTS", "mark"), ["0"], "local: with an empty Redis")
    api = near.login("demo", password[1])
    equal((view(api, qid)["finished"], api("GET", "/api/me").body["balance"]), (papers, balance),
          "local: the run and its costs are in MySQL")
    boxes.env["PERSIST_USER_INFO"] = "true"
    boxes.compose("up", "-d", "--wait", files=[LOCAL])
    equal(local_redis(boxes, "CONFIG GET", "appendonly")[1:], ["yes"],
          "local: or it does, if it is told so")
    del boxes.env["PERSIST_USER_INFO"]
    began = time.monotonic()
    boxes.compose("stop", files=[LOCAL])
    state = boxes.containers([LOCAL])["millrace"]["State"]
    equal(state["ExitCode"], 0, f"local: stops in order, in {time.monotonic() - began:.0f} s",
          boxes.logs(files=[LOCAL]))
    boxes.compose("down", "-v", files=[LOCAL])


def check_pdf(boxes, api):
    """pdftotext is in the image, and can be started in its sandbox inside of the container."""
    task = tasks.start(api, tasks.template(api), [
        tasks.upload(api, tasks.pdf(tasks.text_of(7).replace("\n", " ")), "a.pdf")])
    ok(tasks.ended(api, task, seconds=60), "local: a PDF is extracted", tasks.status(api, task))
    row, = api("GET", f"/api/tasks/{task}").body["rows"]
    equal((row["state"], row["values"] and row["values"]["dose"]["value"]), ("completed", 7.5),
          "local: with what it says", row)
    log = boxes.logs(files=[LOCAL])
    ok("child processes run with limits, seccomp, Landlock" in log,
       "local: with all layers that a container leaves", log)


def near_ready(api):
    try:
        return api.get("/readyz").status == 200
    except (OSError, http.client.HTTPException):
        return False


def reachable(boxes, ports, address=ADDRESS):
    """Those of the ports that a client elsewhere can connect to."""
    found = []
    with network(boxes.engine.outside):
        for port in ports:
            with socket.socket() as s:
                s.settimeout(1)
                if s.connect_ex((address, port)) == 0:
                    found.append(port)
    return found


# --- docker-compose.yml ---

def start_by_guide(boxes, block):
    """Line by line; .env and the certificate come in between, from the operator."""
    for line in block.splitlines():
        if line.startswith("cd "):
            equal(line, "cd deploy/docker", "the guide begins in this folder")
            continue
        if "fullchain.pem" in line:
            certificate(boxes.at)
        if "admin add" in line:
            wait_for(lambda: healthy(boxes).get("millrace") == "healthy", 60)
        if "db init" in line:
            boxes.engine.run("docker", "run", "--rm", "--user", "0", "-v", f"{DOCKER}/papers:/p",
                             "millrace", "sample", "--papers", "300", "/p/s")
            boxes.sh("mv papers/s/* papers/")
        done = boxes.sh(line.replace("NAME", "chief"), fails=True,
                        input=PASSWORD + "\n" if "admin add" in line else None)
        ok(done.returncode == 0, line.split("  #")[0].rstrip(), done.stdout[-3000:],
           done.stderr[-3000:], boxes.logs() if done.returncode else "")
        if line.startswith("cp example.env"):
            fill_env(boxes)
            limit_files(boxes)


def fill_env(boxes):
    values = {**SETTINGS, "MYSQL_URL": boxes.mysql_url}
    text = read(f"{boxes.at}/.env")
    for name, value in values.items():
        text, count = re.subn(rf"^{name}=.*", lambda _, v=value, n=name: f"{n}={v}", text,
                              flags=re.M)
        assert count == 1, name
    with open(f"{boxes.at}/.env", "w") as f:
        f.write(text)


def limit_files(boxes):
    """Where even root may not open so many files, the containers have fewer."""
    services = boxes.config()["services"]
    wanted = {n: s["ulimits"]["nofile"] for n, s in services.items() if "ulimits" in s}
    most = open_files(max(wanted.values()))
    boxes.here = []
    if most < max(wanted.values()):
        note(f"this machine allows {most} open files: ulimits of {sorted(wanted)} are lowered")
        with open(f"{boxes.at}/here.yml", "w") as f:
            f.write("services:\n" + "".join(
                f"  {n}: {{ulimits: !override {{nofile: {most}}}}}\n" for n in wanted))
        boxes.here = ["here.yml"]
    boxes.env["COMPOSE_FILE"] = ":".join(["docker-compose.yml", *boxes.here])


def start_sim(boxes):
    boxes.engine.run("docker", "run", "-d", "--name", "sim", "--network", "millrace_front",
                     "--read-only", "millrace", "sim", "--listen", "0.0.0.0:8090", "--seed", "1",
                     "--latency-ms", "20")


def check_running(boxes):
    names = {"nginx", "millrace", "mariadb", "redis"}
    ok(wait_for(lambda: set(healthy(boxes).values()) == {"healthy"}, 90), "all are healthy",
       healthy(boxes), boxes.logs())
    ok(names <= set(healthy(boxes)), "nginx, millrace and the stores have health checks")
    equal(boxes.containers()["migrate"]["State"]["ExitCode"], 0, "tables were made before")
    equal(check_confined(boxes), names | {"prometheus", "grafana"}, "six containers run")
    found = [json.loads(line) for line in boxes.logs("millrace").splitlines()
             if line.startswith("{")]
    equal([x for x in found if x["level"] in ("warn", "error")
           and "vm.max_map_count" not in x["message"]], [],
          "millrace has nothing to say about my.cnf and redis.conf")


def check_ports(boxes, site):
    with network(boxes.engine.inside):
        listening = {int(x.split()[3].rsplit(":", 1)[1])
                     for x in sh("ss", "-Htln").stdout.splitlines()}
    equal(listening, {80, 443}, "the machine listens on 80 and 443 only")
    equal(reachable(boxes, [80, 443, 3000, 3306, 6379, 8080, 9090, 9464]), [80, 443],
          "and nothing else is to be had from elsewhere")
    found = boxes.containers()
    for name, port in (("millrace", 8080), ("mariadb", 3306), ("redis", 6379)):
        for net in found[name]["NetworkSettings"]["Networks"].values():
            ok(net["IPAddress"] and not reachable(boxes, [port], net["IPAddress"]),
               f"{name} is not either, by its address {net['IPAddress']}")
    equal([site.get(p).status for p in ("/healthz", "/metrics", "/readyz")], [200, 404, 404],
          "/healthz is for everyone, /metrics and /readyz are not")


def check_site(boxes, site):
    ok(b"/assets/" in site.get("/").body, "the pages are there")
    with open(f"{boxes.at}/acme/proof", "w") as f:
        f.write("proof")
    boxes.sh("mkdir -p acme/.well-known/acme-challenge; "
             "mv acme/proof acme/.well-known/acme-challenge/")
    with network(boxes.engine.outside):
        c = http.client.HTTPConnection(ADDRESS, timeout=10)
        c.request("GET", "/.well-known/acme-challenge/proof")
        r = c.getresponse()
        equal((r.status, r.read()), (200, b"proof"), "certbot's proof is served from acme/")
        c.close()
    equal(site.get("/grafana/x").body.decode().split(),
          [ADDRESS, "/grafana/x", CLIENT, "https"], "/grafana/ arrives at Grafana")
    target = wait_for(lambda: scraped(boxes), 30)
    equal((target["scrapeUrl"], target["health"]), ("http://millrace:9464/metrics", "up"),
          "Prometheus reads millrace's metrics", target)


def scraped(boxes):
    """What Prometheus says of millrace, once it has asked."""
    done = boxes.engine.run(
        "nsenter", "-t", str(boxes.containers()["prometheus"]["State"]["Pid"]), "-n", "bash", "-c",
        "exec 3<>/dev/tcp/127.0.0.1/9090; printf 'GET /api/v1/targets HTTP/1.0\\r\\n\\r\\n' >&3; "
        "cat <&3")
    target = json.loads(done.stdout.split("\n\n")[1])["data"]["activeTargets"][0]
    return target if target["health"] != "unknown" else None


def screen(site, chief, name, papers=100):
    """A user of the site and a run of theirs."""
    r = site("POST", "/api/register", {"username": name, "password": PASSWORD})
    assert r.status == 201, r.body
    uid = r.body["uid"]
    chief("POST", f"/api/admin/users/{uid}/recharge", {"amount": "1000", "request_id": name})
    chief("POST", f"/api/admin/users/{uid}/permission", {"permission": 4})
    api = site.login(name)
    api.uid = uid
    qid, count = submit(api, papers)
    ok(reaches(api, qid, "DONE", 120), f"{name}'s run of {count} papers is done", view(api, qid))
    equal(view(api, qid)["finished"], count, "all of them are judged")
    return api, qid


def check_screening(boxes, site):
    chief = site.login("chief", path="/api/admin/login")
    equal(chief("POST", "/api/admin/keys", {"key": "sk-simulated", "rpm_limit": 100000,
                                            "tpm_limit": 100000000}).status, 201,
          "a key of the AI service is added")
    api, qid = screen(site, chief, "asher")
    equal([s["ip_address"] for s in api("GET", "/api/sessions").body["sessions"]], [CLIENT],
          "a session has the client's address, not that of nginx")
    other = Api(site.where, ADDRESS6, site.ca).login("asher")
    equal({s["ip_address"] for s in other("GET", "/api/sessions").body["sessions"]},
          {CLIENT, "172.31.250.1"}, "one by IPv6 has Docker's, as the guide says")
    audit(boxes)
    return chief, api, qid


def audit(boxes, files=()):
    done = boxes.compose("exec", "-T", "millrace", "millrace", "audit", files=files, fails=True)
    equal(done.returncode, 0, "every cent is where it belongs", done.stdout, done.stderr)


# --- what happens to them ---

class Visitors:
    """Requests without pause: a page, and a call."""

    def __init__(self, site):
        self.site, self.seen, self.end = site, {"/": [], "/api/me": []}, threading.Event()
        self.threads = [threading.Thread(target=self.work, args=(p,)) for p in self.seen]
        for t in self.threads:
            t.start()

    def work(self, path):
        while not self.end.is_set():
            try:
                self.seen[path].append(self.site.get(path).status)
            except (OSError, http.client.HTTPException) as e:
                self.seen[path].append(repr(e))
            time.sleep(0.02)

    def stop(self):
        self.end.set()
        for t in self.threads:
            t.join()
        return {path: {s: seen.count(s) for s in set(seen)} for path, seen in self.seen.items()}


def check_new_version(boxes, site, api):
    """The container of millrace is replaced while a stranger takes the first address that is
    free."""
    visitors = Visitors(api)
    boxes.compose("stop", "millrace")
    old = boxes.containers()["millrace"]
    boxes.engine.run("docker", "run", "-d", "--name", "stranger", "--network", "millrace_front",
                     "--entrypoint", "sleep", "millrace", "600")
    boxes.compose("up", "-d", "--force-recreate", "--no-deps", "millrace")
    ok(wait_for(lambda: api.get("/api/me").status == 200, 60), "a new millrace is reached",
       boxes.logs("nginx"))
    seen = visitors.stop()
    note(f"meanwhile: {seen}")
    equal(set(seen["/"]), {200}, "the pages were there all the time")
    equal(set(seen["/api/me"]), {200, 503}, "calls were answered, or with 503")
    equal(old["State"]["ExitCode"], 0, "the old one has ended in order")
    ok(boxes.containers()["millrace"]["Id"] != old["Id"], "it is another container")
    boxes.engine.run("docker", "rm", "-f", "stranger")


def check_deaths(boxes, site, api):
    pid = boxes.containers()["millrace"]["State"]["Pid"]
    boxes.sh(f"kill -9 {pid}")
    ok(wait_for(lambda: boxes.containers()["millrace"]["State"]["Pid"] not in (0, pid), 60) and
       wait_for(lambda: api.get("/api/me").status == 200, 60), "millrace comes back when it dies")
    boxes.compose("stop", "grafana", "millrace")
    boxes.compose("restart", "--no-deps", "nginx")
    ok(wait_for(lambda: answers(site), 30), "nginx starts without Grafana and millrace",
       boxes.logs("nginx"))
    equal([site.get("/grafana/").status, site.get("/api/me").status], [503, 503],
          "and says that they are away")
    boxes.compose("start", "grafana", "millrace")
    ok(wait_for(lambda: site.get("/grafana/").status == 200 and api.get("/api/me").status == 200,
                60), "it finds both when they come", boxes.logs("nginx"))


def answers(site):
    try:
        return site.get("/").status == 200
    except OSError:
        return False


def check_renewal(boxes, site, block):
    """The line of the guide again, with another certificate."""
    certificate(boxes.at)
    boxes.sh(next(line for line in block.splitlines() if "fullchain.pem" in line))
    reload = re.search(r"`(docker compose exec nginx nginx -s reload)`",
                       read(f"{PROJECT}/docs/deploying.md").replace("\n", " "))
    boxes.sh(reload[1].replace("exec ", "exec -T "))
    site.ca = f"{boxes.at}/fullchain.pem"
    ok(wait_for(lambda: answers(site), 20), "a renewed certificate is served after a reload",
       boxes.logs("nginx"))


def check_stores_keep(boxes, api, qid):
    """Both stores, and the containers, go; volumes stay."""
    before = view(api, qid)["cost"], api("GET", "/api/me").body["balance"]
    ask = lambda *words: boxes.compose("exec", "-T", "redis", "redis-cli", *words).stdout.split()
    ask("SET", "mark", "1")
    time.sleep(1.2)  # appendfsync everysec
    boxes.compose("down")
    boxes.compose("up", "-d", "--wait", "--wait-timeout", "120", fails=True)
    ok(wait_for(lambda: api.get("/api/me").status == 200, 60), "down and up again", boxes.logs())
    equal(ask("EXISTS", "mark"), ["1"], "Redis has kept what it had")
    ask("DEL", "mark")
    equal((view(api, qid)["cost"], api("GET", "/api/me").body["balance"]), before,
          "so has MariaDB")


def check_settings(boxes):
    ask = lambda text: boxes.exec("mariadb", "mariadb -umysql -S /run/mysqld/mysqld.sock -BNe "
                                  f'"{text}"').stdout.split()
    equal(ask("SELECT @@innodb_log_file_size, @@skip_name_resolve"), [str(512 << 20), "1"],
          "deploy/my.cnf is in force")
    equal(ask("SELECT host FROM mysql.user WHERE user = 'root'"), ["localhost"],
          "root of MariaDB is for the container itself")
    done = boxes.compose("exec", "-T", "redis", "redis-cli", "CONFIG", "GET", "maxmemory*")
    ok(str(4 << 30) in done.stdout.split() and "volatile-lru" in done.stdout,
       "deploy/redis.conf is in force", done.stdout)


def check_backup(boxes, chief, api, backup, restore):
    boxes.sh("mkdir -p /mnt/disk")
    before = api("GET", "/api/me").body["balance"]
    done = boxes.sh(backup)
    name = re.search(r"/(millrace-\w+):", done.stdout + done.stderr)
    assert name, done
    chief("POST", f"/api/admin/users/{api.uid}/recharge", {"amount": "7", "request_id": "later"})
    ok(wait_for(lambda: api("GET", "/api/me").body["balance"] != before, 10), "money comes later")
    done = boxes.sh(re.sub(r"(?m)^B=.*", f"B={name[1]}", restore), fails=True)
    ok(done.returncode == 0, "the guide's commands restore a backup", done.stdout, done.stderr)
    ok(wait_for(lambda: api.get("/api/me").status == 200, 60), "and millrace serves",
       boxes.logs("millrace"))
    equal(api("GET", "/api/me").body["balance"], before, "what it had at the time of the backup")
    return name[1]


# --- docker-compose.managed-mysql.yml ---

def check_copy(boxes, site, name, block):
    """Everything is lost but the copy of a backup."""
    boxes.compose("down", "-v")
    done = boxes.sh(re.sub(r"(?m)^B=.*", f"B={name}", block), fails=True)
    ok(done.returncode == 0, "the guide's commands bring a copy back", done.stdout, done.stderr)
    ok(wait_for(lambda: answers(site) and site.get("/api/me").status == 401, 60),
       "and millrace serves", boxes.logs("millrace"))
    equal(len(site.login("asher")("GET", "/api/queries").body["queries"]), 1, "the run is there")


def start_managed(boxes):
    """A MySQL elsewhere that takes TLS alone."""
    boxes.sh("mkdir -p ca && cp fullchain.pem ca/mysql.pem && mkdir -p /src/db && "
             "install -o 999 -m 400 fullchain.pem privkey.pem /src/db")
    boxes.engine.run(
        "docker", "run", "-d", "--name", "managed", "--network", "millrace_front",
        "--network-alias", "db.example.org", "--user", "mysql", "--tmpfs", "/run/mysqld:mode=1777",
        "-v", "/src/db:/tls:ro", "-e", "MARIADB_DATABASE=millrace", "-e", "MARIADB_USER=millrace",
        "-e", f"MARIADB_PASSWORD={SECRETS['MYSQL_PASSWORD']}", "mariadb:10.11",
        "--ssl-cert=/tls/fullchain.pem", "--ssl-key=/tls/privkey.pem",
        "--require-secure-transport=ON")
    up = "docker exec managed healthcheck.sh --connect --innodb_initialized"
    assert wait_for(lambda: boxes.sh(up, fails=True).returncode == 0, 60)


def check_managed(boxes, site, name, block):
    boxes.compose("stop", "millrace")
    del boxes.env["COMPOSE_FILE"]
    text, count = re.subn(r"(?m)^# (COMPOSE_FILE=.*)", lambda m: ":".join([m[1], *boxes.here]),
                          read(f"{boxes.at}/.env"))
    assert count == 1, text
    with open(f"{boxes.at}/.env", "w") as f:
        f.write(text)
    start_managed(boxes)
    os.rename(f"{boxes.at}/ca/mysql.pem", f"{boxes.at}/ca/other.pem")
    done = boxes.compose("up", "-d", "--no-build", fails=True)
    ok(done.returncode != 0 and "migrate" in done.stderr and "ca/mysql.pem" in
       boxes.logs("migrate"),
       "managed: without the authority of its certificate nothing starts",
       done.stderr, boxes.logs("migrate"))
    os.rename(f"{boxes.at}/ca/other.pem", f"{boxes.at}/ca/mysql.pem")
    boxes.compose("exec", "-T", "redis", "redis-cli", "FLUSHALL")
    block = block.replace("mariadb redis", "redis")
    done = boxes.sh(re.sub(r"(?m)^B=.*", f"B={name}", block), fails=True)
    ok(done.returncode == 0, "managed: the guide's commands bring a copy into it", done.stdout,
       done.stderr, boxes.logs("migrate"))
    ok(wait_for(lambda: set(healthy(boxes).values()) == {"healthy"}, 90), "managed: all healthy",
       healthy(boxes), boxes.logs())
    equal(check_confined(boxes), {"nginx", "millrace", "redis", "prometheus", "grafana"},
          "managed: MariaDB is not among them")
    chief = site.login("chief", path="/api/admin/login")
    screen(site, chief, "berta")
    audit(boxes)
    rows = boxes.sh("docker exec managed mariadb -umysql -S /run/mysqld/mysqld.sock -BNe \"SELECT "
                    "COUNT(*) FROM information_schema.processlist WHERE user = 'millrace'\"")
    ok(int(rows.stdout) > 0, "managed: it is this one that millrace works with", rows.stdout)


def main():
    why = missing()
    if why:
        ok(False, f"the images cannot be tried here: {why}")
        finish()
    with Engine() as engine:
        try:
            everything(Boxes(engine))
        except Exception:
            ok(False, "the test goes to its end", traceback.format_exc())
    finish()


def everything(boxes):
    boxes.mysql_url = "mysql://millrace@db.example.org/millrace?tls=verify" \
                      "&ca=/etc/millrace/ca/mysql.pem"
    start, backup, restore, copy = guide()
    boxes.engine.base_image("debian:12-slim")
    check_local(boxes)
    stand_ins_first(boxes)
    start_by_guide(boxes, start)
    check_files(boxes)
    check_refusals(boxes)
    check_images(boxes)
    check_context(boxes)
    start_sim(boxes)
    site = Api(boxes.engine.outside, ADDRESS, f"{boxes.at}/fullchain.pem")
    check_running(boxes)
    check_ports(boxes, site)
    check_site(boxes, site)
    chief, api, qid = check_screening(boxes, site)
    check_new_version(boxes, site, api)
    check_deaths(boxes, site, api)
    check_renewal(boxes, site, start)
    api.ca = chief.ca = site.ca
    check_settings(boxes)
    name = check_backup(boxes, chief, api, backup, restore)
    check_stores_keep(boxes, api, qid)
    check_copy(boxes, site, name, copy)
    check_managed(boxes, site, name, copy)


def stand_ins_first(boxes):
    """compose would ask a registry for them."""
    boxes.env.update({**SETTINGS, "MYSQL_URL": boxes.mysql_url})
    build_stand_ins(boxes)
    boxes.env.clear()


main()
