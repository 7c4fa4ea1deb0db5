/* Lists of blocks. */
#include "engine/papers/block_private.h"

#define JOURNALS_MAX 200 /* in one statement */
#define HEAD_ARGS    5   /* before their names */

/* Papers now, less those that came since that load, and with those that left. */
#define PAPERS_THEN                                                                                \
    "CASE WHEN b.load_no <= ? THEN b.papers ELSE b.papers - CAST((SELECT COALESCE(SUM(c.net), 0)"  \
    " FROM corpus_change c WHERE c.journal = b.journal AND c.year = b.year AND c.load_no > ?)"     \
    " AS SIGNED) END"

/* One prepared statement for every part: placeholders left over repeat the first name. */
static int list_part(struct task *t, struct blocks *b, const struct blocks_choice *c, size_t at,
                     struct sql_rows *out)
{
    struct arena *a = task_arena(t);
    struct sql_value *argv = ARENA_ARRAY(a, struct sql_value, JOURNALS_MAX + HEAD_ARGS);
    struct buf statement;
    buf_init(&statement);
    buf_add_str(&statement, STR("SELECT b.journal, b.year, " PAPERS_THEN " FROM corpus_block b"
                                " WHERE b.since <= ? AND b.year BETWEEN ? AND ?"
                                " AND b.journal IN (?"));
    argv[0] = argv[1] = argv[2] = sql_int(c->load);
    argv[3] = sql_int(c->year_from);
    argv[4] = sql_int(c->year_to);
    for (size_t i = 0; i < JOURNALS_MAX; i++) {
        argv[HEAD_ARGS + i] = sql_text(c->journals[at + i < c->journal_count ? at + i : at]);
        if (i > 0)
            buf_add_str(&statement, STR(", ?"));
    }
    buf_add_str(&statement, STR(") ORDER BY b.journal, b.year"));
    const char *text = str_z(a, buf_str(&statement));
    buf_release(&statement);
    return sql_argv(t, b->sql, text, JOURNALS_MAX + HEAD_ARGS, argv, out);
}

int blocks_list(struct task *t, struct blocks *b, const struct blocks_choice *c,
                struct block_name **out, size_t *count)
{
    size_t parts = (c->journal_count + JOURNALS_MAX - 1) / JOURNALS_MAX, total = 0;
    struct sql_rows *rows = ARENA_ARRAY(task_arena(t), struct sql_rows, parts + 1);
    for (size_t i = 0; i < parts; i++) {
        int err = list_part(t, b, c, i * JOURNALS_MAX, &rows[i]);
        if (err)
            return err;
        total += rows[i].count;
    }
    *out = ARENA_ARRAY(task_arena(t), struct block_name, total + 1);
    *count = 0;
    for (size_t i = 0; i < parts; i++)
        for (size_t k = 0; k < rows[i].count; k++) {
            const struct sql_value *cell = sql_row(&rows[i], k);
            if (cell[2].i > 0)
                (*out)[(*count)++] = (struct block_name){
                    .journal = cell[0].s, .year = cell[1].i, .version = {.papers = cell[2].i}};
        }
    return 0;
}
