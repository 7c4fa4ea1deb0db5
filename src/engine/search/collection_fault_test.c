/* Indexes that are lost or damaged while nodes use them, and nodes that die at any step. */
#include <fcntl.h>
#include <sys/stat.h>

#include "engine/search/collection_fixture.h"

static bool is_degraded(const struct collection_answer *a, const char *reason)
{
    return a->degraded && strcmp(a->reason, reason) == 0;
}

/* --- damage --- */

enum damage { REMOVED, CUT, EMPTIED, FLIPPED, FLIPPED_HEAD, OTHER_SPACE, DAMAGES };
static const char *const damages[] = {
    "removed", "cut", "emptied", "of a flipped bit", "of a flipped header", "of another space"};

static void flip(const char *path, off_t at)
{
    unsigned char c;
    int fd = open(path, O_RDWR);
    check(fd >= 0 && pread(fd, &c, 1, at) == 1);
    c ^= 16;
    check(pwrite(fd, &c, 1, at) == 1);
    close(fd);
}

/* A place in the floats of the first row: the last byte of the file that is not 0 is in a later
 * column, so bytes are searched from the row's text. */
static off_t float_place(const char *path)
{
    float v[16];
    unsigned char byte[64];
    struct index *x;
    struct index_view *view;
    struct point p;
    uint32_t row = 0;
    const char *why;
    check(index_open(path, &x, &why) == 0 && index_view_get(x, &view, &why) == 0);
    check(index_view_next(view, &row, &p, v) == 0);
    index_view_put(view);
    index_close(x);
    int fd = open(path, O_RDONLY);
    for (off_t at = 0;; at += 64) {
        check(pread(fd, byte, sizeof byte, at) == sizeof byte);
        if (memcmp(byte, v, sizeof byte) == 0) {
            close(fd);
            return at;
        }
    }
}

static void make_damage(const char *path, enum damage d)
{
    struct stat st;
    const char *why;
    check(stat(path, &st) == 0);
    switch (d) {
    case REMOVED:
        check(unlink(path) == 0);
        break;
    case CUT:
        check(truncate(path, st.st_size / 3) == 0);
        break;
    case EMPTIED:
        check(truncate(path, 0) == 0);
        break;
    case FLIPPED:
        flip(path, float_place(path) + 5);
        break;
    case FLIPPED_HEAD:
        flip(path, 65536 + 9);
        break;
    default:
        check(index_create(path, &(struct index_spec){.model = "other", .dimension = 8}, &why) ==
              0);
    }
}

static void test_damage(struct task *t, void *arg)
{
    struct world w;
    struct node_of a, b;
    struct collection_answer got;
    enum damage d = *(const enum damage *)arg;
    world_open(t, &w);
    node_open(t, &w, &a);
    node_open(t, &w, &b);
    put_many(t, &a, 1, 40, "copper");
    is_int(put_text(t, &a, 100, 1, "silver spoons"), 0, "documents");
    is_int(best_of(t, &a, "silver", &got), 100, "are found by the node that put them");
    is_int(best_of(t, &b, "silver", &got), 100, "and by another one");
    int64_t space = space_now(&a);
    const char *path = index_path(t, w.dir, space);
    make_damage(path, d);
    if (d == FLIPPED)
        (void)best_of(t, &b, "number 1 of copper", &got); /* a search that comes to that row */
    if (d == FLIPPED_HEAD)
        check(rounds(t, &a) == 0); /* which is read once only: the role finds it */
    int64_t best = best_of(t, &b, "silver", &got);
    bool whole = d == FLIPPED_HEAD || is_degraded(&got, COLLECTION_REBUILT);
    ok(whole && (best == 0 || best == 100), "an index that is %s: searches are degraded (%lld)",
       damages[d], (long long)best);
    best = best_of(t, &a, "silver", &got);
    ok(best == 0 || best == 100, "on the other node, too");
    is_int(put_text(t, &a, 101, 1, "golden forks"), 0, "a put");
    is_int(rounds(t, &b), 0, "the role of one node");
    is_int(rounds(t, &a), 0, "and of the other");
    is_int(best_of(t, &b, "silver", &got), 100, "it is whole again");
    ok(!got.degraded, "without a word");
    is_int(best_of(t, &a, "golden forks", &got), 101, "with what was put meanwhile");
    ok(!got.degraded, "on both nodes");
    is_int(differences(t, &a, space), 0, "and has exactly what MySQL has");
    is_int(sql_number(t, &a, "SELECT builds FROM vector_store"), 2, "it was made anew once");
    node_close(&a);
    node_close(&b);
    world_close(t, &w);
}

