"""Rows for what root types on a machine that serves: the package, nginx, stores, Prometheus,
containers, upgrades."""
import json
import os
import re

from guide_table import PASSWORD, equal, ok, row, settle

SITE = "https://screening.example.org"
ACME = "/root/acme"
SETTINGS = "/etc/millrace/config.json"
YES = "y\n"
SECRET = "0123456789abcdef"


def settings(here, text):
    """What a block of JSON on a page says, in addition to what is there; unless it is about another
    machine."""
    if "example.org" in text:
        return
    merged = {**json.loads(here.read(SETTINGS)), **json.loads(text)}
    here.write(SETTINGS, json.dumps(merged, indent=2).replace("PASSWORD", SECRET))


def reloaded(here, old):
    settle(lambda: here.nodes() and not old & here.nodes(), 60, "new nodes, and no old ones")
    here.wait_ready()


# --- the package ---

@row("deploy/package")
def _(here):
    if not here.exists("build-package/millrace_0.1.0-1_amd64.deb"):
        here.run(network=True, timeout=1800)
    here.package = here.sh("ls build-package/*.deb").split()[-1]


@row("apt install ./build-package/millrace_0.1.0-1_amd64.deb",
     "apt-get install ./build-package/millrace_0.1.0-1_amd64.deb")
def _(here):
    here.run(stdin=YES, network=True)
    equal(here.sh("systemctl is-active millrace").strip(), "active", "the service is started")
    here.wait_ready()


@row("millrace admin add NAME --super")
def _(here):
    """On two pages."""
    here.chief = f"chief{here.command.line}"
    here.run(stdin=PASSWORD + "\n", NAME=here.chief)
    token = here.login(here.chief, admin=True)
    equal(here.api("/admin/me", token=token)[1]["role"], "super", "a super admin logs in")


@row("systemctl status millrace")
def _(here):
    ok('Status: "' in here.run(), "it says how the service is")


@row("journalctl -u millrace")
def _(here):
    ok("millrace is ready at http://127.0.0.1:8080" in here.run(), "the log")


@row("systemd-analyze security millrace")
def _(here):
    told = re.search(r"rates it ([\d.]+)", here.sh("cat deploy/debian/README.md"))[1]
    rated = re.search(r"exposure level for \S+: ([\d.]+)", here.run())[1]
    ok(float(rated) <= float(told), f"rated {rated}, the page says {told}")


@row("systemctl enable --now millrace-backup.timer")
def _(here):
    here.run()
    ok("millrace-backup.service" in here.sh("systemctl list-timers"), "every night")
    here.sh("systemctl start millrace-backup.service")
    names = here.sh("ls /var/backups/millrace").split()
    ok(len(names) == 1 and re.fullmatch(r"millrace-\d{8}T\d{6}Z", names[0]), "a backup", names)
    here.backup = names[0]


@row("systemctl enable --now millrace-embed.timer")
def _(here):
    here.run()
    ok("millrace-embed.service" in here.sh("systemctl list-timers"), "every night")
    here.sh("systemctl start millrace-embed.service")
    ok("units are queued" in here.sh("journalctl -u millrace-embed"), "it looks for changes")


@row("systemctl stop millrace")
def _(here):
    here.run()
    equal(here.nodes(), set(), "it is stopped")


@row("systemctl start millrace")
def _(here):
    here.run()
    here.wait_ready()


@row("millrace restore --overwrite /var/backups/millrace/millrace-20261117T030000Z")
def _(here):
    """The machine was lost: another one starts with an empty database."""
    here.sh("rm -r /var/lib/millrace; systemctl start millrace; systemctl stop millrace")
    out = here.run(**{"millrace-20261117T030000Z": here.backup})
    ok("Restored: " in out and "The database from before is in" in out, "the old one is aside", out)


@row("millrace audit")
def _(here):
    ok("no findings, every cent is where it belongs" in here.run(), "it has no findings")
    ok(here.login(here.chief, admin=True), "the admin is there")


# --- nginx ---

