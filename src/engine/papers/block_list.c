/* Lists of blocks, and of the DOIs in one. */
#include "engine/papers/block_private.h"
#include "engine/store/keys.h"

#define TRIES_MAX    3   /* of a block that is damaged each time after it was built */
#define JOURNALS_MAX 200 /* in one statement */

/* One prepared statement for every part: placeholders left over repeat the first name. */
static int list_part(struct task *t, struct blocks *b, const struct str *journals, size_t count,
                     int64_t year_from, int64_t year_to, struct sql_rows *out)
{
    struct arena *a = task_arena(t);
    struct sql_value *argv = ARENA_ARRAY(a, struct sql_value, JOURNALS_MAX + 2);
    struct buf statement;
    buf_init(&statement);
    buf_add_str(&statement, STR("SELECT journal, year, papers, digest FROM corpus_block"
                                " WHERE year BETWEEN ? AND ? AND journal IN (?"));
    argv[0] = sql_int(year_from);
    argv[1] = sql_int(year_to);
    for (size_t i = 0; i < JOURNALS_MAX; i++) {
        argv[2 + i] = sql_text(journals[i < count ? i : 0]);
        if (i > 0)
            buf_add_str(&statement, STR(", ?"));
    }
    buf_add_str(&statement, STR(") ORDER BY journal, year"));
    const char *text = str_z(a, buf_str(&statement));
    buf_release(&statement);
    return sql_argv(t, b->sql, text, JOURNALS_MAX + 2, argv, out);
}

int blocks_list(struct task *t, struct blocks *b, const struct str *journals, size_t journal_count,
                int64_t year_from, int64_t year_to, struct block_name **out, size_t *count)
{
    size_t parts = (journal_count + JOURNALS_MAX - 1) / JOURNALS_MAX, total = 0;
    struct sql_rows *rows = ARENA_ARRAY(task_arena(t), struct sql_rows, parts + 1);
    for (size_t i = 0; i < parts; i++) {
        size_t left = journal_count - i * JOURNALS_MAX;
        int err =
            list_part(t, b, journals + i * JOURNALS_MAX, left < JOURNALS_MAX ? left : JOURNALS_MAX,
                      year_from, year_to, &rows[i]);
        if (err)
            return err;
        total += rows[i].count;
    }
    *out = ARENA_ARRAY(task_arena(t), struct block_name, total + 1);
    *count = 0;
    for (size_t i = 0; i < parts; i++)
        for (size_t k = 0; k < rows[i].count; k++) {
            const struct sql_value *cell = sql_row(&rows[i], k);
            (*out)[(*count)++] = (struct block_name){
                .journal = cell[0].s, .year = cell[1].i, .version = {cell[2].i, cell[3].i}};
        }
    return 0;
}

/* *dois stays as it is if the block is not whole. */
static int ask_dois(struct task *t, struct blocks *b, struct str key, struct str **dois,
                    size_t *count)
{
    struct arena *a = task_arena(t);
    struct redis_batch batch;
    const struct redis_reply *const *r;
    struct block_version v;
    redis_batch_init(&batch, t, b->redis);
    redis_batch_add(&batch, key, STR("HKEYS"), key);
    redis_batch_add(&batch, key, STR("HGET"), key, STR(BLOCK_HEADER));
    redis_batch_add(&batch, key, STR("PEXPIRE"), key, str_int(a, block_ttl_ms(task_loop(t))));
    int err = redis_batch_run(&batch, &r);
    if (err)
        return err == ERR_UNCERTAIN ? ERR_UNAVAILABLE : err;
    if (r[0]->type != REDIS_ARRAY || r[1]->type != REDIS_STRING ||
        !block_header_read(r[1]->str, (int64_t)r[0]->count, &v))
        return 0;
    struct str *found = ARENA_ARRAY(a, struct str, r[0]->count);
    size_t n = 0;
    for (size_t i = 0; i < r[0]->count; i++)
        if (!str_eq(r[0]->items[i]->str, STR(BLOCK_HEADER)))
            found[n++] = r[0]->items[i]->str;
    *dois = found;
    *count = n;
    return 0;
}

int block_dois(struct task *t, struct blocks *b, struct str journal, int64_t year,
               struct str **dois, size_t *count)
{
    struct str key = key_block(task_arena(t), journal, year);
    *dois = NULL;
    for (int i = 0; i < TRIES_MAX; i++) {
        int err = ask_dois(t, b, key, dois, count);
        if (!err && i == 0)
            metric_add(*dois ? b->hits : b->misses, 1);
        if (err || *dois)
            return err;
        err = block_refresh(t, b, journal, year, i > 0, NULL);
        if (err)
            return err;
    }
    return task_fail(t, ERR_UNAVAILABLE, "%.*s was gone %d times, just after it had been built",
                     STR_ARG(key), TRIES_MAX);
}
