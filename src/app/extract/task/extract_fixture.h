/* extract_fixture.h -- what the tests of tasks have in common: real stores, a node, documents. */
#ifndef APP_EXTRACT_TASK_EXTRACT_FIXTURE_H
#define APP_EXTRACT_TASK_EXTRACT_FIXTURE_H

#include "app/extract/document.h"
#include "app/extract/task/extract_private.h"
#include "app/extract/template_store.h"
#include "engine/jobs/pay.h"
#include "engine/runs/reserve.h"
#include "engine/store/keys.h"
#include "tests/node.h"

#define PRICE         10
#define DOCUMENTS_HAD 20
#define FIELDS                                                                                     \
    "[{\"name\":\"dose\",\"type\":\"text\"},"                                                      \
    "{\"name\":\"outcome\",\"type\":\"text\"}]"

struct world {
    struct group links, tasks;
    struct node node;
    struct runs runs;
    struct extract *extract;
    int64_t uid;
    struct str template_id;
    struct str documents[DOCUMENTS_HAD];
};
static struct world world;
static struct world *const w = &world;

static inline struct str sql_word(struct task *t, const char *statement, struct sql_value value)
{
    struct sql_rows r;
    int err = sql_call(t, w->node.sql, &r, statement, value);
    if (err)
        printf("# %s: %s\n", statement, task_error(t));
    check(err == 0);
    if (r.count == 0)
        return STR("(none)");
    return r.cells[0].type == SQL_INT ? str_int(task_arena(t), r.cells[0].i) : r.cells[0].s;
}

static inline void sql_do(struct task *t, const char *statement, struct sql_value value)
{
    int err = sql_call(t, w->node.sql, NULL, statement, value);
    if (err)
        printf("# %s: %s\n", statement, task_error(t));
    check(err == 0);
}

/* --- a node --- */

static inline struct test_node world_node(void)
{
    return (struct test_node){&w->node, &w->links, &w->tasks, &w->runs};
}

static inline void open_node(struct task *t)
{
    struct test_node x = world_node();
    struct node *n = &w->node;
    node_open(t, &x);
    config.extract_document_cents = PRICE;
    n->documents = documents_new(n);
    n->extract = w->extract = extract_new(n);
    w->extract->kind.calls_ai = false; /* what claims do is tested with them */
    w->extract->kind.backoff_ms = 10;
    node_trust(t, &x);
}

static inline void close_node(struct task *t)
{
    struct test_node x = world_node();
    node_end(t, &x);
    extract_free(w->extract);
    documents_free(w->node.documents);
    node_release(t, &x);
}

/* --- what a user has --- */

static inline int64_t add_user(struct task *t, int64_t cents)
{
    return node_user(t, w->node.sql, cents);
}

static inline struct str add_document(struct task *t, int64_t uid, int n, struct str text)
{
    struct sql_rows r;
    struct str id = str_printf(&forever, "%lld-%032x", (long long)uid, (unsigned)n);
    check(sql_call(t, w->node.sql, &r,
                   "INSERT INTO document (id, uid, name, media, bytes, digest, text_from,"
                   " text_bytes, created_at, stored_at) VALUES (?, ?, ?, 'text/plain', ?, ?,"
                   " 'file', ?, UTC_TIMESTAMP(3), UTC_TIMESTAMP(3))",
                   sql_text(id), sql_int(uid),
                   sql_text(str_printf(task_arena(t), "document %d", n)), sql_int((int64_t)text.n),
                   sql_blob(str_printf(task_arena(t), "%032d", n)), sql_int((int64_t)text.n)) == 0);
    check(sql_call(t, w->node.sql, NULL,
                   "INSERT INTO document_piece (document, kind, place, bytes)"
                   " VALUES (?, 'file', 0, ?)",
                   sql_int((int64_t)r.insert_id), sql_blob(text)) == 0);
    return id;
}

/* A node, and a user with a template and DOCUMENTS_HAD documents. */
static inline void open_user(struct task *t, int64_t cents)
{
    static int number;
    struct stored_template x = {.name = STR("Test"), .fields = STR(FIELDS), .field_count = 2};
    open_node(t);
    check(redis_call(t, w->node.redis, STR_NULL, NULL, STR("FLUSHALL")) == 0);
    w->uid = add_user(t, cents);
    check(template_store_add(t, w->node.sql, w->uid, &x) == 0);
    w->template_id = str_dup(&forever, x.id);
    for (size_t i = 0; i < DOCUMENTS_HAD; i++)
        w->documents[i] = add_document(t, w->uid, ++number, STR("The dose was 5 mg."));
    config.extract_part_tokens = 24000;
}

static inline struct extract_wish wish_of(size_t documents)
{
    return (struct extract_wish){.uid = w->uid,
                                 .template_id = w->template_id,
                                 .document_ids = w->documents,
                                 .document_count = documents};
}

static inline struct str submit(struct task *t, size_t documents)
{
    struct extract_wish wish = wish_of(documents);
    struct extract_submitted done;
    int err = extract_submit(t, w->extract, &wish, &done);
    if (err)
        printf("# submit: %s %s\n", err_name(err), task_error(t));
    check(err == 0);
    return done.id;
}

/* "balance reserved payments" */
static inline struct str money(struct task *t)
{
    struct reserve x;
    struct str key = key_unfinished(task_arena(t), w->uid);
    check(redis_call(t, w->node.redis, key, NULL, STR("DEL"), key) == 0);
    check(reserve_look(t, &w->runs, w->uid, &x) == 0 && x.known);
    struct str paid = sql_word(
        t, "SELECT COUNT(*) FROM ledger_request WHERE request_id LIKE 'extract:%' AND uid = ?",
        sql_int(w->uid));
    return str_printf(task_arena(t), "%lld %lld %.*s", (long long)x.balance, (long long)x.reserved,
                      STR_ARG(paid));
}
#endif