/* Nobody searches: the role finds it. */
static void test_verified(struct task *t, void *arg)
{
    (void)arg;
    struct world w;
    struct node_of a;
    world_open(t, &w);
    node_open(t, &w, &a);
    put_many(t, &a, 1, 40, "copper");
    is_int(rounds(t, &a), 0, "a round");
    int64_t space = space_now(&a);
    flip(index_path(t, w.dir, space), float_place(index_path(t, w.dir, space)) + 6);
    is_int(rounds(t, &a), 0, "a round that verifies");
    is_int(rounds(t, &a), 0, "the next one");
    is_int(sql_number(t, &a, "SELECT builds FROM vector_store"), 2, "makes it anew");
    is_int(differences(t, &a, space), 0, "as it was");
    node_close(&a);
    world_close(t, &w);
}

/* --- changes while it is made anew --- */

static struct space *active_of(struct node_of *n)
{
    return n->all->shelves[COLLECTION_POSTS].active;
}

static void one_step(struct task *t, struct node_of *n, bool *more)
{
    struct shelf *s = &n->all->shelves[COLLECTION_POSTS];
    check(turn_get(t, s, true) == 0);
    check(space_apply(t, s, s->active, more) == 0);
    turn_put(s);
}

static void test_changes_meanwhile(struct task *t, void *arg)
{
    (void)arg;
    struct world w;
    struct node_of a, b;
    struct collection_answer got;
    struct collection_look look;
    bool more;
    world_open(t, &w);
    node_open(t, &w, &a);
    node_open(t, &w, &b);
    for (uint64_t i = 0; i < 3; i++)
        put_many(t, &a, 1 + i * 1000, 1000, "zinc");
    is_int(best_of(t, &b, "number 17 of zinc", &got), 17, "many documents");
    int64_t space = space_now(&a);
    check(unlink(index_path(t, w.dir, space)) == 0);
    (void)best_of(t, &a, "number 17 of zinc", &got);
    ok(is_degraded(&got, COLLECTION_REBUILT), "their index is lost");
    one_step(t, &a, &more);
    one_step(t, &a, &more);
    ok(more && active_of(&a)->at.copied > 0 && active_of(&a)->at.copied < 3000,
       "it is made anew, in steps (%lld)", (long long)active_of(&a)->at.copied);
    is_int(collection_look(t, b.all, COLLECTION_POSTS, &look), 0, "a look");
    ok(look.rebuilt > 0 && look.rebuilt < 3000 && look.rebuild_total == 3000 && look.degraded,
       "shows how far: %lld of %lld", (long long)look.rebuilt, (long long)look.rebuild_total);
    is_int(best_of(t, &b, "number 17 of zinc", &got), 17, "what is there already is found");
    ok(is_degraded(&got, COLLECTION_REBUILT), "degraded");
    is_int(collection_drop(t, b.all, COLLECTION_POSTS, (uint64_t[]){17, 2990}, 2), 0,
           "one of both parts is dropped");
    is_int(
        collection_tag(t, b.all, COLLECTION_POSTS, 18, (struct point_tags){.flags = 1}, STR_NULL),
        0, "tagged");
    is_int(
        collection_tag(t, b.all, COLLECTION_POSTS, 2991, (struct point_tags){.flags = 1}, STR_NULL),
        0, "tagged");
    is_int(put_text(t, &b, 19, 2, "number 19 of tin"), 0, "put");
    is_int(put_text(t, &b, 2992, 2, "number 2992 of tin"), 0, "put");
    is_int(put_text(t, &b, 7000, 1, "number 7000 of tin"), 0, "added");
    node_close(&a); /* it dies */
    is_int(rounds(t, &b), 0, "the other node goes on");
    is_int(rounds(t, &b), 0, "to the end");
    is_int(differences(t, &b, space), 0, "nothing was lost, nothing came back");
    is_int(best_of(t, &b, "number 2990 of zinc", &got) != 2990, 1, "not what was dropped");
    ok(!got.degraded, "it is whole");
    is_int(sql_number(t, &b, "SELECT builds FROM vector_store"), 2, "it was made anew once");
    node_close(&b);
    world_close(t, &w);
}

/* --- nodes that die --- */

enum call { CALL_CREATE, CALL_PUT, CALL_TAG, CALL_SETTLE, CALLS };
static const char *const calls[] = {"create", "put", "tag", "settle"};

/* A store whose next call of a kind fails, before it has done anything or after it was done. */
struct faulty {
    struct points_store store;
    struct points_store *real;
    enum call which;
    bool after, armed, mysql;
};

