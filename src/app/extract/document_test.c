/* Rows of documents, and what tasks need of them; uploads are tested with whole servers. */
#include "app/extract/document_private.h"
#include "engine/people/own_id.h"
#include "engine/people/project.h"
#include "engine/setup/config.h"
#include "engine/setup/schema.h"
#include "tests/mariadb.h"
#include "tests/tap.h"

#define UID   7
#define OTHER 70 /* whose ids begin alike */
#define MANY  300

static struct mariadb server;

struct world {
    struct node node;
    struct config config;
    struct group group;
};

static void world_init(struct task *t, struct world *w)
{
    struct schema_report report;
    *w = (struct world){.config = {.extract_pdf_command = "", .extract_pdf_url = ""}};
    w->node = (struct node){.loop = task_loop(t), .config = &w->config};
    group_init(&w->group, task_loop(t));
    w->node.group = &w->group;
    w->node.sql = sql_pool_new(task_loop(t), &(struct sql_options){.url = server.url});
    w->node.documents = documents_new(&w->node);
    check(schema_migrate(t, w->node.sql, &report) == 0);
}

static void world_release(struct task *t, struct world *w)
{
    check(group_join(t, &w->group) == 0);
    documents_free(w->node.documents);
    sql_pool_free(w->node.sql);
}

/* A text that was stored; its id. */
static struct str put(struct task *t, struct world *w, int64_t uid, const char *text)
{
    struct str id = own_id_new(t, uid);
    struct sql_rows r;
    check(sql_call(t, w->node.sql, &r,
                   "INSERT INTO document (id, uid, name, media, bytes, text_from, text_bytes,"
                   " created_at, stored_at) VALUES (?, ?, 'x', 'text/plain', ?, 'file', ?,"
                   " UTC_TIMESTAMP(3), UTC_TIMESTAMP(3))",
                   sql_text(id), sql_int(uid), sql_int((int64_t)strlen(text)),
                   sql_int((int64_t)strlen(text))) == 0);
    check(document_piece_add(t, w->node.sql, (int64_t)r.insert_id, DOCUMENT_FILE, 0,
                             str_of(text)) == 0);
    return id;
}

static void test_find(struct task *t, struct world *w)
{
    struct str ids[MANY + 1];
    struct document out[MANY + 1];
    bool same = true;
    for (size_t i = 0; i < MANY; i++)
        ids[i] = put(t, w, UID, "text");
    is_int(documents_find(t, &w->node, UID, ids, MANY, out), 0, "three hundred are found");
    for (size_t i = 0; i < MANY; i++)
        same = same && str_eq(out[i].id, ids[i]) && out[i].bytes == 4;
    ok(same, "in the order of their ids");
    ids[MANY] = ids[0];
    is_int(documents_find(t, &w->node, UID, ids, MANY + 1, out), 0, "one may be named twice");
    is_str(out[MANY].id, ids[0], "and is found twice");
    is_int(documents_find(t, &w->node, UID, ids, 0, out), 0, "none are found at once");
    ids[280] = put(t, w, OTHER, "another's");
    is_int(documents_find(t, &w->node, UID, ids, MANY, out), ERR_NOT_FOUND, "another's is not");
    ok(strstr(task_error(t), str_z(task_arena(t), ids[280])), "which the error names");
    ids[280] = own_id_new(t, UID);
    is_int(documents_find(t, &w->node, UID, ids, MANY, out), ERR_NOT_FOUND, "nor one that is none");
    ok(strstr(task_error(t), str_z(task_arena(t), ids[280])), "which is named, too");
}

struct use {
    const struct document *list;
    size_t count;
};

static int use(struct task *t, struct sql *c, void *arg)
{
    const struct use *u = arg;
    return documents_use(t, c, UID, u->list, u->count);
}