@row("apt-get install nginx-light certbot")
def _(here):
    """On a machine that has none yet."""
    here.sh("apt-get purge -y nginx-light nginx-common certbot", network=True, check=False)
    here.run(stdin=YES, network=True)
    settle(lambda: here.curl("http://screening.example.org/")[0] == 200, 20, "nginx answers")


@row("cp deploy/nginx/millrace.conf /etc/nginx/sites-available/millrace.conf",
     "ln -s ../sites-available/millrace.conf /etc/nginx/sites-enabled/millrace.conf",
     "rm /etc/nginx/sites-enabled/default",
     "mkdir -p /etc/ssl/millrace /var/www/acme")
def _(here):
    here.run()


@row("openssl req -x509 -newkey rsa:2048 -nodes -days 30 -subj /CN=screening.example.org "
     "-keyout /etc/ssl/millrace/privkey.pem -out /etc/ssl/millrace/fullchain.pem")
def _(here):
    ok(here.box.run("nginx -t", check=False).returncode, "nginx does not start without one")
    here.run()


@row("nginx -t && systemctl reload nginx")
def _(here):
    here.run()
    settle(lambda: here.curl("-k", SITE + "/healthz")[1].strip() == "ok", 20, "the site answers")


@row("certbot certonly --webroot -w /var/www/acme -d screening.example.org --deploy-hook "
     "'cp -L \"$RENEWED_LINEAGE\"/*.pem /etc/ssl/millrace/ && systemctl reload nginx'",
     why="Let's Encrypt is out of reach: the same, asked of an authority on this machine")
def _(here):
    with open(os.path.join(os.path.dirname(__file__), "acme.py")) as f:
        here.write(ACME + "/acme.py", f.read())
    here.authority = here.start(here.log + ".acme", f"python3 {ACME}/acme.py 14000 {ACME}")
    settle(lambda: here.curl("http://127.0.0.1:14000/directory")[0] == 200, 20, "an authority")
    here.write("/etc/letsencrypt/cli.ini", "server = http://127.0.0.1:14000/directory\n"
               "agree-tos = true\nregister-unsafely-without-email = true\nnon-interactive = true\n")
    here.run()
    here.sh(f"cp {ACME}/ca.pem /usr/local/share/ca-certificates/t.crt && update-ca-certificates")
    settle(lambda: here.curl(SITE + "/healthz")[1].strip() == "ok", 20, "the certificate is valid")
    serial = lambda: here.sh("openssl x509 -noout -serial -in /etc/ssl/millrace/fullchain.pem")
    first = serial()
    here.sh("certbot renew --force-renewal --no-random-sleep-on-renew")
    ok(serial() != first, "renewals repeat the hook")


@row("systemctl reload millrace")
def _(here):
    old = here.nodes()
    here.run()
    reloaded(here, old)


@row("curl -I http://screening.example.org/")
def _(here):
    out = here.run()
    ok("301 Moved" in out and f"Location: {SITE}/" in out, "301, to https", out)


@row("curl https://screening.example.org/healthz")
def _(here):
    ok(here.run().startswith("ok"), "ok")
    status, page = here.curl(SITE + "/")
    ok(status == 200 and "/assets/" in page, "the pages", page)
    said = here.sh("curl -si -H 'Content-Type: application/json' -d '{}' {}/api/admin/login".format(
        json.dumps({"username": here.chief, "password": PASSWORD}), SITE))
    ok(" 200" in said.splitlines()[0] and re.search(r"(?i)^set-cookie: .*; Secure", said, re.M),
       "a log-in gets a cookie that is Secure", said)


# --- stores ---

@row("millrace backup /var/backups/millrace/private")
def _(here):
    here.sh(f"echo '{PASSWORD}' | millrace user add mei --balance 100.00")
    ok("verified" in here.run(), "a backup")


@row("apt-get install mariadb-server redis-server")
def _(here):
    here.run(stdin=YES, network=True)


@row("cp deploy/my.cnf /etc/mysql/mariadb.conf.d/60-millrace.cnf",
     "cp deploy/redis.conf /etc/redis/redis.conf",
     'echo "dir /var/lib/redis" >>/etc/redis/redis.conf')
