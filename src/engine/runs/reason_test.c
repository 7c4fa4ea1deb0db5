/* The table of reasons, row by row: the facts that make it so, what is said then, and that it is
 * over once the fact is gone. */
#include "engine/runs/reason.h"

#include "tests/tap.h"

/* A run that moves: nothing is wrong. */
static const struct reason_facts fine = {.state = RUN_RUNNING,
                                         .workers = 4,
                                         .permission = 10,
                                         .nodes = 2,
                                         .nodes_taking = 2,
                                         .keys = {.known = true, .listed = 3, .usable = 3},
                                         .requests_used = 100,
                                         .requests_limit = 600,
                                         .tokens_used = 1000,
                                         .tokens_limit = 100000,
                                         .demand = 500};

enum start { RUNS, STARTS, WAITS, RESUMED, PAUSED };

static struct reason_facts from(enum start s)
{
    struct reason_facts f = fine;
    if (s == RUNS)
        return f;
    f.workers = 0;
    if (s == WAITS || s == RESUMED) {
        f.position = 2;
        f.of = 5;
    }
    if (s == WAITS)
        f.state = RUN_QUEUED;
    if (s == PAUSED)
        f.state = RUN_PAUSED;
    return f;
}

static void ban(struct reason_facts *f)
{
    f->banned = true;
}
static void repair(struct reason_facts *f)
{
    f->repairing = "queue";
}
static void hold(struct reason_facts *f)
{
    f->new_runs_off = true;
}
static void drain(struct reason_facts *f)
{
    f->nodes_taking = 0;
}
static void forbid(struct reason_facts *f)
{
    f->permission = 0;
}
static void remove_keys(struct reason_facts *f)
{
    f->keys = (struct reason_keys){.known = true};
}
static void refuse_keys(struct reason_facts *f)
{
    f->keys = (struct reason_keys){.known = true, .listed = 3, .refused = 3};
}
static void switch_off(struct reason_facts *f)
{
    f->keys = (struct reason_keys){.known = true, .listed = 3, .off = 3};
}
static void cap(struct reason_facts *f)
{
    f->keys = (struct reason_keys){.known = true, .listed = 3, .capped = 3, .cap_until_ms = 60000};
}
static void mix(struct reason_facts *f)
{
    f->keys = (struct reason_keys){.known = true, .listed = 3, .off = 1, .refused = 2};
}
static void rest(struct reason_facts *f)
{
    f->keys = (struct reason_keys){
        .known = true, .listed = 3, .resting = 2, .refused = 1, .rest_until_ms = 9000};
}
static void take_down(struct reason_facts *f)
{
    f->down = true;
    f->down_since_ms = 5000;
    f->down_cause = STR("refused");
    f->down_words = STR("connection refused");
}
static void nothing(struct reason_facts *f)
{
    (void)f;
}
static void crowd(struct reason_facts *f)
{
    f->others = f->permission;
}
static void fill_requests(struct reason_facts *f)
{
    f->requests_used = f->requests_limit;
}
static void want_more(struct reason_facts *f)
{
    f->requests_used = f->requests_limit / 2;
    f->demand = 10 * f->requests_limit;
}
static void fill_tokens(struct reason_facts *f)
{
    f->tokens_used = f->tokens_limit;
}
static void spend(struct reason_facts *f)
{
    f->row = STR(RUN_REASON_FUNDS);
}
static void lock_account(struct reason_facts *f)
{
    f->row = STR(RUN_REASON_ACCOUNT);
}
static void lose(struct reason_facts *f)
{
    f->row = STR(RUN_REASON_UNRECORDED ": not JSON: x");
}
static void refuse(struct reason_facts *f)
{
    f->row = STR(RUN_REASON_REFUSED ": max_tokens is not supported");
}

