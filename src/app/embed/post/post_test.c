/* Posts on real stores, with a made-up store of points: whatever dies when, in the end each post
 * has the vectors of its last content, a deleted one none, and no one twice. */
#include "app/embed/post/post_fixture.h"

static struct post_caller me(void)
{
    return (struct post_caller){.uid = uid};
}

static const struct post_caller admin = {.admin = true};

/* --- a life --- */

static void test_life(struct task *t, void *arg)
{
    (void)arg;
    begin(t);
    int64_t id = write_post(t, "Water", "# Heat\n\nIt *boils*.");
    struct post x = look_at(t, id);
    is_str(x.status, STR("pending"), "a post is saved, and waits");
    is_int(x.version, 1, "its first version");
    go(t);
    ok(comes_to(t, id, "completed"), "it is embedded");
    x = look_at(t, id);
    ok(x.chunks == 1 && x.chunks_done == 1 && !x.error.p && !x.reason.p, "all of its chunks");
    ok(all_agree(t), "points and words are those of its plain text");
    is_int(change_post(t, id, "Steam", NULL, 1), 0, "another title, and hidden");
    ok(comes_to_rest(t) && tags == 1 && asked == 1, "points are tagged, and not embedded: %d %d",
       tags, asked);
    is_str(look_at(t, id).status, STR("completed"), "it stays completed");
    is_int(look_at(t, id).version, 2, "as another version");
    ok(all_agree(t), "points and words have the new title, and are hidden");
    is_int(change_post(t, id, "Steam", "# Heat\n\nIt *boils*.", 1), 0, "the same once more");
    is_int(look_at(t, id).version, 2, "is no change");
    is_int(change_post(t, id, NULL, "Ice.", -1), 0, "another content");
    ok(comes_to_rest(t) && asked == 2 && all_agree(t), "is embedded");
    is_int(change_post(t, id, NULL, "  \n", -1), 0, "no content any more");
    ok(comes_to_rest(t) && asked == 2 && owner_count == 0 && all_agree(t), "its points go");
    is_str(look_at(t, id).status, STR("completed"), "it is as it should be");
    is_int(change_post(t, id, NULL, "Snow.", -1), 0, "and a content again");
    ok(comes_to_rest(t) && asked == 3 && all_agree(t), "is embedded");
    is_int(delete_post(t, id), 0, "deleted");
    is_str(look_at(t, id).status, STR("(none)"), "it is gone at once");
    ok(comes_to_rest(t) && owner_count == 0 && all_agree(t), "with its points and words");
    is_int(sql_number(t, "SELECT COUNT(*) FROM tb_post WHERE id = ?", id), 0, "and its row");
    is_int(delete_post(t, id), ERR_NOT_FOUND, "once");
    close_world(t);
}

static void test_empty(struct task *t, void *arg)
{
    (void)arg;
    begin(t);
    int64_t length, id = write_post(t, "Only a title", NULL);
    is_str(look_at(t, id).status, STR("completed"), "an empty post is not queued");
    check(jobs_length(t, w->node.jobs, POST_QUEUE, &length) == 0);
    is_int(length, 0, "not at all");
    is_int(post_embed(t, w->posts, me(), id, NULL), ERR_CONFLICT, "nor by hand");
    is_int(change_post(t, id, "Another title", "", 1), 0, "nor by a change of its title");
    check(jobs_length(t, w->node.jobs, POST_QUEUE, &length) == 0);
    is_int(length, 0, "nothing is queued");
    id = write_post(t, "Marks alone", "***\n\n<!-- nothing -->");
    go(t);
    ok(comes_to(t, id, "completed") && asked == 0 && owner_count == 0,
       "a content without a text has no points");
    is_int(delete_post(t, id), 0, "it is deleted");
    ok(comes_to_rest(t), "with its row");
    close_world(t);
}

/* --- who sees what --- */

