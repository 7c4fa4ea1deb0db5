/* The queue of posts: its order, what it costs, many at once, and another model. */
#include "app/embed/post/post_fixture.h"

static struct post_caller me(void)
{
    return (struct post_caller){.uid = uid};
}

static const struct post_caller admin = {.admin = true};

/* --- the order --- */

/* Ids of those that wait, in their order. */
static size_t line(struct task *t, int64_t *out, size_t most, int64_t *priorities)
{
    struct jobs_entry *list;
    size_t count;
    check(jobs_list(t, w->node.jobs, POST_QUEUE, false, most, &list, &count) == 0);
    for (size_t i = 0; i < count; i++) {
        check(str_to_i64(list[i].id, &out[i]));
        priorities[i] = list[i].priority;
    }
    return count;
}

static void test_order(struct task *t, void *arg)
{
    int64_t got[8], priorities[8], queued, refused;
    (void)arg;
    begin(t);
    int64_t a = write_post(t, "a", "a"), b = write_post(t, "b", "b"), c = write_post(t, "c", "c"),
            d = write_post(t, "d", "d");
    is_int(post_embed(t, w->posts, me(), c, NULL), 0, "by hand");
    ok(line(t, got, 8, priorities) == 4 && got[0] == c && got[1] == a && got[2] == b,
       "is before those that were written, which keep their order");
    ok(priorities[0] == POST_BY_HAND && priorities[1] == POST_WRITTEN, "by its priority");
    check(change_post(t, b, NULL, "bb", -1) == 0);
    is_int((int64_t)line(t, got, 8, priorities), 4, "a change of what waits is no second job");
    check(delete_post(t, d) == 0);
    check(line(t, got, 8, priorities) == 4);
    ok(got[0] == d && priorities[0] == POST_DROP, "points that go come first");
    check(redis_call(t, w->node.redis, STR_NULL, NULL, STR("FLUSHALL")) == 0);
    fill(t);
    check(line(t, got, 8, priorities) == 4);
    ok(got[0] == d && got[1] == c && got[2] == a && got[3] == b, "Redis is filled in this order");
    thinks_ms = 20;
    go(t);
    ok(await_asked(t, 1), "they are worked on");
    struct jobs_entry *list;
    size_t count;
    check(jobs_list(t, w->node.jobs, POST_QUEUE, true, 8, &list, &count) == 0);
    ok(count <= 2, "two at a time: %zu", count);
    ok(comes_to_rest(t) && all_agree(t), "to the end");
    for (int i = 0; i < 5; i++)
        (void)write_post(t, "more", "more");
    ok(comes_to_rest(t), "and more of them");
    struct post_batch all = {.which = POST_ALL};
    thinks_ms = 60;
    check(post_embed_batch(t, w->posts, &all, NULL, &queued, &refused) == 0);
    is_int(queued, 8, "all of them again");
    check(post_embed_batch(t, w->posts, &all, NULL, &queued, &refused) == 0);
    is_int(queued, 0, "those that are queued, or in work, are not");
    int64_t late = write_post(t, "late", "late");
    ok(comes_to(t, late, "completed"), "one that is written meanwhile");
    is_int(sql_number(t, "SELECT COUNT(*) FROM tb_post WHERE rag_status = 'completed' OR 0 = ?",
                      1) < 7,
           1, "comes before the rest of a batch");
    ok(comes_to_rest(t) && all_agree(t), "which is done, too");
    close_world(t);
}

static void test_batch(struct task *t, void *arg)
{
    int64_t ids[30], queued, refused;
    (void)arg;
    begin(t);
    for (size_t i = 0; i < 30; i++)
        ids[i] = write_post(t, "a", i % 10 ? "b" : i % 20 ? " \n\t" : "");
    sql_do(t, "UPDATE tb_post SET rag_status = 'completed', space = position > 0");
    check(redis_call(t, w->node.redis, STR_NULL, NULL, STR("FLUSHALL")) == 0);
    struct post_batch some = {.which = POST_IDS, .ids = ids, .count = 12};
    check(post_embed_batch(t, w->posts, &some, NULL, &queued, &refused) == 0);
    ok(queued == 10 && refused == 0, "of 12, two are empty: %lld", (long long)queued);
    config.embedding_queue_max = 13;
    struct post_batch all = {.which = POST_ALL};
    check(post_embed_batch(t, w->posts, &all, NULL, &queued, &refused) == 0);
    ok(queued == 3 && refused == 14, "as many as fit into the queue: %lld, %lld", (long long)queued,
       (long long)refused);
    is_int(post_embed_batch(t, w->posts, &all, NULL, &queued, &refused), ERR_BUSY,
           "then it is full");
    is_int(sql_number(t, "SELECT COUNT(DISTINCT position) FROM tb_post WHERE priority = ?",
                      POST_BATCH),
           13, "each has a place of its own");
    close_world(t);
}

/* --- money --- */

/* "balance reserved payments" */
static struct str money(struct task *t)
{
    struct reserve x;
    struct str key = key_unfinished(task_arena(t), uid);
    check(redis_call(t, w->node.redis, key, NULL, STR("DEL"), key) == 0);
    check(reserve_look(t, &w->runs, uid, &x) == 0 && x.known);
    int64_t paid = sql_number(t,
                              "SELECT COUNT(*) FROM ledger_request WHERE request_id LIKE"
                              " 'embedding:%' AND uid = ?",
                              uid);
    return str_printf(task_arena(t), "%lld %lld %lld", (long long)x.balance, (long long)x.reserved,
                      (long long)paid);
}

