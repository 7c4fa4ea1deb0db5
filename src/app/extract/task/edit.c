/* Values that are changed by hand, and what they were. */
#include "app/extract/task/extract_private.h"
#include "app/extract/task/flags.h"
#include "app/extract/task/results.h"

#define MS(column) "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', " column ") DIV 1000"

struct editing {
    const struct extract_change *change;
    struct extract_template fields;
    size_t field;
    int64_t row; /* extraction_result.number */
    struct extract_found given;
    struct extract_values values;
    struct str was; /* JSON of the field, before */
    struct str ai;  /* the same as the AI gave it; p == NULL: it was never edited */
    struct str by;  /* of the last edit so far */
    int64_t at_ms;  /* the same */
    bool same;      /* nothing changes */
    int64_t version;
};

static const struct extract_field *field_of(const struct editing *e)
{
    return &e->fields.fields[e->field];
}

static struct extract_found *found_of(const struct editing *e)
{
    return &e->values.fields[e->field];
}

static struct str found_json(struct arena *a, const struct extract_field *f,
                             const struct extract_found *v)
{
    struct buf b;
    struct json_writer w;
    buf_init(&b);
    jw_init(&w, &b);
    extract_found_put(&w, f, v);
    struct str s = str_dup(a, buf_str(&b));
    buf_release(&b);
    return s;
}

static struct str values_json(struct arena *a, const struct editing *e)
{
    struct buf b;
    struct json_writer w;
    buf_init(&b);
    jw_init(&w, &b);
    extract_values_put(&w, &e->fields, &e->values);
    struct str s = str_dup(a, buf_str(&b));
    buf_release(&b);
    return s;
}

/* What was stored of one field. */
static int read_found(struct arena *a, const struct extract_field *f, struct str json,
                      struct extract_found *out)
{
    const struct extract_template one = {f, 1};
    struct extract_values v;
    struct buf b;
    struct json_writer w;
    jw_begin(&w, &b);
    jw_key(&w, f->name);
    jw_raw(&w, json);
    int err = extract_values_read(a, &one, jw_finish(&w, a), &v);
    if (!err)
        *out = v.fields[0];
    return err;
}

/* Texts to the letter: another case is another value here. */
static bool same_value(const struct extract_field *f, const struct extract_value *a,
                       const struct extract_value *b)
{
    return extract_value_eq(f, a, b) && str_eq(a->text, b->text);
}

static bool same_found(const struct extract_field *f, const struct extract_found *a,
                       const struct extract_found *b)
{
    bool same = a->count == b->count;
    for (size_t i = 0; same && i < a->count; i++)
        same = same_value(f, &a->items[i], &b->items[i]);
    return same;
}

/* --- the transaction --- */

static int lock_row(struct task *t, struct sql *c, struct editing *e)
{
    struct sql_rows r;
    int err = sql_on(t, c, &r,
                     "SELECT state, version, result FROM extraction_result WHERE number = ?"
                     " FOR UPDATE",
                     sql_int(e->row));
    if (err)
        return err;
    if (r.count == 0)
        return extract_no_row(t);
    if (!str_eq(r.cells[0].s, STR("completed")))
        return task_fail(t, ERR_CONFLICT, "the row is not completed: there is nothing to edit");
    if (r.cells[1].i != e->change->version)
        return task_fail(t, ERR_CONFLICT,
                         "the row was changed meanwhile: it has version %lld, not %lld",
                         (long long)r.cells[1].i, (long long)e->change->version);
    if (!r.cells[2].s.p || extract_values_read(task_arena(t), &e->fields, r.cells[2].s, &e->values))
        return task_fail(t, ERR_INTERNAL, "the values of the row cannot be read");
    return 0;
}

/* Its first edit has what the AI said. */
static int read_history(struct task *t, struct sql *c, struct editing *e)
{
    struct sql_rows r;
    int err = sql_on(
        t, c, &r,
        "(SELECT was, by_name, " MS("at") " FROM extraction_edit WHERE result = ?"
                                          " AND field = ? ORDER BY number LIMIT 1) UNION ALL"
                                          " (SELECT NULL, by_name, " MS(
                                              "at") " FROM extraction_edit WHERE result = ?"
                                                    " AND field = ? ORDER BY number DESC LIMIT 1)",
        sql_int(e->row), sql_text(e->change->field), sql_int(e->row), sql_text(e->change->field));
    if (err || r.count < 2)
        return err;
    e->ai = r.cells[0].s;
    e->by = sql_row(&r, 1)[1].s;
    e->at_ms = sql_row(&r, 1)[2].i;
    return 0;
}

/* The value that the field gets: what was given, or the AI's own with its quote, if they are the
 * same. */
static int choose(struct task *t, struct editing *e)
{
    struct arena *a = task_arena(t);
    struct extract_found *now = found_of(e), ai;
    e->was = found_json(a, field_of(e), now);
    e->same = same_found(field_of(e), now, &e->given);
    if (e->same)
        return 0;
    *now = e->given;
    if (!e->ai.p)
        return 0;
    if (read_found(a, field_of(e), e->ai, &ai))
        return task_fail(t, ERR_INTERNAL, "the first value of the field cannot be read");
    if (same_found(field_of(e), &ai, now))
        *now = ai;
    return 0;
}