static void test_visible(struct task *t, void *arg)
{
    (void)arg;
    begin(t);
    struct post_page page;
    struct post x;
    uint64_t *hidden;
    size_t count, found;
    int64_t mine = write_post(t, "mine", "a"), secret = write_post(t, "secret", "b");
    check(change_post(t, secret, NULL, NULL, 1) == 0);
    struct post_caller other = {.uid = uid + 1};
    is_int(post_get(t, w->posts, other, mine, &x), 0, "another user reads a post");
    ok(!x.mine, "that is not theirs");
    is_int(post_get(t, w->posts, other, secret, &x), ERR_NOT_FOUND, "but no hidden one");
    is_int(post_get(t, w->posts, admin, secret, &x), 0, "an admin does");
    check(post_list(t, w->posts, other, false, INT64_MAX, 10, &page) == 0);
    is_int((int64_t)page.count, 0, "others' posts are not in one's list");
    check(post_list(t, w->posts, other, true, INT64_MAX, 10, &page) == 0);
    ok(page.count == 1 && page.list[0].id == mine, "but those that are visible in that of all");
    check(post_list(t, w->posts, me(), false, INT64_MAX, 1, &page) == 0);
    ok(page.count == 1 && page.list[0].id == secret && page.next, "one's own, the newest first");
    check(post_list(t, w->posts, me(), false, page.next, 1, &page) == 0);
    ok(page.count == 1 && page.list[0].id == mine && !page.next, "page by page");
    is_int(post_change(t, w->posts, &(struct post_wish){.uid = uid + 1, .id = mine}, &x),
           ERR_NOT_FOUND, "another user's is not changed");
    is_int(post_delete(t, w->posts, &(struct post_wish){.uid = uid + 1, .id = mine}), ERR_NOT_FOUND,
           "nor deleted");
    is_int(post_embed(t, w->posts, other, mine, NULL), ERR_NOT_FOUND, "nor embedded");
    check(post_hidden_of(t, w->node.sql, uid, &hidden, &count) == 0);
    ok(count == 1 && hidden[0] == (uint64_t)secret, "hidden ones, for a search");
    int64_t ids[] = {secret, 1, mine, secret};
    struct post_row rows[4];
    check(post_rows(t, w->node.sql, ids, 4, rows, &found) == 0);
    ok(found == 2 && rows[0].id < rows[1].id, "rows of those that are there, each once: %zu",
       found);
    check(delete_post(t, mine) == 0);
    check(post_rows(t, w->node.sql, ids, 4, rows, &found) == 0);
    ok(found == 1 && rows[0].id == secret && rows[0].hide && str_eq(rows[0].content, STR("b")),
       "and not deleted");
    close_world(t);
}

static void test_versions(struct task *t, void *arg)
{
    (void)arg;
    begin(t);
    struct post x;
    int64_t id = write_post(t, "a", "b");
    struct post_wish wish = {.uid = uid, .id = id, .title = STR("c"), .version = 1};
    is_int(post_change(t, w->posts, &wish, &x), 0, "made from the version that is there");
    is_int(post_change(t, w->posts, &wish, &x), ERR_CONFLICT, "made from an older one");
    is_int(post_delete(t, w->posts, &wish), ERR_CONFLICT, "nor deleted by it");
    is_str(look_at(t, id).title, STR("c"), "it is as it was");
    close_world(t);
}

static void test_limits(struct task *t, void *arg)
{
    (void)arg;
    begin(t);
    config.embedding_content_chars = 4;
    int64_t id = write_post(t, "a", "\xe4\xb8\xad\xe6\x96\x87\xe5\xad\x97\xe7\xac\xa6");
    ok(id > 0, "characters are counted, not bytes");
    is_int(write_post(t, "a", "12345"), ERR_INVALID, "too long");
    is_int(change_post(t, id, NULL, "12345", -1), ERR_INVALID, "nor by a change");
    config.embedding_queue_max = 1;
    is_int(write_post(t, "a", "b"), ERR_BUSY, "the queue is full");
    is_int(change_post(t, id, NULL, "b", -1), ERR_BUSY, "nor by a change");
    is_int(change_post(t, id, "b", NULL, -1), 0, "of the content: a title is fine");
    ok(write_post(t, "a", "") > 0, "and so is an empty one");
    is_int(post_embed(t, w->posts, me(), id, NULL), ERR_BUSY, "nor by hand");
    config.embedding_queue_max = 1000;
    config.embedding_posts_max = 2;
    is_int(write_post(t, "a", "b"), ERR_CONFLICT, "a user has only so many");
    check(delete_post(t, id) == 0);
    ok(write_post(t, "a", "b") > 0, "one that is deleted does not count");
    close_world(t);
}

/* --- deaths --- */

static void test_deaths(struct task *t, void *arg)
{
    static const char *const steps[] = {"words", "put", "keep"};
    (void)arg;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        begin(t);
        int64_t id = write_post(t, "a", "b");
        dies_once = steps[i];
        go(t);
        ok(comes_to(t, id, "completed") && deaths == 1, "a node dies after %s: it is completed",
           steps[i]);
        is_int(asked, i == 1 ? 2 : 1, "what was kept is not asked for again");
        ok(all_agree(t), "all is as it should be");
        dies_once = "drop";
        check(delete_post(t, id) == 0);
        ok(comes_to_rest(t) && deaths == 2 && all_agree(t), "and while it is deleted: it is gone");
        close_world(t);
    }
    begin(t);
    int64_t id = write_post(t, "a", "b");
    go(t);
    ok(comes_to(t, id, "completed"), "a post");
    dies_once = "tag";
    check(change_post(t, id, "c", NULL, -1) == 0);
    for (int i = 0; i < 1000 && !deaths; i++)
        pause_ms(t, 2);
    sql_do(t, "UPDATE tb_post SET tagging = UTC_TIMESTAMP(3) - INTERVAL 1 SECOND");
    struct role_turn turn = {.locked = false};
    is_int(posts_tags_role(t, w->posts, &turn), 0, "a node dies while it tells of a title");
    ok(deaths == 1 && comes_to_rest(t) && all_agree(t), "another one does");
    close_world(t);
}