static void test_use(struct task *t, struct world *w)
{
    struct str ids[MANY], text;
    const char *reason;
    for (size_t i = 0; i < MANY; i++)
        ids[i] = put(t, w, UID, "evidence");
    struct document *list = ARENA_ARRAY(task_arena(t), struct document, MANY);
    check(documents_find(t, &w->node, UID, ids, MANY, list) == 0);
    struct use u = {list, MANY};
    is_int(sql_tx(t, w->node.sql, use, &u), 0, "a task takes three hundred");
    is_int(sql_tx(t, w->node.sql, use, &u), 0, "and another one the same");
    is_int(document_delete(t, &w->node, UID, ids[1]), 0, "one of them is deleted");
    is_int(document_delete(t, &w->node, UID, ids[1]), ERR_NOT_FOUND, "once");
    is_int(document_text(t, &w->node, UID, ids[1], &text, &reason), 0,
           "its tasks have its text still");
    is_str(text, STR("evidence"), "as it was");
    is_int(sql_tx(t, w->node.sql, use, &u), ERR_NOT_FOUND, "no other task gets it");
    struct str free = put(t, w, UID, "not used");
    is_int(document_delete(t, &w->node, UID, free), 0, "one that no task has is deleted");
    is_int(document_text(t, &w->node, UID, free, &text, &reason), ERR_NOT_FOUND,
           "and has no text any more");
    is_int(document_text(t, &w->node, OTHER, ids[0], &text, &reason), ERR_NOT_FOUND,
           "nor for another user");
    struct role_turn turn = {.locked = false};
    is_int(documents_sweep_role(t, w->node.documents, &turn), 0, "the sweep");
    struct sql_rows r;
    check(sql_call(t, w->node.sql, &r, "SELECT COUNT(*) FROM document WHERE id = ?",
                   sql_text(free)) == 0);
    is_int(r.cells[0].i, 0, "removes the row that nothing needs");
    is_int(document_text(t, &w->node, UID, ids[1], &text, &reason), 0, "and leaves the other");
}

static void test_project(struct task *t, struct world *w)
{
    struct project first, again, found, foreign;
    is_int(project_get(t, w->node.sql, UID, STR_NULL, &first), 0, "a user's first project");
    is_int(project_get(t, w->node.sql, UID, STR_NULL, &again), 0, "is there from then on");
    is_str(again.id, first.id, "and is the same");
    is_int(project_get(t, w->node.sql, UID, first.id, &found), 0, "it is found by its id");
    is_str(found.name, STR(""), "and has no name of its own");
    is_int(project_get(t, w->node.sql, OTHER, first.id, &found), ERR_NOT_FOUND, "not by another");
    is_int(project_get(t, w->node.sql, OTHER, STR_NULL, &foreign), 0, "who has one, too");
    ok(!str_eq(foreign.id, first.id), "which is another");
    is_int(project_get(t, w->node.sql, UID, own_id_new(t, UID), &found), ERR_NOT_FOUND,
           "there is no other");
    is_int(project_get(t, w->node.sql, UID, STR("x"), &found), ERR_NOT_FOUND, "nor one of no id");
}

static void test_ids(struct task *t)
{
    struct str id = own_id_new(t, UID);
    ok(own_id_is(id, UID) && id.n <= OWN_ID_CHARS, "an id is its user's");
    ok(!own_id_is(id, OTHER) && !own_id_is(id, 0), "and nobody else's");
    ok(!own_id_is(str_from(id.p, id.n - 1), UID) && !own_id_is(STR("7-"), UID) &&
           !own_id_is(STR(""), UID),
       "a part of one is none");
    is_str(document_clip(STR("aé"), 2), STR("a"), "no half character at the end of a clip");
    is_str(document_clip(STR("aé"), 3), STR("aé"), "what fits stays");
}

static void test_all(struct task *t, void *arg)
{
    (void)arg;
    struct world w;
    world_init(t, &w);
    test_ids(t);
    test_project(t, &w);
    test_find(t, &w);
    test_use(t, &w);
    world_release(t, &w);
}

int main(void)
{
    mariadb_start(&server, NULL);
    tap_task(test_all, NULL, true);
    mariadb_release(&server);
    return tap_done();
}