static int store(struct task *t, struct sql *c, struct editing *e)
{
    struct arena *a = task_arena(t);
    struct extract_flags f;
    extract_flags_of(a, &e->fields, &e->values, &f);
    int err = sql_on(t, c, NULL,
                     "UPDATE extraction_result SET result = ?, missing = ?, unverified = ?,"
                     " differs = ?, edited = ?, sort_keys = ?, version = version + 1,"
                     " changed_at = UTC_TIMESTAMP(3) WHERE number = ?",
                     sql_text(values_json(a, e)), sql_int(f.missing), sql_int(f.unverified),
                     sql_int(f.differs), sql_int(f.edited), sql_text(f.sort_keys), sql_int(e->row));
    return err ? err
               : sql_on(t, c, NULL,
                        "INSERT INTO extraction_edit (result, uid, by_name, field, was, became,"
                        " version, at) VALUES (?, ?, ?, ?, ?, ?, ?, UTC_TIMESTAMP(3))",
                        sql_int(e->row), sql_int(e->change->uid), sql_text(e->change->by),
                        sql_text(e->change->field), sql_text(e->was),
                        sql_text(found_json(a, field_of(e), found_of(e))),
                        sql_int(e->change->version + 1));
}

static int edit_body(struct task *t, struct sql *c, void *arg)
{
    struct editing *e = arg;
    e->ai = STR_NULL;
    int err = lock_row(t, c, e);
    if (!err)
        err = read_history(t, c, e);
    if (!err)
        err = choose(t, e);
    e->version = e->change->version;
    if (err || e->same)
        return err;
    e->version++;
    return store(t, c, e);
}

/* --- one edit --- */

static int read_given(struct task *t, struct editing *e, struct extract_changed *out)
{
    const char *complaint;
    ptrdiff_t i = extract_field_find(&e->fields, e->change->field);
    out->wrong = i < 0 ? "field" : "value";
    if (i < 0)
        return task_fail(t, ERR_INVALID, "the template has no such field");
    e->field = (size_t)i;
    int err =
        extract_value_given(task_arena(t), field_of(e), e->change->value, &e->given, &complaint);
    return err ? task_fail(t, err, "%s", complaint) : 0;
}

/* by and at as they are now: of this edit, or of the last one if it changed nothing. */
static struct extract_mark mark_of(struct task *t, const struct editing *e)
{
    struct extract_mark m = {.field = e->change->field, .by = STR_NULL};
    if (!found_of(e)->edited)
        return m;
    m.by = e->same ? e->by : e->change->by;
    m.at_ms = e->same ? e->at_ms : loop_wall_ms(task_loop(t));
    m.was = e->ai.p ? e->ai : e->was;
    return m;
}

int extract_edit(struct task *t, struct extract *x, const struct extract_change *c,
                 struct extract_changed *out)
{
    struct editing e = {.change = c};
    struct extract_task k;
    out->wrong = NULL;
    int err = extract_task_find(t, x, c->uid, c->task_id, &k);
    if (!err && (c->place < 1 || c->place > k.total))
        err = extract_no_row(t);
    if (!err)
        err = extract_fields_read(t, &k, &e.fields);
    if (!err)
        err = read_given(t, &e, out);
    if (err)
        return err;
    e.row = EXTRACT_FIRST(k.number) + c->place;
    err = sql_tx(t, x->node->sql, edit_body, &e);
    if (err)
        return err;
    out->version = e.version;
    out->value = found_json(task_arena(t), field_of(&e), found_of(&e));
    out->mark = mark_of(t, &e);
    return 0;
}

/* --- what was edited --- */

int extract_edits_read(struct task *t, struct extract *x, int64_t uid, struct str task_id,
                       int64_t place, int64_t below, int64_t limit, struct extract_edits *out)
{
    struct extract_task k;
    struct sql_rows r;
    check(limit > 0 && limit <= EXTRACT_EDITS_MAX);
    int err = extract_task_find(t, x, uid, task_id, &k);
    if (!err && (place < 1 || place > k.total))
        err = extract_no_row(t);
    if (!err)
        err =
            sql_call(t, x->node->sql, &r,
                     "SELECT number, version, " MS(
                         "at") ", field, by_name, was, became"
                               " FROM extraction_edit WHERE result = ? AND number < ?"
                               " ORDER BY number DESC LIMIT ?",
                     sql_int(EXTRACT_FIRST(k.number) + place), sql_int(below), sql_int(limit + 1));
    if (err)
        return err;
    out->count = r.count > (size_t)limit ? (size_t)limit : r.count;
    out->list = ARENA_ARRAY(task_arena(t), struct extract_edit, out->count);
    for (size_t i = 0; i < out->count; i++) {
        const struct sql_value *v = sql_row(&r, i);
        out->list[i] = (struct extract_edit){.number = v[0].i,
                                             .version = v[1].i,
                                             .at_ms = v[2].i,
                                             .field = v[3].s,
                                             .by = v[4].s,
                                             .was = v[5].s,
                                             .now = v[6].s};
    }
    out->next = r.count > out->count ? out->list[out->count - 1].number : 0;
    return 0;
}