/* --- the service --- */

static void test_service_away(struct task *t, void *arg)
{
    (void)arg;
    begin(t);
    service = ERR_UNAVAILABLE;
    int64_t id = write_post(t, "a", "b");
    go(t);
    ok(await_asked(t, 5), "the service is away: asked again, more often than tries are counted");
    pause_ms(t, 30);
    struct post x = look_at(t, id);
    ok(!str_eq(x.status, STR("failed")) && x.reason.p, "it waits");
    is_str(x.reason, STR("service_down"), "and says why");
    ok(str_find(x.error, STR("cannot be reached")) >= 0, "also in words");
    is_int(sql_number(t, "SELECT COUNT(*) FROM made_up_words WHERE owner = ?", id), 1,
           "it is found by its words");
    service = 0;
    ok(comes_to(t, id, "completed") && all_agree(t), "it goes on by itself");
    ok(!look_at(t, id).error.p, "with nothing to say");
    service = ERR_UNAVAILABLE;
    check(delete_post(t, id) == 0);
    pause_ms(t, 60);
    is_int((int64_t)owner_count, 1, "points of a deleted post wait for their store");
    service = 0;
    ok(comes_to_rest(t) && all_agree(t), "and go");
    close_world(t);
}

static void test_failures(struct task *t, void *arg)
{
    static const struct {
        int err, tries;
        const char *reason;
    } cases[] = {{ERR_REFUSED, 1, "refused"},
                 {ERR_TIMEOUT, 3, "too_slow"},
                 {ERR_PROTO, 3, "bad_answer"},
                 {ERR_UNCERTAIN, 3, "other"}};
    (void)arg;
    begin(t);
    go(t);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        service = cases[i].err;
        asked = 0;
        int64_t id = write_post(t, "a", "b");
        ok(comes_to(t, id, "failed"), "%s: it fails", err_name(service));
        is_int(asked, cases[i].tries, "after so many tries");
        struct post x = look_at(t, id);
        is_str(x.reason, str_of(cases[i].reason), "and says why");
        ok(x.error.n > 0, "also in words");
    }
    service = 0;
    int64_t queued, refused;
    struct post_batch failed = {.which = POST_FAILED};
    check(post_embed_batch(t, w->posts, &failed, NULL, &queued, &refused) == 0);
    ok(queued == 4 && refused == 0, "failed ones are queued at once: %lld", (long long)queued);
    ok(comes_to_rest(t) && owner_count == 4 && all_agree(t), "and embedded");
    close_world(t);
}

static void test_no_service(struct task *t, void *arg)
{
    (void)arg;
    begin(t);
    w->posts->service = false;
    int64_t id = write_post(t, "a", "b"), gone = write_post(t, "c", "d");
    go(t);
    for (int i = 0; i < 1000 && !look_at(t, gone).reason.p; i++)
        pause_ms(t, 5);
    ok(comes_to(t, id, "pending"), "without a service it stays pending");
    struct post x = look_at(t, id);
    is_str(x.reason, STR("no_embedding_service"), "and says why");
    is_int(sql_number(t, "SELECT COUNT(*) FROM made_up_words WHERE owner = ?", id), 1,
           "it is found by its words");
    check(delete_post(t, gone) == 0);
    for (int i = 0; i < 1000 && sql_number(t, "SELECT COUNT(*) FROM tb_post WHERE id = ?", gone);
         i++)
        pause_ms(t, 5);
    is_int(sql_number(t, "SELECT COUNT(*) FROM tb_post WHERE id = ?", gone), 0,
           "one that is deleted goes all the same");
    close_world(t);
    open_world(t);
    go(t);
    ok(comes_to(t, id, "completed") && all_agree(t), "with a service it goes on by itself");
    close_world(t);
}

/* --- changes while it is in work --- */

static void test_changed_in_work(struct task *t, void *arg)
{
    (void)arg;
    begin(t);
    int64_t id = write_post(t, "a", "old"), gone = write_post(t, "c", "d");
    thinks_ms = 100;
    go(t);
    ok(await_asked(t, 2), "two posts are in work");
    check(change_post(t, id, NULL, "new", -1) == 0);
    check(change_post(t, id, "b", NULL, 1) == 0);
    check(delete_post(t, gone) == 0);
    thinks_ms = 1;
    ok(comes_to_rest(t) && all_agree(t), "the last content, title and hide count");
    is_int((int64_t)owner_count, 1, "one that was deleted has no points");
    close_world(t);
}

