"""Webhooks that users name (OPS-9): signed, told at least once with one id, and no way into the
operator's network."""
import json
import time

from harness import equal, ok, run_tests, sql, test, wait_for
from receiver import Receiver, signed
from screening import person, server
from sim import Sim, certificate
from tasks import ended, start, submit, template, uploads

ALLOW = {"MILLRACE_WEBHOOK_ALLOW": "127.0.0.0/8"}


def deliveries(m):
    return [tuple(r) for r in sql(
        m, "SELECT state, tries, COALESCE(error, '') FROM webhook_delivery ORDER BY number")]


def hurry(m):
    """The next try is now."""
    sql(m, "UPDATE webhook_delivery SET due_at = UTC_TIMESTAMP(3) WHERE state = 'pending'")


def with_receiver(name, *statuses, allow=True, trusted=True, **options):
    def wrap(fn):
        @test(name)
        def _():
            ours, theirs = certificate("hook"), certificate("other")
            env = {**(ALLOW if allow else {}),
                   "MILLRACE_WEBHOOK_CA_FILE": (ours if trusted else theirs)[0]}
            with Receiver(ours, statuses, **options) as hook, Sim() as sim, server(
                    sim, papers=200, **env) as m:
                ada = person(m, "ada")
                fn(m, hook, ada, template(ada), uploads(ada, 2))
    return wrap


@with_receiver("a webhook is told once that a task is completed", 500)
def _(m, hook, ada, mine, ids):
    r = submit(ada, mine, ids, webhook=hook.url, name="Doses", request_id="w")
    task, secret = r.body["taskId"], r.body["webhook_secret"]
    ok(secret.startswith("whsec_"), "the secret is told at the submission")
    equal(submit(ada, mine, ids, webhook=hook.url, name="Doses",
                 request_id="w").body["webhook_secret"], secret, "and when it is repeated")
    ok(ended(ada, task), "completed")
    ok(wait_for(lambda: len(hook.got) == 1, 20), "told")
    ok(wait_for(lambda: deliveries(m)[0][:2] == ("pending", "1"), 10), "it refuses",
       deliveries(m))
    hurry(m)
    ok(wait_for(lambda: len(hook.got) == 2, 20), "told again")
    ok(wait_for(lambda: deliveries(m) == [("delivered", "2", "")], 10), "it was taken",
       deliveries(m))
    (first, body), (again, _) = hook.got
    equal(first["Webhook-Id"], again["Webhook-Id"], "with the same id")
    ok(signed(secret, first, body) and signed(secret, again, body), "signed", first)
    ok(not signed("whsec_AAAA", first, body), "with that secret alone")
    ok(abs(int(again["Webhook-Timestamp"]) - time.time()) < 60, "and the time")
    equal(json.loads(body), {"event": "task.completed", "task_id": task, "name": "Doses",
                             "status": "completed", "total": 2, "success": 2, "failed": 0},
          "what it is told")
    time.sleep(3)
    equal(len(hook.got), 2, "and no more")
    other = start(ada, mine, ids, webhook=hook.url)
    ok(wait_for(lambda: len(hook.got) == 3, 40), "the next task is told of")
    ok(hook.got[2][0]["Webhook-Id"] != first["Webhook-Id"] and other in hook.got[2][1].decode(),
       "with another id")


@with_receiver("an address that is not public is not called", allow=False)
def _(m, hook, ada, mine, ids):
    for url in (hook.url, hook.url.replace("127.0.0.1", "localhost"),
                hook.url.replace("127.0.0.1", "[::1]"),
                hook.url.replace("127.0.0.1", "[::ffff:127.0.0.1]"),
                "https://169.254.169.254/latest/meta-data", "https://0.0.0.0/"):
        ok(ended(ada, start(ada, mine, ids[:1], webhook=url)), url)
    ok(wait_for(lambda: len([d for d in deliveries(m) if d[1] != "0"]) == 6, 30), "all were tried",
       deliveries(m))
    equal({d[0] for d in deliveries(m)}, {"pending"}, "none was delivered")
    ok(all("not allowed" in d[2] or "cannot be used" in d[2] for d in deliveries(m)),
       "each says why", deliveries(m))
    equal(hook.got, [], "nothing was sent")


@with_receiver("a redirect is not followed", 302, 307, location="https://127.0.0.1:1/elsewhere")
def _(m, hook, ada, mine, ids):
    start(ada, mine, ids, webhook=hook.url)
    ok(wait_for(lambda: deliveries(m) and "302" in deliveries(m)[0][2], 30), "it is a refusal",
       deliveries(m))
    hurry(m)
    ok(wait_for(lambda: "307" in deliveries(m)[0][2], 20), "so is another", deliveries(m))


@with_receiver("a reply of 64 KB is too long", 200, length=100 * 1024)
def _(m, hook, ada, mine, ids):
    start(ada, mine, ids, webhook=hook.url)
    ok(wait_for(lambda: deliveries(m) and deliveries(m)[0][1] == "1", 30), "called")
    equal(deliveries(m)[0][0], "pending", "and not taken", deliveries(m))


@with_receiver("a certificate that nobody vouches for", trusted=False)
def _(m, hook, ada, mine, ids):
    start(ada, mine, ids, webhook=hook.url)
    ok(wait_for(lambda: deliveries(m) and deliveries(m)[0][1] == "1", 30), "called",
       deliveries(m))
    equal((deliveries(m)[0][0], hook.got), ("pending", []), "nothing was sent", deliveries(m))
    sql(m, "UPDATE webhook_delivery SET created_at = UTC_TIMESTAMP(3) - INTERVAL 25 HOUR")
    hurry(m)
    ok(wait_for(lambda: deliveries(m)[0][:2] == ("failed", "2"), 20),
       "after a day it is given up", deliveries(m))
    text = m.get("/metrics").body.decode()
    ok('millrace_webhooks_total{outcome="failed"' in text, "and counted")


run_tests()
