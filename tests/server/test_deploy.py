"""What deploy/ has: promtool on metrics and rules; redis-server and mariadbd with redis.conf and
my.cnf, which millrace's own check must accept; what the containers' files promise."""
import os
import re
import shutil
import subprocess
import time

from front import ROOT, free_port, write
from harness import Millrace, environment, equal, folder, ok, run, run_tests, test, wait_for

DEPLOY = os.path.join(ROOT, "deploy")


def read(path):
    with open(os.path.join(DEPLOY, path)) as f:
        return f.read()


def promtool(*words, stdin=None):
    return subprocess.run(["promtool", *words], capture_output=True, text=True, input=stdin,
                          timeout=300)


@test("Prometheus")
def _():
    at = os.path.join(DEPLOY, "prometheus")
    for words in (("check", "config", f"{at}/prometheus.yml"),
                  ("check", "rules", f"{at}/alerts.yml"),
                  ("test", "rules", f"{at}/alerts_test.yml")):
        r = promtool(*words)
        equal(r.returncode, 0, "promtool " + " ".join(words[:2]), r.stdout, r.stderr)
    rules = read("prometheus/alerts.yml")
    names = set(re.findall(r"alert: (\w+)", rules))
    page = open(os.path.join(ROOT, "docs/monitoring.md")).read()
    told = set(re.findall(r"^\| `(Millrace\w+)` \|", page, re.M))
    equal(told, names, "docs/monitoring.md explains every rule")
    tried = set(re.findall(r'alertname="(\w+)"', read("prometheus/alerts_test.yml")))
    equal(tried, names, "alerts_test.yml tries every rule")
    with Millrace() as m:
        assert wait_for(m.ready, 30), m.get("/readyz")
        time.sleep(6)  # the overview is collected
        metrics = m.get("/metrics").body.decode()
        r = promtool("check", "metrics", stdin=metrics)
        equal((r.returncode, r.stdout, r.stderr), (0, "", ""), "promtool check metrics is content")
        there = set(re.findall(r"^(millrace_\w+)", metrics, re.M))
        used = set(re.findall(r"\bmillrace_\w+", "\n".join(
            re.findall(r"expr:(.*?)\n        (?:for|labels)", rules, re.S))))
        ok(len(used) > 15, "rules use metrics", len(used))
        equal(used - there, set(), "that there are")
        equal([health(m.port), health(free_port())], [True, False],
              "the containers' health check sees a server, or that there is none")


def health(port):
    return subprocess.run(["bash", os.path.join(DEPLOY, "docker/health")], capture_output=True,
                          env={**os.environ, "MILLRACE_LISTEN": f"0.0.0.0:{port}"},
                          timeout=30).returncode == 0


class Stores:
    """redis-server and mariadbd with the files of deploy/, for this machine's ports and folders."""

    def __init__(self, redis_change=(), mysql_change=()):
        self.dir = folder()
        self.redis_port, self.mysql_port = free_port(), free_port()
        redis = read("redis.conf")
        for old, new in (("port 6379", f"port {self.redis_port}"),
                         ("maxmemory 4gb", "maxmemory 256mb"),
                         ("bind 127.0.0.1 -::1", "bind 127.0.0.1"), *redis_change):
            assert old in redis, old
            redis = redis.replace(old, new)
        mysql = read("my.cnf")
        for old, new in (("innodb_buffer_pool_size = 1G", "innodb_buffer_pool_size = 64M"),
                         ("innodb_log_file_size = 512M", "innodb_log_file_size = 32M"),
                         *mysql_change):
            assert old in mysql, old
            mysql = mysql.replace(old, new)
        self.redis_conf = write(f"{self.dir}/redis.conf", redis)
        self.my_cnf = write(f"{self.dir}/my.cnf", mysql)

    def __enter__(self):
        data, sock = f"{self.dir}/mysql", f"{self.dir}/sock"
        subprocess.run(["mariadb-install-db", "--no-defaults", "--force", "--skip-test-db",
                        f"--datadir={data}"], check=True, capture_output=True)
        # Debian's redis-tools has the server in a program of another name.
        redis = shutil.which("redis-server") or shutil.which("redis-check-rdb")
        start = lambda *words, program=None: subprocess.Popen(
            words, executable=program, env=environment(), cwd=self.dir, stderr=subprocess.STDOUT,
            stdout=open(f"{self.dir}/log", "a"))
        self.processes = [
            start("redis-server", self.redis_conf, "--dir", self.dir, "--requirepass", "secret",
                  program=redis),
            start("mariadbd", f"--defaults-file={self.my_cnf}", f"--datadir={data}",
                  f"--socket={sock}", f"--port={self.mysql_port}", "--user=root")]
        ask = lambda text: subprocess.run(["mariadb", "--no-defaults", "-uroot", "-S", sock, "-e",
                                           text], capture_output=True, text=True)
        up = wait_for(lambda: ask("SELECT 1").returncode == 0, 60)
        assert up, open(f"{self.dir}/log").read()[-2000:]
        made = ask("CREATE DATABASE millrace; CREATE USER m@'127.0.0.1' IDENTIFIED BY 'secret';"
                   "GRANT ALL ON millrace.* TO m@'127.0.0.1'")
        assert made.returncode == 0, made
        self.env = {
            "MILLRACE_REDIS_URL": f"redis://:secret@127.0.0.1:{self.redis_port}",
            "MILLRACE_MYSQL_URL": f"mysql://m:secret@127.0.0.1:{self.mysql_port}/millrace"}
        return self

    def __exit__(self, *_):
        for p in self.processes:
            p.terminate()
        for p in self.processes:
            p.wait(60)