#define QUEUE .position = 2, .of = 5, .permission = 10
static const struct {
    const char *name;
    enum start start;
    void (*happen)(struct reason_facts *f);
    struct reason want;
    bool mendable;
} rows[] = {
    {"account_stopped", RUNS, ban, {.code = REASON_ACCOUNT_STOPPED}, true},
    {"account_stopped", WAITS, ban, {.code = REASON_ACCOUNT_STOPPED}, true},
    {"repairing", RUNS, repair, {.code = REASON_REPAIRING, .cause = STR("queue")}, true},
    {"new_runs_off", WAITS, hold, {.code = REASON_NEW_RUNS_OFF}, true},
    {"drained", RUNS, drain, {.code = REASON_DRAINED, .nodes = 2}, true},
    {"drained", WAITS, drain, {.code = REASON_DRAINED, .nodes = 2}, true},
    {"no_permission", STARTS, forbid, {.code = REASON_NO_PERMISSION}, true},
    {"no_permission", WAITS, forbid, {.code = REASON_NO_PERMISSION}, true},
    {"no_key", RUNS, remove_keys, {.code = REASON_NO_KEY, .cause = STR("none")}, true},
    {"no_key",
     RUNS,
     refuse_keys,
     {.code = REASON_NO_KEY, .keys = 3, .cause = STR("refused")},
     true},
    {"no_key", WAITS, switch_off, {.code = REASON_NO_KEY, .keys = 3, .cause = STR("off")}, true},
    {"no_key",
     RUNS,
     cap,
     {.code = REASON_NO_KEY, .keys = 3, .cause = STR("capped"), .until_ms = 60000},
     true},
    {"no_key", RUNS, mix, {.code = REASON_NO_KEY, .keys = 3, .cause = STR("mixed")}, true},
    {"keys_resting", RUNS, rest, {.code = REASON_KEYS_RESTING, .keys = 2, .until_ms = 9000}, true},
    {"service_down",
     RUNS,
     take_down,
     {.code = REASON_SERVICE_DOWN,
      .since_ms = 5000,
      .cause = STR("refused"),
      .words = STR("connection refused")},
     true},
    {"queued", WAITS, nothing, {.code = REASON_QUEUED, QUEUE}, false},
    {"queued", RESUMED, nothing, {.code = REASON_QUEUED, QUEUE}, false},
    {"queued", WAITS, crowd, {.code = REASON_QUEUED, QUEUE, .others = 10}, false},
    {"queued", STARTS, crowd, {.code = REASON_QUEUED, .permission = 10, .others = 10}, false},
    {"rate_limit", RUNS, fill_requests, {.code = REASON_RATE_LIMIT, .limit = 600}, false},
    {"rate_limit", RUNS, want_more, {.code = REASON_RATE_LIMIT, .limit = 600}, false},
    {"rate_limit", RUNS, fill_tokens, {.code = REASON_RATE_LIMIT, .limit = 600}, false},
    {"funds", PAUSED, spend, {.code = REASON_FUNDS}, false},
    {"account", PAUSED, lock_account, {.code = REASON_ACCOUNT}, true},
    {"unrecorded", PAUSED, lose, {.code = REASON_UNRECORDED, .words = STR("not JSON: x")}, true},
    {"refused",
     PAUSED,
     refuse,
     {.code = REASON_REFUSED, .words = STR("max_tokens is not supported")},
     true},
};

static void each_row(void)
{
    bool seen[REASON_CODES] = {[REASON_NONE] = true};
    struct arena a;
    arena_init(&a);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct reason_facts f = from(rows[i].start);
        enum reason_code without = reason_of(&f).code;
        ok(without == (f.position ? REASON_QUEUED : REASON_NONE), "%zu: no %s without it", i,
           rows[i].name);
        rows[i].happen(&f);
        struct reason r = reason_of(&f);
        is_str(str_of(r.code ? reason_word(r.code) : "none"), str_of(rows[i].name), "%zu: %s", i,
               rows[i].name);
        ok(reason_same(&r, &rows[i].want), "%zu: what is said of %s", i, rows[i].name);
        ok(reason_mendable(r.code) == rows[i].mendable, "%zu: whether it can be mended", i);
        ok(reason_text(&a, &r).n > 10, "%zu: a sentence", i);
        seen[r.code] = true;
        f.state = RUN_DONE;
        ok(reason_of(&f).code == REASON_NONE, "%zu: not of a run that has ended", i);
    }
    for (int c = 0; c < REASON_CODES; c++)
        ok(seen[c], "code %d was driven", c);
    arena_release(&a);
}

/* Where several hold, the one that must be mended first is said. */
static void order(void)
{
    struct reason_facts f = from(WAITS);
    take_down(&f);
    is_int(reason_of(&f).code, REASON_SERVICE_DOWN, "a queue that does not move has a cause");
    refuse_keys(&f);
    is_int(reason_of(&f).code, REASON_NO_KEY, "the keys say more than that calls fail");
    drain(&f);
    is_int(reason_of(&f).code, REASON_DRAINED, "and no node would ask");
    f.nodes = 0;
    is_int(reason_of(&f).code, REASON_NO_KEY, "no nodes are known: that says nothing");
    f.keys.known = false;
    is_int(reason_of(&f).code, REASON_SERVICE_DOWN, "nor do keys that were not read");
    f = from(RUNS);
    hold(&f);
    is_int(reason_of(&f).code, REASON_NONE, "a run that was started goes on");
    f = from(PAUSED);
    drain(&f);
    is_int(reason_of(&f).code, REASON_NONE, "a run that its user paused waits for nothing else");
    ok(reason_moves(REASON_RATE_LIMIT) && reason_moves(REASON_NONE) && !reason_moves(REASON_NO_KEY),
       "the limit only slows it");
}

int main(void)
{
    each_row();
    order();
    return tap_done();
}
