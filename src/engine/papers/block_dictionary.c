/* The dictionaries of blocks: which one packs, and which ones have been met. */
#include <stdlib.h>

#include "base/log.h"
#include "engine/papers/block_private.h"

#define IDLE_MAX       8    /* packers kept; each holds a megabyte or so */
#define UNKNOWN_FOR_MS 5000 /* a number that MySQL lacks is not asked for again for so long */

void block_dictionaries_init(struct block_dictionaries *d)
{
    *d = (struct block_dictionaries){.reading = pack_new()};
    list_init(&d->idle);
    waitq_init(&d->fetched);
}

static void packer_free(struct block_packer *p)
{
    pack_free(p->pack);
    free(p);
}

static void drop_idle(struct block_dictionaries *d)
{
    struct list *it;
    while ((it = list_pop(&d->idle)))
        packer_free(list_entry(it, struct block_packer, link));
    d->idle_count = 0;
}

void block_dictionaries_release(struct block_dictionaries *d)
{
    drop_idle(d);
    pack_free(d->reading);
    free((char *)(uintptr_t)d->bytes.p);
}

/* --- packing --- */

struct block_packer *block_packer_get(struct blocks *b)
{
    struct block_dictionaries *d = &b->dictionaries;
    struct list *it = list_pop(&d->idle);
    if (it) {
        d->idle_count--;
        return list_entry(it, struct block_packer, link);
    }
    struct block_packer *p = check_memory(calloc(1, sizeof *p));
    p->pack = pack_new();
    p->number = d->number;
    if (p->number) /* cannot fail: d->reading has learned the same bytes */
        check(pack_learn(p->pack, d->bytes) == 0);
    check(pack_choose(p->pack, p->number, BLOCK_PACK_LEVEL) == 0);
    return p;
}

void block_packer_put(struct blocks *b, struct block_packer *p)
{
    struct block_dictionaries *d = &b->dictionaries;
    if (p->number != d->number || d->idle_count == IDLE_MAX) {
        packer_free(p);
        return;
    }
    list_push(&d->idle, &p->link);
    d->idle_count++;
}

static void use(struct block_dictionaries *d, uint32_t number, struct str bytes)
{
    if (number == d->number)
        return;
    free((char *)(uintptr_t)d->bytes.p);
    d->bytes = STR_NULL;
    if (number)
        d->bytes = str_from(memcpy(check_memory(malloc(bytes.n)), bytes.p, bytes.n), bytes.n);
    d->number = number;
    drop_idle(d);
}

/* row: id, dictionary. */
static int learn(struct task *t, struct block_dictionaries *d, const struct sql_value *row)
{
    if ((int64_t)pack_number(row[1].s) == row[0].i && pack_learn(d->reading, row[1].s) == 0)
        return 0;
    return task_fail(t, ERR_INVALID, "dictionary %lld in table zstd_dictionary is damaged",
                     (long long)row[0].i);
}

int blocks_learn(struct task *t, struct blocks *b)
{
    struct block_dictionaries *d = &b->dictionaries;
    uint64_t turn = ++d->asked;
    struct arena_mark mark = arena_mark(task_arena(t));
    struct sql_rows r;
    int err = sql_call(t, b->sql, &r,
                       "SELECT id, dictionary FROM zstd_dictionary ORDER BY sequence DESC LIMIT 1");
    if (!err && r.count > 0)
        err = learn(t, d, r.cells);
    if (!err && turn > d->answered) { /* else a later call has answered already */
        d->answered = turn;
        use(d, r.count ? (uint32_t)r.cells[0].i : 0, r.count ? r.cells[1].s : STR_NULL);
    }
    arena_reset(task_arena(t), mark);
    return err;
}

/* --- unpacking --- */

static bool is_unknown(const struct block_dictionaries *d, uint32_t number, int64_t now_ms)
{
    for (size_t i = 0; i < BLOCK_UNKNOWN_MAX; i++)
        if (d->unknown[i].number == number && d->unknown[i].until_ms > now_ms)
            return true;
    return false;
}

static void remember_unknown(struct task *t, struct block_dictionaries *d, uint32_t number,
                             const char *why)
{
    log_error(
        "block",
        "papers in Redis cannot be read: dictionary %u is %s in table zstd_dictionary; restore "
        "that row, or run \"millrace db warm --rebuild\"",
        number, why);
    d->unknown[d->unknown_next++ % BLOCK_UNKNOWN_MAX] =
        (struct block_unknown){number, loop_now_ms(task_loop(t)) + UNKNOWN_FOR_MS};
}

static int fetch(struct task *t, struct blocks *b, uint32_t number)
{
    struct arena_mark mark = arena_mark(task_arena(t));
    struct sql_rows r;
    int err = sql_call(t, b->sql, &r, "SELECT id, dictionary FROM zstd_dictionary WHERE id = ?",
                       sql_int(number));
    if (!err && r.count == 0)
        remember_unknown(t, &b->dictionaries, number, "missing");
    else if (!err && learn(t, &b->dictionaries, r.cells))
        remember_unknown(t, &b->dictionaries, number, "damaged");
    arena_reset(task_arena(t), mark);
    return err;
}

/* 0: look again. Singleflight: of many tasks that need a dictionary, one asks MySQL. */
static int meet(struct task *t, struct blocks *b, uint32_t number)
{
    struct block_dictionaries *d = &b->dictionaries;
    if (is_unknown(d, number, loop_now_ms(task_loop(t))))
        return task_fail(t, ERR_NOT_FOUND,
                         "dictionary %u is missing or damaged in table zstd_dictionary", number);
    if (d->fetching)
        return waitq_wait(t, &d->fetched);
    d->fetching = true;
    int err = fetch(t, b, number);
    d->fetching = false;
    waitq_wake_all(&d->fetched);
    return err;
}

struct unpacking {
    struct pack *pack;
    struct arena *arena;
    struct str packed, *bibtex;
    uint32_t number; /* of its dictionary */
    int err;
};

static void unpack(void *arg)
{
    struct unpacking *u = arg;
    u->err = pack_get(u->pack, u->arena, u->packed, u->bibtex, &u->number);
}

int block_unpack(struct task *t, struct blocks *b, struct arena *a, struct str packed,
                 struct str *bibtex)
{
    struct unpacking u = {b->dictionaries.reading, a, packed, bibtex, 0, 0};
    for (;;) {
        task_aside(t, unpack, &u);
        int err = u.err;
        if (err == ERR_NOT_FOUND) {
            err = meet(t, b, u.number);
            if (err)
                return err;
            continue;
        }
        /* Nothing larger than the limit is ever packed. */
        if (err == ERR_PROTO || err == ERR_LIMIT)
            return task_fail(t, ERR_PROTO, "a packed paper of %zu bytes is damaged", packed.n);
        return err;
    }
}
