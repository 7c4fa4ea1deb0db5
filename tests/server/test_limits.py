"""GET /api/limits: what a user may start, what was started, and when that ends (LIM-1)."""
import calendar
import datetime
import os
import signal
import time

from admins import uid_of, user
from client import Api, with_server
from harness import equal, freeze, ok, redis_link, run_tests, wait_for


def rows(api):
    r = api("GET", "/api/limits")
    assert r.status == 200, r
    return {(x["kind"], x["period"]): x for x in r.body["limits"]}


def at(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


@with_server("limits are shown before they are reached", MILLRACE_LIMIT_TRAINING_PLAN_DAY="7",
             MILLRACE_LIMIT_NUTRITION_PLAN_MONTH="0")
def _(m):
    api = user(m, "asher")
    seen = rows(api)
    equal({k: v["limit"] for k, v in seen.items()},
          {("training_plan", "minute"): 10, ("training_plan", "day"): 7,
           ("training_plan", "month"): 1000, ("nutrition_plan", "minute"): 10,
           ("nutrition_plan", "day"): 100, ("nutrition_plan", "month"): None,
           ("extraction", "minute"): 20000, ("extraction", "day"): 200000,
           ("extraction", "month"): 2000000, ("embedding", "minute"): 20,
           ("embedding", "day"): 500, ("embedding", "month"): None},
          "every kind and period, by the settings; 0 is no limit")
    equal({v["used"] for v in seen.values()}, {0}, "nothing is used")
    now = time.time()
    ends = {p: at(seen["training_plan", p]["ends"]) - now for p in ("minute", "day", "month")}
    ok(-5 < ends["minute"] <= 60 and ends["minute"] <= ends["day"] <= 86400 and
       ends["day"] <= ends["month"] <= 31 * 86400, "each period has its end", ends)
    today = calendar.timegm(time.gmtime(now)[:3] + (0, 0, 0))
    redis_link(m)("HSET", f"user:{uid_of(api)}:limits", "training_plan:day", f"{today} 3",
                  "training_plan:minute", "60 9")
    seen = rows(api)
    equal((seen["training_plan", "day"]["used"], seen["training_plan", "minute"]["used"]), (3, 0),
          "what was counted today counts, and what belongs to another minute does not")
    equal(rows(user(m, "boris"))["training_plan", "day"]["used"], 0, "for this user alone")
    equal(Api(m)("GET", "/api/limits").status, 401, "a session is needed")
    ok('millrace_limit_rejections_total{kind="training_plan",period="day"'
       in m.get("/metrics").body.decode(), "refusals have a metric")


@with_server("limits while Redis is away")
def _(m):
    api = user(m, "asher")
    freeze(m.pid_of("redis"))
    try:
        ok(wait_for(lambda: (r := api("GET", "/api/limits")).status == 200 and
                    r.body.get("degraded"), 20), "the limits alone are known")
        seen = rows(api)
        equal((seen["training_plan", "day"]["limit"], seen["training_plan", "day"]["used"],
               seen["training_plan", "day"]["ends"]), (100, None, None), "not what is used")
    finally:
        os.kill(m.pid_of("redis"), signal.SIGCONT)
    ok(wait_for(lambda: rows(api)["training_plan", "day"]["used"] == 0, 20), "until it is back")


run_tests()