static void test_money(struct task *t, void *arg)
{
    (void)arg;
    begin_with(t, 350, 1);
    int64_t id = write_post(t, "a", "b");
    is_str(money(t), STR("350 100 0"), "its price is reserved");
    check(change_post(t, id, NULL, "c", -1) == 0);
    is_str(money(t), STR("350 100 0"), "a change of what waits reserves no more");
    dies_once = "pay";
    go(t);
    ok(comes_to_rest(t) && deaths == 1 && all_agree(t), "a node dies after the payment");
    is_str(money(t), STR("250 0 1"), "it is paid once, nothing is reserved");
    is_int(asked, 1, "and was embedded once");
    check(change_post(t, id, "title", NULL, 1) == 0);
    ok(comes_to_rest(t), "another title");
    is_str(money(t), STR("250 0 1"), "costs nothing");
    check(change_post(t, id, NULL, "d", -1) == 0);
    ok(comes_to_rest(t), "another content");
    is_str(money(t), STR("150 0 2"), "is paid once more");
    is_int(post_embed(t, w->posts, me(), id, NULL), 0, "by hand");
    ok(comes_to_rest(t), "it is embedded again");
    is_str(money(t), STR("50 0 3"), "and paid");
    is_int(post_embed(t, w->posts, admin, id, NULL), 0, "by an admin");
    ok(comes_to_rest(t) && asked == 4, "it is embedded again");
    is_str(money(t), STR("50 0 3"), "for nothing");
    is_int(write_post(t, "x", "y"), ERR_FUNDS, "for another one there is no money");
    is_int(change_post(t, id, NULL, "e", -1), ERR_FUNDS, "nor for a change");
    is_int(post_embed(t, w->posts, me(), id, NULL), ERR_FUNDS, "nor by hand");
    is_str(look_at(t, id).content, STR("d"), "and nothing has changed");
    ok(write_post(t, "x", "") > 0, "an empty one costs nothing");
    is_int(change_post(t, id, "y", "d", 0), 0, "nor does a title");
    is_int(delete_post(t, id), 0, "nor its end");
    ok(comes_to_rest(t) && all_agree(t), "all is as it should be");
    close_world(t);
}

static void test_reserved(struct task *t, void *arg)
{
    (void)arg;
    begin_with(t, 350, 1);
    int64_t id = write_post(t, "a", "b"), other = write_post(t, "c", "d");
    is_str(money(t), STR("350 200 0"), "reserved for two");
    check(delete_post(t, id) == 0);
    check(change_post(t, other, NULL, "", -1) == 0);
    is_str(money(t), STR("350 0 0"), "deleted and emptied: it is free again");
    service = ERR_REFUSED;
    go(t);
    id = write_post(t, "e", "f");
    ok(comes_to(t, id, "failed"), "one fails");
    is_str(money(t), STR("350 0 0"), "what fails costs nothing");
    service = 0;
    struct ledger_move other_work = {.uid = uid, .cents = 300, .request_id = STR("x")};
    thinks_ms = 100;
    asked = 0;
    id = write_post(t, "g", "h");
    check(ledger_pay(t, w->node.ledger, &other_work) == 0);
    for (int i = 0; i < 1000 && !look_at(t, id).reason.p; i++)
        pause_ms(t, 5);
    is_str(look_at(t, id).reason, STR("no_money"), "the money has gone meanwhile: it waits");
    is_str(look_at(t, id).status, STR("pending"), "and is not failed");
    is_str(money(t), STR("50 100 0"), "nothing is paid");
    check(change_post(t, id, NULL, "", -1) == 0);
    ok(comes_to_rest(t) && all_agree(t), "without a content it need not wait");
    close_world(t);
}

/* --- another model --- */

static void one_round(struct task *t)
{
    struct role_turn turn = {.locked = false};
    int err = posts_space_role(t, w->posts, &turn);
    if (err < 0)
        printf("# %s\n", task_error(t));
    check(err >= 0);
}

static void test_another_model(struct task *t, void *arg)
{
    (void)arg;
    begin_with(t, 350, 1);
    int64_t a = write_post(t, "a", "a"), b = write_post(t, "b", "b"), lost = 0;
    go(t);
    ok(comes_to_rest(t) && asked == 2, "two posts");
    service = ERR_REFUSED;
    lost = write_post(t, "c", "c");
    ok(comes_to(t, lost, "failed"), "and one that fails");
    service = 0;
    one_round(t);
    ok(comes_to_rest(t) && asked == 3 && completed_space == 0,
       "of one model: nothing is to be done");
    space_now = 2;
    building = true;
    thinks_ms = 50;
    one_round(t);
    is_int(sql_number(t, "SELECT COUNT(*) FROM tb_post WHERE priority = ?", POST_BATCH), 2,
           "another model: they are queued after all others");
    one_round(t);
    is_int(completed_space, 0, "the former one answers meanwhile");
    ok(comes_to_rest(t) && asked == 5 && all_agree(t), "until they are embedded");
    one_round(t);
    is_int(completed_space, 2, "then the new one does");
    is_str(money(t), STR("150 0 2"), "for nothing");
    one_round(t);
    ok(comes_to_rest(t) && asked == 5, "and that was all");
    is_int(sql_number(t,
                      "SELECT COUNT(*) FROM tb_post WHERE rag_status = 'completed'"
                      " AND space = ?",
                      2),
           2, "the rows say so: %lld %lld", (long long)a, (long long)b);
    close_world(t);
}

int main(void)
{
    start_stores();
    tap_task(test_order, NULL, true);
    tap_task(test_batch, NULL, true);
    tap_task(test_money, NULL, true);
    tap_task(test_reserved, NULL, true);
    tap_task(test_another_model, NULL, true);
    return stop_stores();
}