static int64_t victim;

static void work_on(struct task *t, int64_t id)
{
    struct job j = {.id = str_int(task_arena(t), id),
                    .uid = uid,
                    .version = sql_number(t, "SELECT position FROM tb_post WHERE id = ?", id),
                    .tries = 1};
    int err = post_work(t, w->posts, &j);
    ok(err == 0 || err == JOB_WRITTEN, "another node has done it: %s", task_error(t));
    if (err == 0)
        check(sql_call(t, w->node.sql, NULL,
                       "UPDATE tb_post SET rag_status = 'completed' WHERE id = ? AND position = ?",
                       sql_int(id), sql_int(j.version)) == 0);
}

static void change_meanwhile(struct task *t)
{
    check(change_post(t, victim, NULL, "new", -1) == 0);
    work_on(t, victim);
}

static void delete_meanwhile(struct task *t)
{
    check(delete_post(t, victim) == 0);
    work_on(t, victim);
}

static void retitle_meanwhile(struct task *t)
{
    check(change_post(t, victim, "b", NULL, 1) == 0);
    work_on(t, victim);
}

/* A node stands still for longer than its lease, while it stores vectors: another one has done the
 * later job by then. */
static void test_overtaken(struct task *t, void *arg)
{
    static void (*const cases[])(struct task *) = {change_meanwhile, delete_meanwhile,
                                                   retitle_meanwhile};
    static const char *const names[] = {"changed", "deleted", "done by another node"};
    (void)arg;
    for (size_t i = 0; i < 3; i++) {
        begin(t);
        victim = write_post(t, "a", "old");
        while_put = cases[i];
        work_on(t, victim);
        go(t);
        struct role_turn turn = {.locked = false};
        check(posts_tags_role(t, w->posts, &turn) == 0);
        ok(comes_to_rest(t) && all_agree(t), "%s meanwhile: all is right in the end", names[i]);
        close_world(t);
    }
}

/* --- any order --- */

static uint64_t seed;

static uint64_t below(uint64_t n)
{
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (seed >> 33) % n;
}

static void do_something(struct task *t, int64_t *ids, size_t count, int round)
{
    static const char *const steps[] = {"words", "put", "keep", "drop", "tag"};
    size_t n = below(count);
    const char *text = arena_printf(task_arena(t), "text %d", round);
    switch (below(8)) {
    case 0:
        (void)!delete_post(t, ids[n]);
        ids[n] = write_post(t, "new", text);
        break;
    case 1:
        (void)!change_post(t, ids[n], text, NULL, -1);
        break;
    case 2:
        (void)!change_post(t, ids[n], NULL, NULL, (int)below(2));
        break;
    case 3:
        (void)!change_post(t, ids[n], NULL, "", -1);
        break;
    case 4:
        (void)!post_embed(t, w->posts, me(), ids[n], NULL);
        break;
    case 5:
        dies_once = steps[below(5)];
        break;
    default:
        (void)!change_post(t, ids[n], text, text, -1);
    }
    service = below(6) == 0 ? ERR_UNAVAILABLE : 0;
    thinks_ms = (int64_t)below(4);
    pause_ms(t, (int64_t)below(6));
}

static void test_any_order(struct task *t, void *arg)
{
    int64_t ids[12];
    (void)arg;
    begin(t);
    uint64_t first = seed = loop_random(task_loop(t));
    for (size_t i = 0; i < 12; i++)
        ids[i] = write_post(t, "a", "b");
    go(t);
    role_in(&w->tasks, posts_tags_role, w->posts, 20);
    for (int i = 0; i < 300; i++) {
        struct task_scope scope = task_scope(t);
        do_something(t, ids, 12, i);
        task_scope_end(t, scope);
    }
    service = 0;
    dies_once = NULL;
    thinks_ms = 0;
    sql_do(t, "UPDATE tb_post SET tagging = NULL");
    ok(comes_to_rest(t) && all_agree(t), "300 changes, with deaths: seed %llu",
       (unsigned long long)first);
    close_world(t);
}

int main(void)
{
    start_stores();
    tap_task(test_life, NULL, true);
    tap_task(test_empty, NULL, true);
    tap_task(test_visible, NULL, true);
    tap_task(test_versions, NULL, true);
    tap_task(test_limits, NULL, true);
    tap_task(test_deaths, NULL, true);
    tap_task(test_service_away, NULL, true);
    tap_task(test_failures, NULL, true);
    tap_task(test_no_service, NULL, true);
    tap_task(test_changed_in_work, NULL, true);
    tap_task(test_overtaken, NULL, true);
    tap_task(test_any_order, NULL, true);
    return stop_stores();
}
