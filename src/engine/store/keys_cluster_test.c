/* Keys, scripts and generations on a real Redis Cluster, of which a master dies. */
#include "engine/store/generation.h"
#include "engine/store/keys.h"
#include "engine/store/lock.h"
#include "engine/store/scripts.h"
#include "tests/store_cluster.h"
#include "tests/tap.h"
#include "wire/redis/redis_slot.h"

#define QUEUES      30
#define PATIENCE_MS 20000

static struct store_cluster store;

struct fixture {
    struct group group;
    struct redis *redis;
};

static void open_redis(struct task *t, struct fixture *f)
{
    keys_on_cluster(true);
    group_init(&f->group, task_loop(t));
    f->redis = redis_open(
        &f->group, &(struct redis_options){.url = store.url, .name = "hot", .cluster = true});
    check(f->redis);
    check(redis_call(t, f->redis, STR_NULL, NULL, STR("PING")) == 0);
    for (int ms = 0; !redis_up(f->redis) && ms < PATIENCE_MS; ms += 10)
        check(task_sleep(t, 10) == 0);
}

static void close_redis(struct task *t, struct fixture *f)
{
    redis_close(f->redis);
    check(group_join(t, &f->group) == 0);
    keys_on_cluster(false);
}

static struct str state_of(struct task *t, int queue)
{
    return key_jobs_part(task_arena(t), arena_printf(task_arena(t), "q%d", queue), "state");
}

/* A script that compares its GENERATION with what the caller believes: 1, 0, or an error. */
static int64_t note(struct task *t, struct redis *r, struct str state, const struct generation *g)
{
    int64_t noted;
    int err = SCRIPT_NUMBER(t, r, jobs_filled, &noted, .state = state, .run = generation_str(g),
                            .seen = STR("now"), .was = STR(""), .paused = STR("0"));
    return err ? err : noted;
}

static void one_of_each(struct task *t, void *arg)
{
    (void)arg;
    struct fixture f;
    struct lock lock, other;
    int64_t same = 0, whole = 0;
    open_redis(t, &f);
    struct generation all = generation_now(f.redis);
    for (int i = 0; i < QUEUES; i++) {
        struct generation g = generation_at(f.redis, state_of(t, i));
        same += note(t, f.redis, state_of(t, i), &g);
        whole += note(t, f.redis, state_of(t, i), &all);
    }
    is_int(same, QUEUES, "C and Lua call the generation of a key the same");
    is_int(whole, 0, "that of all masters is another one");
    ok(generation_lasts(f.redis, &all), "which lasts");

    is_int(lock_take(t, f.redis, key_queue, 20000, &lock), 0, "a lock is taken");
    is_int(lock_take(t, f.redis, key_queue, 20000, &other), ERR_BUSY, "once");
    is_int(lock_keep(t, &lock, 20000), 0, "and kept");
    ok(lock_drop(t, &lock), "and dropped");

    struct arena *a = task_arena(t);
    int64_t done;
    is_int(SCRIPT_NUMBER(t, f.redis, session_fill, &done, .session = key_session(a, STR("s")),
                         .set = key_user_sessions(a, 42), .owner = key_user_info(a, 42),
                         .sid = STR("s"), .ms = STR("1000"), .row_time = STR("1"),
                         .version = STR("none"), .fields = {NULL, 0}),
           ERR_REFUSED, "keys of two groups are refused");
    ok(str_starts(str_of(task_error(t)), STR("script session_fill has keys of two groups: ")),
       "by name: %s", task_error(t));
    close_redis(t, &f);
}

static int home_of(struct str key)
{
    int master = 0;
    while ((int)redis_slot(key) >= REDIS_SLOTS * (master + 1) / store.masters)
        master++;
    return master;
}

static void a_master_dies(struct task *t, void *arg)
{
    (void)arg;
    struct fixture f;
    struct generation before[QUEUES];
    int at_home = 0, lasts = 0, refused = 0, goes_on = 0;
    open_redis(t, &f);
    for (int i = 0; i < QUEUES; i++) {
        before[i] = generation_at(f.redis, state_of(t, i));
        at_home += home_of(state_of(t, i)) == 0;
    }
    ok(at_home > 0 && at_home < QUEUES, "%d of %d queues are at the first master", at_home, QUEUES);
    store_redis_kill(&store.nodes[0]);
    check(task_sleep(t, 100) == 0);
    ok(!redis_up(f.redis), "it dies");
    for (int i = 0; i < QUEUES; i++)
        lasts += generation_lasts_at(f.redis, state_of(t, i), &before[i]);
    is_int(lasts, QUEUES - at_home, "what others have is of the same generation");
    for (int ms = 0; !redis_up(f.redis) && ms < PATIENCE_MS; ms += 10)
        check(task_sleep(t, 10) == 0);
    for (int i = 0; i < QUEUES; i++) {
        struct generation now = generation_at(f.redis, state_of(t, i));
        bool home = home_of(state_of(t, i)) == 0;
        refused += home && note(t, f.redis, state_of(t, i), &before[i]) == 0 &&
                   note(t, f.redis, state_of(t, i), &now) == 1;
        goes_on += !home && note(t, f.redis, state_of(t, i), &before[i]) == 1;
    }
    is_int(refused, at_home, "its replica is another one: what was read before is refused");
    is_int(goes_on, QUEUES - at_home, "and nothing else");
    close_redis(t, &f);
}

int main(void)
{
    store_cluster_start(&store, 3, 3);
    tap_task(one_of_each, NULL, true);
    tap_task(a_master_dies, NULL, true);
    store_cluster_stop(&store);
    return tap_done();
}
