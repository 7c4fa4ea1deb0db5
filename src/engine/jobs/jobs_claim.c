/* Jobs that call the AI count against their user's permission, together with workers of runs
 * (engine/crew/claims.h).
 *
 *   1. Before its first call a job is claimed: Redis is told that this node makes one more call for
 *      the user. Refused: the job is held (ERR_RATE), and loses no try.
 *   2. After its last call the claim is given up. Redis learns that with the next call about the
 *      user, which may be the claim of another job, and at the latest before the job leaves its
 *      queue (jobs_claim_settle): the user's next job, which is handed out then, finds room.
 *   3. One call about a user is under way at a time, and says how many jobs the node has for the
 *      user. All claims that wait meanwhile go together in the next one. So a lost reply, or a
 *      Redis that has forgotten, is set right by the next call: jobs_claims_keep makes one every
 *      CLAIM_KEEP_MS, and soon if the last one failed.
 *
 * Redis never has fewer than the node: a claim counts here after Redis has granted it, and is given
 * up here before Redis hears of that. */
#include <stdlib.h>

#include "base/log.h"
#include "base/map.h"
#include "engine/jobs/jobs_private.h"

#define CLAIM_KEEP_MS 3000 /* claims of jobs are void after 15 s (workers_claim.lua) */
#define CLAIMS_MAX    1000 /* in one call */
#define CALLS_MAX     32   /* under way, each about another user */

/* What this node has of one user. */
struct jobs_claim {
    int64_t uid;
    int64_t count; /* jobs that are claimed */
    bool wrong;    /* Redis may have another count, or is to be told again */
    bool busy;     /* a call is under way */
    int64_t told_ms;
};

/* What a task wants Redis to be told of a user. */
struct telling {
    struct gather_item item;
    bool claims, granted; /* one more */
    int64_t permission;
};

void jobs_cap(struct jobs *j, const struct claimant *c)
{
    j->claimant = *c;
    j->claims = map_new();
}

void jobs_claims_free(struct jobs *j)
{
    struct str name;
    void *claim;
    for (size_t at = 0; j->claims && map_next(j->claims, &at, &name, &claim);)
        free(claim);
    if (j->claims)
        map_free(j->claims);
}

static struct str name_of(const int64_t *uid)
{
    return str_from((const char *)uid, sizeof *uid);
}

static struct jobs_claim *claim_get(struct jobs *j, int64_t uid)
{
    struct jobs_claim *c = map_get(j->claims, name_of(&uid));
    if (!c) {
        c = check_memory(calloc(1, sizeof *c));
        c->uid = uid;
        map_set(j->claims, name_of(&c->uid), c);
    }
    return c;
}

static void claim_put(struct jobs *j, struct jobs_claim *c)
{
    if (c->count || c->wrong || c->busy)
        return;
    map_del(j->claims, name_of(&c->uid));
    free(c);
}

/* --- telling Redis --- */

/* The first ones get what is granted. */
static void grant(struct jobs_claim *c, int64_t more, int64_t permission,
                  struct gather_item **items, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct telling *x = (struct telling *)items[i];
        x->permission = permission;
        x->granted = x->claims && more > 0;
        more -= x->granted;
        c->count += x->granted;
    }
}

/* A gather_fn: all of one user. A task that was cancelled meanwhile gets its claim all the same,
 * and gives it up. */
static int tell(struct task *t, void *arg, struct gather_item **items, size_t count)
{
    struct jobs *j = arg;
    struct jobs_claim *c = claim_get(j, items[0]->key);
    int64_t has = c->count, wants = has, permission = 0;
    int err = 0;
    for (size_t i = 0; i < count; i++)
        wants += ((struct telling *)items[i])->claims;
    if (wants > has || c->wrong) {
        struct claim claim = {.what = STR(CLAIM_JOBS), .has = has, .wants = wants};
        c->busy = true;
        c->told_ms = loop_now_ms(task_loop(t));
        j->claims_told++;
        err = claims_make(t, &j->claimant, c->uid, true, &claim, 1, &permission);
        c->busy = false;
        c->wrong = err || c->count != has; /* one was given up meanwhile */
        if (!err)
            grant(c, claim.granted - has, permission, items, count);
    }
    claim_put(j, c);
    return err;
}

void jobs_claims_open(struct jobs *j, struct group *g)
{
    gather_init(&j->tellings, &(struct gather_options){.group = g,
                                                       .name = "jobs-claim",
                                                       .fn = tell,
                                                       .arg = j,
                                                       .items_max = CLAIMS_MAX,
                                                       .clerks_max = CALLS_MAX});
}

/* --- claims --- */

int jobs_claim(struct task *t, struct jobs *j, const struct job *job)
{
    check(j->claims && j->group); /* jobs_cap, jobs_task */
    struct telling x = {.claims = true};
    int err = gather_do(t, &j->tellings, &x.item, job->uid);
    if (err || x.granted)
        return err;
    job_reason(job, x.permission == 0 ? JOB_NO_PERMISSION : JOB_PERMISSION_USED);
    return x.permission == 0
               ? task_fail(t, ERR_RATE, "the account may not have work of the AI done at present")
               : task_fail(t, ERR_RATE, "waits for the other %lld that the account has at work",
                           (long long)x.permission);
}

void jobs_unclaim(struct jobs *j, int64_t uid)
{
    struct jobs_claim *c = claim_get(j, uid);
    check(c->count > 0);
    c->count--;
    c->wrong = true;
}

static int settle(struct task *t, struct jobs *j, int64_t uid)
{
    struct telling x = {.claims = false};
    return j->group ? gather_do(t, &j->tellings, &x.item, uid) : 0;
}

void jobs_claim_settle(struct task *t, struct jobs *j, int64_t uid)
{
    const struct jobs_claim *c = map_get(j->claims, name_of(&uid));
    if (!c || !c->wrong)
        return;
    const char *text = *task_error(t) ? arena_strdup(task_arena(t), task_error(t)) : "";
    int err = settle(t, j, uid);
    if (err && err != ERR_CANCELED)
        log_debug("jobs", "a claim of user %lld is given up later: %s", (long long)uid,
                  task_error(t));
    if (*text || *task_error(t))
        (void)task_fail(t, 0, "%s", text); /* what became of the job */
}

int jobs_claims_keep(struct task *t, struct jobs *j)
{
    int64_t now_ms = loop_now_ms(task_loop(t));
    size_t n = 0, count = j->claims ? map_count(j->claims) : 0;
    int64_t *due = ARENA_ARRAY(task_arena(t), int64_t, count + 1);
    bool anew = count && j->claims_epoch != redis_epoch(j->options.redis);
    struct str name;
    void *claim;
    int err = 0;
    for (size_t at = 0; count && map_next(j->claims, &at, &name, &claim);) {
        struct jobs_claim *c = claim;
        c->wrong |= anew || now_ms - c->told_ms >= CLAIM_KEEP_MS;
        if (c->wrong)
            due[n++] = c->uid;
    }
    j->claims_epoch = redis_epoch(j->options.redis);
    for (size_t i = 0; !err && i < n; i++)
        err = settle(t, j, due[i]);
    return err == ERR_CANCELED && !task_canceled(t) ? 0 : err; /* jobs_task has ended */
}