def _(here):
    here.run()


@row('echo "requirepass PASSWORD" >>/etc/redis/redis.conf')
def _(here):
    here.run(PASSWORD=SECRET)


@row("systemctl restart mariadb redis-server")
def _(here):
    here.run()
    settle(lambda: here.sh("systemctl is-active mariadb redis-server").split() == ["active"] * 2,
           30, "both run")


@row('mariadb -e "CREATE DATABASE millrace"')
def _(here):
    here.run()


@row("mariadb -e \"GRANT ALL ON millrace.* TO millrace@127.0.0.1 IDENTIFIED BY 'PASSWORD'\"")
def _(here):
    here.run(PASSWORD=SECRET)


@row("millrace restore /var/backups/millrace/private")
def _(here):
    out = here.run()
    ok("Restored: " in out, "everything is in the new stores", out)
    equal(here.sh("mariadb -N millrace -e 'SELECT username, balance FROM user_info'").split(),
          ["mei", "100.00"], "the user is")


# --- metrics ---

@row("apt-get install --no-install-recommends prometheus")
def _(here):
    equal(here.curl("http://127.0.0.1:8080/metrics")[0], 404, "no metrics where the pages are")
    equal(here.curl("http://127.0.0.1:9464/metrics")[0], 200, "they have an address of their own")
    here.run(stdin=YES, network=True)


@row("cp deploy/prometheus/prometheus.yml deploy/prometheus/alerts.yml /etc/prometheus/",
     "promtool check config /etc/prometheus/prometheus.yml",
     "promtool test rules deploy/prometheus/alerts_test.yml")
def _(here):
    here.run()


@row("systemctl restart prometheus")
def _(here):
    here.run()
    up = lambda: here.curl("-g", "http://127.0.0.1:9090/api/v1/query?query=up{job='millrace'}")[1]
    settle(lambda: '"1"]' in up(), 60, "Prometheus sees millrace", up())


# --- containers ---

@row("cd deploy/docker", "mkdir -p acme papers",
     "sudo install -D -o 33 -m 400 -t tls fullchain.pem privkey.pem",
     "cp example.env .env && chmod 600 .env", "docker compose up -d --build",
     "docker compose exec millrace millrace admin add NAME --super",
     "docker compose exec millrace millrace db init --data /papers",
     "docker compose exec millrace millrace db warm",
     "docker compose exec millrace millrace backup --keep 7 /var/lib/millrace/backups",
     "docker compose cp millrace:/var/lib/millrace/backups /mnt/disk/",
     "B=millrace-20261117T020000Z", "docker compose stop millrace",
     "docker compose run --rm millrace restore --overwrite /var/lib/millrace/backups/$B",
     "docker compose up -d", "docker compose exec millrace millrace audit",
     "sudo chown -R 10001 /mnt/disk/backups/$B",
     "docker compose up -d --wait mariadb redis",
     "docker compose run --rm --no-deps -v /mnt/disk/backups/$B:/copy:ro millrace restore /copy",
     "docker compose up -d --remove-orphans",
     why="tests/deploy/test_images.py runs it, in a Docker of its own")
def containers(here):
    """That test takes its commands from this part of the page (check_elsewhere)."""


# --- upgrades ---

@row("millrace backup /var/backups/millrace/before-the-update")
def _(here):
    ok("verified" in here.run(), "a backup")


@row("apt install ./DEB")
def _(here):
    here.sh("deploy/package --revision 2 --binary build-package/millrace", network=True)
    old = here.nodes()
    here.run(stdin=YES, network=True, DEB="build-package/millrace_0.1.0-2_amd64.deb")
    reloaded(here, old)
    ok("0.1.0-2" in here.sh("dpkg-query -W millrace"), "the newer package is installed")


@row("millrace db migrate")
def _(here):
    ok("Nothing to do" in here.run(), "the tables are up to date")


@row("millrace --version")
def _(here):
    ok(re.match(r"millrace \d", here.run()), "which program it is")