@test("redis.conf and my.cnf")
def _():
    with Stores() as stores:
        r = run("db", "migrate", env=stores.env, timeout=120)
        equal(r.returncode, 0, "the tables are made", r.stdout, r.stderr)
        with Millrace(data=folder(), env=stores.env) as m:
            ok(wait_for(m.ready, 30), "millrace is ready on both", m.log())
            found = [line for line in m.log().splitlines() if re.search(r" (warn|error) ", line)
                     and "running as root" not in line and "vm.max_map_count" not in line]
            equal(found, [], "and has nothing to say about their settings")


@test("settings that lose money")
def _():
    """The same with one line changed: the check is what accepted the files."""
    for change, line in (
            ({"redis_change": [("appendonly yes", "appendonly no")]}, "appendonly yes"),
            ({"mysql_change": [("innodb_flush_log_at_trx_commit = 1",
                                "innodb_flush_log_at_trx_commit = 2")]},
             "innodb_flush_log_at_trx_commit = 1")):
        with Stores(**change) as stores:
            m = Millrace(data=folder(), env=stores.env).launch()
            equal(m.wait(60), 1, f"without {line} the start is refused", m.log())
            ok(f'set "{line}"' in m.log(), "and the line is named", m.log())


@test("containers")
def _():
    """What can be read off the files; tests/deploy/test_images.py builds and starts them."""
    compose = read("docker/docker-compose.yml")
    equal(re.findall(r"^\s+ports: (.*)$", compose, re.M), ['["80:80", "443:443"]'],
          "only 80 and 443 are published")
    local = read("docker/docker-compose.local.yml")
    equal(re.findall(r"^\s+ports: (.*)$", local, re.M), ['["127.0.0.1:8080:8080"]'],
          "and this machine's 8080 by the local one")
    ok('MILLRACE_LOCAL_DEVELOP_MODE: "true"' in local and
       "MILLRACE_PERSIST_USER_INFO: ${PERSIST_USER_INFO:-false}" in local and
       "LOCAL_DEVELOP" not in compose,
       "persistence is off in the local one alone")
    variables = set(re.findall(r"\bMILLRACE_[A-Z_]+", compose + local + read("docker/Dockerfile")
                               + read("docker/docker-compose.managed-mysql.yml")))
    page = open(os.path.join(ROOT, "docs/configuration.md")).read()
    equal(variables - set(re.findall(r"`(MILLRACE_[A-Z_]+)`", page)), set(),
          "every setting in them exists")
    managed = read("docker/docker-compose.managed-mysql.yml")
    wanted = set(re.findall(r"\$\{([A-Z_]+)", compose + managed))
    given = set(re.findall(r"^([A-Z_]+)=", read("docker/example.env"), re.M))
    equal(wanted, given, "example.env has every variable")
    docker = read("docker/Dockerfile")
    stages = re.split(r"^FROM ", docker, flags=re.M)[1:]
    for stage in stages:
        name = stage.split("AS ")[1].split()[0]
        if name in ("millrace", "local", "front"):
            users = re.findall(r"^USER (\S+)", stage, re.M)
            ok(users and users[-1] not in ("root", "0"), f"{name} does not run as root", users)
    with open(os.path.join(ROOT, "scripts/common.sh")) as f:
        build = set(" ".join(re.findall(r'PACKAGES_BUILD="(.*)"', f.read())).split()) - {
            "$PACKAGES_BUILD"}
    equal({p for p in build if not re.search(rf"\s{re.escape(p)}\s", docker)}, set(),
          "the image is built with the packages of ./run")
    equal(read("docker/prometheus.yml").split("global:")[1],
          read("prometheus/prometheus.yml").split("global:")[1].replace("127.0.0.1:9464",
                                                                        "millrace:9464"),
          "Prometheus is set up as without containers")


run_tests()
