"""The webhook of alerts over TLS, and alerts about money."""
import re
import shutil
import signal
import subprocess
import time

from admins import admin
from harness import Millrace, equal, folder, ok, redis_link, run_tests, test, wait_for
from hook import Hook, overview
from proxy import Proxy


def certificate(path):
    """One that vouches for itself, at 127.0.0.1."""
    subprocess.run([
        "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
        "-nodes", "-days", "2", "-subj", "/CN=hook", "-addext", "subjectAltName=IP:127.0.0.1",
        "-keyout", path + ".key", "-out", path + ".crt"], check=True, capture_output=True)
    return path


def money_off(m, root, hook):
    """What an audit has found, and records that nobody can write: as Redis would have them."""
    link, nobody = redis_link(m), "999999"
    link("SET", "sys:drift", "1234 2")
    link("SET", "sys:audited", int(time.time() * 1000))
    records = [f'{{"seq":{i},"timestamp":1,"kind":"charge","cost":1}}' for i in range(1, 7)]
    link("RPUSH", f"billing_queue:{nobody}", *records)
    link("ZADD", "sys:billing", int(time.time() * 1000), nobody)
    hook.told("drift", ["begun"])
    billing = overview(root)["billing"]
    ok((billing["drift_cents"], billing["findings"], billing["records"], billing["records_max"],
        billing["alarm"]) == (1234, 2, 6, 5, True), "the overview has both", billing)
    hook.told("billing", ["begun"])
    link("SET", "sys:drift", "0 0")
    link("DEL", f"billing_queue:{nobody}")
    hook.told("drift", ["begun", "ended"])
    hook.told("billing", ["begun", "ended"])
    equal([b["text"] for _, _, b in hook.got
           if b["event"] == "begun" and b["alert"] in ("drift", "billing")],
          ['millrace: the audit has 2 findings, 12.34 is not where it belongs; "millrace audit" '
           'shows more',
           "millrace: 6 charges wait to be written to MySQL; more than 5 is too many"], "in words")


@test("a webhook over TLS")
def _():
    place = folder()
    ours, theirs = certificate(f"{place}/ours"), certificate(f"{place}/theirs")
    trusted = f"{place}/trusted.crt"
    shutil.copy(theirs + ".crt", trusted)
    failed = lambda m: sum(
        float(v) for v in re.findall(r'^millrace_alert_messages_total{outcome="failed"[^ ]* (\S+)$',
                                     m.get("/metrics").body.decode(), re.M))
    with Hook(ours) as hook, Millrace(env={
            "MILLRACE_ALERT_WEBHOOK_URL": hook.url, "MILLRACE_ALERT_CA_FILE": trusted,
            "MILLRACE_ALERT_BILLING_RECORDS": "5"}) as m:
        assert wait_for(m.ready, 30), m.get("/readyz")
        root = admin(m, "root")
        kid = root("POST", "/api/admin/keys",
                   {"key": "sk-that-was-refused", "active": False}).body["id"]
        redis_link(m)("HSET", "sys:keyring:errors", kid,
                      f"{int(time.time() * 1000)} refused status 401: it was switched off")
        ok(wait_for(lambda: failed(m) >= 2, 20),
           "a certificate that nobody vouches for: the message is not sent, and tried again",
           m.log())
        lines = [l for l in m.log().splitlines() if "could not be told" in l]
        ok(lines and all("certificate" in l for l in lines), "the log says why", *lines)
        equal((hook.got, "s3cr3t" in m.log()), ([], False),
              "the webhook has heard nothing, and the log does not name its path")
        shutil.copy(ours + ".crt", trusted)
        m.send_signal(signal.SIGHUP)
        hook.told(f"key:{kid}", ["begun"])
        r = root("POST", f"/api/admin/keys/{kid}", {"active": False})
        equal(r.status, 200, "an admin decides", r)
        hook.told(f"key:{kid}", ["begun", "ended"])
        money_off(m, root, hook)


@test("a webhook through the environment's proxy")
def _():
    with Hook() as hook, Proxy() as proxy:
        url = hook.url.replace("127.0.0.1", "hook.test")
        with Millrace(env={"MILLRACE_ALERT_WEBHOOK_URL": url, "http_proxy": proxy.url(),
                           "MILLRACE_AI_PROXY": "none"}) as m:
            assert wait_for(m.ready, 30), m.get("/readyz")
            link = redis_link(m)
            link("SET", "sys:drift", "1234 2")
            link("SET", "sys:audited", int(time.time() * 1000))
            hook.told("drift", ["begun"])
            ok(any(head.startswith("CONNECT hook.test:") for head in proxy.seen),
               "ai.proxy does not count for it", proxy.seen)


run_tests()
