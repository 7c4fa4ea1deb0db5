#include "engine/runs/scope.h"

#include "engine/store/keys.h"

/* --- what is frozen --- */

const struct judge_origin *scope_judge_now(struct task *t, const struct runs *r)
{
    struct arena *a = task_arena(t);
    if (!r->judge)
        return NULL;
    struct judge_origin now = judge_now(r->judge), *copy = ARENA_NEW(a, struct judge_origin);
    *copy = (struct judge_origin){.model = str_dup(a, now.model),
                                  .prompt = str_dup(a, now.prompt),
                                  .digest = str_dup(a, now.digest)};
    return copy;
}

void scope_put_judge(struct json_writer *j, const struct judge_origin *from)
{
    if (!from)
        return;
    jw_put_object(j, "judge");
    jw_put_str(j, "model", from->model);
    jw_put_str(j, "prompt", from->digest);
    jw_end_object(j);
}

bool scope_frozen(const struct json *params, struct judge_origin *out)
{
    const struct json *judge = json_get(params, "judge");
    out->model = json_str(json_get(judge, "model"));
    out->digest = json_str(json_get(judge, "prompt"));
    return out->model.p && out->digest.p;
}

#define KEEP_PROMPT "INSERT IGNORE INTO prompt_text (digest, text) VALUES (?, ?)"

int scope_keep_prompt(struct task *t, struct sql_pool *sql, const struct judge_origin *from)
{
    return sql_call(t, sql, NULL, KEEP_PROMPT, sql_text(from->digest), sql_text(from->prompt));
}

int scope_find_prompt(struct task *t, struct sql_pool *sql, struct str digest, struct str *text)
{
    struct sql_rows r;
    int err =
        sql_call(t, sql, &r, "SELECT text FROM prompt_text WHERE digest = ?", sql_text(digest));
    if (!err && r.count == 0)
        err = task_fail(t, ERR_NOT_FOUND, "prompt_text has no prompt %.*s", STR_ARG(digest));
    if (!err)
        *text = r.cells[0].s;
    return err;
}

/* --- what judges --- */

struct noting {
    struct run_id id;
    const struct scope_judge *judge;
};

static int write_judge(struct task *t, struct sql *c, void *arg)
{
    const struct noting *x = arg;
    const struct scope_judge *j = x->judge;
    int err = sql_on(t, c, NULL, KEEP_PROMPT, sql_text(j->digest), sql_text(j->prompt));
    if (!err)
        err = sql_on(t, c, NULL,
                     "INSERT IGNORE INTO query_judge (query_id, model, prompt_digest, simulated,"
                     " since) VALUES (?, ?, ?, ?, UTC_TIMESTAMP(3))",
                     sql_text(x->id.qid), sql_text(j->model), sql_text(j->digest),
                     sql_int(j->simulated));
    if (!err && j->simulated)
        err = sql_on(t, c, NULL, "UPDATE query_log SET simulated = 1 WHERE query_id = ?",
                     sql_text(x->id.qid));
    return err;
}

int scope_note_judge(struct task *t, const struct runs *r, struct run_id id,
                     const struct scope_judge *j)
{
    struct noting x = {id, j};
    struct str info = key_query_info(task_arena(t), id.uid, id.qid);
    int err = sql_tx(t, r->sql, write_judge, &x);
    if (!err && j->simulated) /* best effort: the next version of the row has it, too */
        (void)!redis_call(t, r->redis, info, NULL, STR("HSET"), info, STR("simulated"), STR("1"));
    return err;
}

static int read_judges(struct task *t, const struct runs *r, struct run_id id, struct scope *s)
{
    struct sql_rows rows;
    int err = sql_call(t, r->sql, &rows,
                       "SELECT model, text, digest, simulated,"
                       " CAST(UNIX_TIMESTAMP(since) * 1000 AS SIGNED)"
                       " FROM query_judge JOIN prompt_text ON digest = prompt_digest"
                       " WHERE query_id = ? ORDER BY since, digest, simulated",
                       sql_text(id.qid));
    if (err)
        return err;
    s->judges = ARENA_ARRAY(task_arena(t), struct scope_judge, rows.count + 1);
    s->judge_count = rows.count;
    for (size_t i = 0; i < rows.count; i++) {
        const struct sql_value *cell = sql_row(&rows, i);
        s->judges[i] =
            (struct scope_judge){cell[0].s, cell[1].s, cell[2].s, cell[3].i != 0, cell[4].i};
    }
    return 0;
}

/* --- all of it --- */

static int read_row(struct task *t, const struct runs *r, struct run_id id, struct run_row *out)
{
    struct sql_rows rows;
    int err = sql_call(t, r->sql, &rows,
                       "SELECT " RUN_ROW_COLUMNS " FROM query_log WHERE query_id = ? AND uid = ?",
                       sql_text(id.qid), sql_int(id.uid));
    if (!err && rows.count == 0)
        err = task_fail(t, ERR_NOT_FOUND, "you have no such run");
    return err ? err : run_row_read(t, rows.cells, out);
}

int scope_read(struct task *t, const struct runs *r, struct run_id id, struct scope *out)
{
    struct scope s = {.judge_count = 0};
    int err = read_row(t, r, id, &s.row);
    if (err)
        return err;
    if (json_parse(task_arena(t), s.row.params, &s.params, NULL))
        s.params = NULL;
    struct run_id original = {id.uid, s.row.original_query_id};
    if (original.qid.p)
        err = read_row(t, r, original, &s.original);
    if (err == ERR_NOT_FOUND)
        err = 0;
    if (!err)
        err = read_judges(t, r, id, &s);
    if (!err)
        *out = s;
    return err;
}