static int meet(struct task *t, struct faulty *f, enum call which, bool after)
{
    if (!f->armed || f->which != which || f->after != after)
        return 0;
    f->armed = false;
    if (f->mysql)
        mariadb_kill(&server);
    return f->mysql ? 0 : task_fail(t, ERR_UNAVAILABLE, "a fault");
}

#define WITH_FAULT(which, call)                                                                    \
    do {                                                                                           \
        struct faulty *f = (struct faulty *)s;                                                     \
        int err = meet(t, f, which, false);                                                        \
        if (!err)                                                                                  \
            err = call;                                                                            \
        return err ? err : meet(t, f, which, true);                                                \
    } while (0)

static int f_create(struct task *t, struct points_store *s, const struct points_space *space)
{
    WITH_FAULT(CALL_CREATE, f->real->ops->create(t, f->real, space));
}

static int f_put(struct task *t, struct points_store *s, const struct points_change *c)
{
    WITH_FAULT(CALL_PUT, f->real->ops->put(t, f->real, c));
}

static int f_tag(struct task *t, struct points_store *s, uint64_t owner, struct point_tags tags,
                 struct str title)
{
    WITH_FAULT(CALL_TAG, f->real->ops->tag(t, f->real, owner, tags, title));
}

static int f_settle(struct task *t, struct points_store *s)
{
    WITH_FAULT(CALL_SETTLE, f->real->ops->settle(t, f->real));
}

static int f_search(struct task *t, struct points_store *s, const struct points_query *q,
                    struct point_hit *hits, struct points_answer *answer)
{
    struct faulty *f = (struct faulty *)s;
    return f->real->ops->search(t, f->real, q, hits, answer);
}

static void f_free(struct points_store *s)
{
    struct faulty *f = (struct faulty *)s;
    f->real->ops->free(f->real);
}

static struct faulty faulty;

/* The node's next call of that kind fails. */
static void arm(struct node_of *n, enum call which, bool after, bool mysql)
{
    static struct points_ops ops;
    struct space *x = active_of(n);
    ops = *x->store->ops;
    ops.create = f_create;
    ops.put = f_put;
    ops.tag = f_tag;
    ops.settle = f_settle;
    ops.search = f_search;
    ops.free = f_free;
    faulty = (struct faulty){{&ops}, x->store, which, after, true, mysql};
    x->store = &faulty.store;
}

/* A change, a fault in it, the death of its node; then another node goes on. */
static void test_death(struct task *t, void *arg)
{
    (void)arg;
    struct world w;
    struct node_of a, b;
    struct collection_answer got;
    for (int i = 0; i < CALLS * 3; i++) {
        enum call which = (enum call)(i / 3);
        bool after = i % 3 > 0, mysql = i % 3 == 2;
        if (mysql && (which == CALL_TAG || which == CALL_PUT))
            continue; /* as after the settling */
        world_open(t, &w);
        node_open(t, &w, &a);
        node_open(t, &w, &b);
        put_many(t, &a, 1, 10, "lead");
        check(rounds(t, &b) == 0);
        int64_t space = space_now(&a);
        if (which == CALL_CREATE) {
            check(unlink(index_path(t, w.dir, space)) == 0);
            (void)best_of(t, &a, "lead", &got);
        }
        arm(&a, which, after, mysql);
        if (which == CALL_TAG)
            (void)!collection_tag(t, a.all, COLLECTION_POSTS, 3, (struct point_tags){.flags = 1},
                                  STR_NULL);
        else
            (void)!put_text(t, &a, 3, 2, "mercury");
        bool met = !faulty.armed;
        node_close(&a);
        if (mysql) {
            mariadb_restart(&server);
            await_mysql(t, &b);
        }
        ok(met, "a fault %s %s%s", after ? "after" : "before", calls[which],
           mysql ? ", of MySQL" : "");
        is_int(rounds(t, &b), 0, "another node goes on");
        is_int(rounds(t, &b), 0, "to the end");
        is_int(differences(t, &b, space), 0, "and the index has what MySQL has");
        if (which == CALL_PUT || which == CALL_SETTLE)
            is_int(best_of(t, &b, "mercury", &got), 3, "with the change");
        ok(best_of(t, &b, "number 7 of lead", &got) == 7 && !got.degraded, "whole");
        node_close(&b);
        world_close(t, &w);
    }
}

int main(void)
{
    start_stores();
    log_setup(LOG_ERROR, LOG_TEXT, "test");
    for (enum damage d = 0; d < DAMAGES; d++)
        tap_task(test_damage, &d, true);
    tap_task(test_verified, NULL, true);
    tap_task(test_changes_meanwhile, NULL, true);
    tap_task(test_death, NULL, true);
    return stop_stores();
}
