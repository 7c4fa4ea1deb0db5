/* Pages of results, while they come and after the run was archived. */
#include "engine/runs/results_fixture.h"

static int page_of(struct task *t, struct node *n, struct run_id id, enum results_kind kind,
                   const char *cursor, int64_t limit, struct results_page *out)
{
    struct results r = results_of(n);
    return results_list(t, &r, id, kind, cursor ? str_of(cursor) : STR_NULL, limit, out);
}

static void test_live(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_node(t, &n);
    struct run_id id = new_run(t, &n);
    is_str(walk(t, &n, id, RESULTS_ALL, 3), STR(""), "a run without results has none");
    judge_all(t, &n, id, 1, "nrfrn");
    is_str(walk(t, &n, id, RESULTS_ALL, 2), STR("00001n 00002r 00003f 00004r 00005n"),
           "in the order they came");
    is_str(walk(t, &n, id, RESULTS_HIT, 1), STR("00002r 00004r"), "relevant ones");
    struct results_page one, two;
    check(page_of(t, &n, id, RESULTS_ALL, NULL, 3, &one) == 0);
    judge_all(t, &n, id, 90, "rrrr");
    judge_all(t, &n, id, 3, "r");
    check(page_of(t, &n, id, RESULTS_ALL, one.next.p, 3, &two) == 0);
    ok(two.count == 3 && str_eq(two.rows[0].doi, doi_of(t, 4)) &&
           str_eq(two.rows[2].doi, doi_of(t, 90)) && !two.restarted,
       "the next page goes on where the first ended, whatever has come meanwhile");
    is_str(walk(t, &n, id, RESULTS_ALL, 4),
           STR("00001n 00002r 00003r 00004r 00005n 00090r 00091r 00092r 00093r"),
           "a failure that became a verdict keeps its place");
    is_str(walk(t, &n, id, RESULTS_HIT, 500),
           STR("00002r 00004r 00090r 00091r 00092r 00093r 00003r"),
           "relevant ones are in the order in which that was found");
    check(page_of(t, &n, id, RESULTS_ALL, NULL, 9, &one) == 0);
    ok(one.count == 9 && !one.next.p, "a page that ends with the last one is the last");
    close_node(t, &n);
}

/* Not relevant, failed: picked out of the arrivals. */
static void test_picked(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_node(t, &n);
    struct run_id id = new_run(t, &n);
    is_str(walk(t, &n, id, RESULTS_FAILED, 3), STR(""), "none has failed");
    judge_all(t, &n, id, 1, "nrfrnfnrrf");
    for (int limit = 1; limit < 5; limit++) {
        is_str(walk(t, &n, id, RESULTS_MISS, limit), STR("00001n 00005n 00007n"), "not relevant");
        is_str(walk(t, &n, id, RESULTS_FAILED, limit), STR("00003f 00006f 00010f"), "failed");
    }
    struct results_page one, two;
    check(page_of(t, &n, id, RESULTS_FAILED, NULL, 1, &one) == 0);
    judge_all(t, &n, id, 3, "n"); /* tried again */
    judge_all(t, &n, id, 11, "fn");
    check(page_of(t, &n, id, RESULTS_FAILED, one.next.p, 2, &two) == 0);
    ok(two.count == 2 && str_eq(two.rows[0].doi, doi_of(t, 6)) &&
           str_eq(two.rows[1].doi, doi_of(t, 10)) && two.next.p,
       "the next page goes on where the first ended, whatever has changed meanwhile");
    is_str(walk(t, &n, id, RESULTS_FAILED, 2), STR("00006f 00010f 00011f"), "those that still are");
    is_str(walk(t, &n, id, RESULTS_MISS, 2), STR("00001n 00003n 00005n 00007n 00012n"),
           "a failure that became a verdict is in its place");
    is_int(page_of(t, &n, id, RESULTS_MISS, one.next.p, 2, &two), ERR_INVALID,
           "a cursor of another kind is refused");
    close_node(t, &n);
}

static void judge_many(struct task *t, struct node *n, struct run_id id, int first, int count,
                       char kind)
{
    for (int i = 0; i < count; i += 100) {
        struct arena_mark mark = arena_mark(task_arena(t));
        struct charge c[100];
        enum charge_outcome out[100];
        for (int k = 0; k < 100; k++)
            c[k] = verdict_of(t, id, first + i + k, kind);
        check(ledger_charge(t, n->ledger, 100, c, out) == 0);
        arena_reset(task_arena(t), mark);
    }
}

/* Few among many: no page looks at more than it may, and none is lost. */
static void test_sparse(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_node(t, &n);
    struct run_id id = new_run(t, &n);
    judge(t, &n, id, 1, 'f');
    judge_many(t, &n, id, 100, RESULTS_LOOKED_AT_MAX + 1000, 'r');
    judge_all(t, &n, id, 2, "fn");
    struct results_page page;
    check(page_of(t, &n, id, RESULTS_FAILED, NULL, 50, &page) == 0);
    ok(page.count == 1 && page.next.p, "a page that has looked at enough ends early");
    check(page_of(t, &n, id, RESULTS_MISS, NULL, 50, &page) == 0);
    ok(page.count == 0 && page.next.p, "even if it is empty");
    is_str(walk(t, &n, id, RESULTS_FAILED, 50), STR("00001f 00002f"),
           "the next ones have the rest");
    is_str(walk(t, &n, id, RESULTS_MISS, 50), STR("00003n"), "all of it");
    close_node(t, &n);
}

static void test_refusals(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_node(t, &n);
    struct run_id id = new_run(t, &n), other = new_run(t, &n);
    struct results_page page;
    judge_all(t, &n, id, 1, "nrf");
    static const char *const bad[] = {"",
                                      "a",
                                      "a0",
                                      "a01",
                                      "a-1",
                                      "a1 ",
                                      "a1x",
                                      "r1",
                                      "b1",
                                      "1",
                                      "s",
                                      "s0",
                                      "s0.",
                                      "s0.0",
                                      "s3.1",
                                      "s0.x",
                                      "s0.-1",
                                      "s-1.1",
                                      "s0.1.",
                                      "s00.1",
                                      "s:.1",
                                      "a1000000001",
                                      "a99999999999999999999",
                                      "s0.99999999999999999999999999999999"};
    size_t refused = 0, count = sizeof bad / sizeof *bad;
    for (size_t i = 0; i < count; i++) {
        int err = page_of(t, &n, id, RESULTS_ALL, bad[i], 10, &page);
        refused += err == ERR_INVALID;
        if (err != ERR_INVALID)
            printf("# \"%s\": %s\n", bad[i], err_name(err));
    }
    is_int((int64_t)refused, (int64_t)count, "what is no cursor is refused");
    is_int(page_of(t, &n, id, RESULTS_HIT, "a1", 10, &page), ERR_INVALID,
           "a cursor of another list too");
    is_int(page_of(t, &n, id, RESULTS_HIT, "s1.1", 10, &page), ERR_INVALID, "and of another rank");
    ok(page_of(t, &n, id, RESULTS_ALL, "a9", 10, &page) == 0 && page.count == 0 && !page.next.p,
       "behind the last one there is nothing");
    struct run_id stolen = {other.uid, id.qid}, none = {id.uid, STR("none")};
    is_int(page_of(t, &n, stolen, RESULTS_ALL, NULL, 10, &page), ERR_NOT_FOUND,
           "not another user's run");
    is_int(page_of(t, &n, none, RESULTS_ALL, NULL, 10, &page), ERR_NOT_FOUND,
           "nor one that is none");
    say(t, &n, STR("DEL"), key_result(task_arena(t), id.uid, id.qid));
    ok(page_of(t, &n, id, RESULTS_ALL, NULL, 10, &page) == 0 && page.count == 0,
       "results that are gone");
    close_node(t, &n);
}

/* --- archived --- */

static int64_t handled(struct task *t, struct node *n)
{
    struct sql_rows r;
    check(sql_call(t, n->sql, &r,
                   "SELECT CAST(SUM(VARIABLE_VALUE) AS SIGNED)"
                   " FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME IN"
                   " ('HANDLER_READ_NEXT', 'SORT_ROWS')") == 0);
    return r.cells[0].i;
}

static void add_archived(struct task *t, struct node *n, struct run_id id, int64_t papers)
{
    struct arena *a = task_arena(t);
    check(sql_call(t, n->sql, NULL,
                   "INSERT INTO search_result (uid, query_id, doi, block_key, relevant, ai_result)"
                   " SELECT ?, ?, CONCAT('10.1000/', LPAD((seq * 7919) % 100000, 5, '0')),"
                   " IF(seq % 2, ?, ?), IF(seq % 10 = 0, NULL, seq % 5 = 1),"
                   " IF(seq % 10 = 0, '{\"error\":\"<f> x\"}',"
                   " IF(seq % 5 = 1, '{\"relevant\":true,\"reason\":\"<r> x\"}',"
                   " '{\"relevant\":false,\"reason\":\"<n> x\"}')) FROM seq_1_to_100000"
                   " WHERE seq <= ?",
                   sql_int(id.uid), sql_text(id.qid),
                   sql_text(key_block_name(a, STR("A: B"), 2001)),
                   sql_text(key_block_name(a, STR("Zoo"), 2000)), sql_int(papers)) == 0);
    check(sql_call(t, n->sql, NULL,
                   "UPDATE query_log SET status = 'DONE', archived = 1 WHERE query_id = ?",
                   sql_text(id.qid)) == 0);
}

static int64_t count_of(struct str list, char kind)
{
    int64_t found = 0;
    for (size_t i = 5; i < list.n; i += 7)
        found += list.p[i] == kind;
    return found;
}

static void test_archived(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_node(t, &n);
    struct run_id id = new_run(t, &n), other = new_run(t, &n);
    struct results_page page;
    add_archived(t, &n, id, 3000);
    add_archived(t, &n, other, 10);
    struct str all = walk(t, &n, id, RESULTS_ALL, 500);
    ok(count_of(all, 'r') == 600 && count_of(all, 'n') == 2100 && count_of(all, 'f') == 300,
       "all of them");
    struct sql_rows want;
    check(sql_call(t, n.sql, &want,
                   "SELECT doi, relevant FROM search_result WHERE query_id = ?"
                   " ORDER BY relevant IS NULL, relevant DESC, block_key, doi",
                   sql_text(id.qid)) == 0);
    bool same = want.count * 7 == all.n + 1;
    for (size_t i = 0; same && i < want.count; i++)
        same = memcmp(sql_row(&want, i)[0].s.p + 8, all.p + 7 * i, 5) == 0;
    ok(same, "relevant, not relevant, failed; by block and DOI");
    is_str(walk(t, &n, id, RESULTS_ALL, 7), all, "the same in small pages");
    struct str relevant = walk(t, &n, id, RESULTS_HIT, 499);
    ok(relevant.n == 600 * 7 - 1 && memcmp(relevant.p, all.p, relevant.n) == 0, "relevant ones");
    is_str(walk(t, &n, id, RESULTS_HIT, 1), relevant, "one by one");
    struct str no = walk(t, &n, id, RESULTS_MISS, 499), failed = walk(t, &n, id, RESULTS_FAILED, 7);
    ok(no.n == 2100 * 7 - 1 && memcmp(no.p, all.p + 600 * 7, no.n) == 0, "not relevant ones");
    ok(failed.n == 300 * 7 - 1 && memcmp(failed.p, all.p + 2700 * 7, failed.n) == 0,
       "failed ones, in small pages");
    check(page_of(t, &n, id, RESULTS_ALL, NULL, 500, &page) == 0);
    check(page_of(t, &n, id, RESULTS_ALL, page.next.p, 500, &page) == 0);
    int64_t before = handled(t, &n);
    check(page_of(t, &n, id, RESULTS_ALL, page.next.p, 5, &page) == 0 &&
          page_of(t, &n, id, RESULTS_MISS, NULL, 5, &page) == 0 &&
          page_of(t, &n, id, RESULTS_FAILED, NULL, 5, &page) == 0 &&
          page_of(t, &n, id, RESULTS_HIT, NULL, 5, &page) == 0);
    int64_t read = handled(t, &n) - before;
    if (!ok(read < 40, "a page reads its own rows and sorts none"))
        printf("# %lld rows\n", (long long)read);
    is_int(page_of(t, &n, other, RESULTS_HIT, page.next.p, 5, &page), ERR_INVALID,
           "a cursor of another run is refused");
    ok(page_of(t, &n, id, RESULTS_ALL, "a500", 5, &page) == 0 && page.restarted &&
           page.count == 5 && str_eq(page.next, STR_NULL) == false,
       "a cursor from before the archive begins the new order, and that is said");
    close_node(t, &n);
}

/* --- all at once --- */

struct seen {
    int64_t rows, batches, stop_at;
    char first[32];
};

static int see(struct task *t, const struct result_row *rows, size_t count, void *arg)
{
    struct seen *s = arg;
    (void)t;
    check(count > 0 && count <= RESULTS_LIMIT_MAX);
    if (s->rows == 0)
        memcpy(s->first, rows[0].doi.p, rows[0].doi.n + 1);
    s->rows += (int64_t)count;
    return ++s->batches == s->stop_at ? ERR_REFUSED : 0;
}

static struct seen see_all(struct task *t, struct node *n, struct run_id id, bool relevant,
                           int want)
{
    struct results r = results_of(n);
    struct seen s = {.stop_at = want == ERR_REFUSED ? 2 : 0};
    is_int(results_each(t, &r, id, relevant ? RESULTS_HIT : RESULTS_ALL, see, &s), want,
           "all at once");
    return s;
}

static void test_each(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_node(t, &n);
    struct run_id id = new_run(t, &n), archived = new_run(t, &n);
    for (int first = 0; first < 1200; first += 100) {
        struct arena_mark mark = arena_mark(task_arena(t));
        struct charge c[100];
        enum charge_outcome out[100];
        for (int i = 0; i < 100; i++)
            c[i] = verdict_of(t, id, 9999 - first - i, i % 4 ? 'n' : 'r');
        check(ledger_charge(t, n.ledger, 100, c, out) == 0);
        arena_reset(task_arena(t), mark);
    }
    struct seen s = see_all(t, &n, id, false, 0);
    ok(s.rows == 1200 && s.batches == 3 && strcmp(s.first, "10.1000/09999") == 0, "as they came");
    is_int(see_all(t, &n, id, true, 0).rows, 300, "relevant ones");
    is_int(see_all(t, &n, id, false, ERR_REFUSED).rows, 1000, "until it is told to stop");
    add_archived(t, &n, archived, 1234);
    s = see_all(t, &n, archived, false, 0);
    ok(s.rows == 1234 && s.batches == 3, "from MySQL");
    is_int(see_all(t, &n, archived, true, 0).rows, 247, "relevant ones");
    say(t, &n, STR("HDEL"), key_result(task_arena(t), id.uid, id.qid), doi_of(t, 9000));
    see_all(t, &n, id, false, ERR_UNAVAILABLE);
    close_node(t, &n);
}

/* Redis loses all of it; some of the charges are in MySQL, and their results with them. */
static void test_repaired(struct task *t, void *arg)
{
    (void)arg;
    struct node n;
    open_node(t, &n);
    struct run_id id = new_run(t, &n);
    judge_all(t, &n, id, 1, "nrn");
    check(ledger_sync(t, n.ledger, id.uid) == 0);
    judge_all(t, &n, id, 4, "rf");
    uint64_t epoch = redis_epoch(n.redis);
    restart_redis();
    await_new_redis(t, &n, epoch);
    is_str(walk(t, &n, id, RESULTS_ALL, 2), STR("00001n 00002r 00003n"),
           "what MySQL has is back before anything is shown");
    is_str(walk(t, &n, id, RESULTS_HIT, 2), STR("00002r"), "relevant ones too");
    set_state(t, &n, id, "RUNNING");
    judge_all(t, &n, id, 4, "rf");
    is_str(walk(t, &n, id, RESULTS_ALL, 2), STR("00001n 00002r 00003n 00004r 00005f"),
           "the rest is judged again");
    ok(every_cent(t, &n, id.uid) && in_redis(t, &n, id.uid) == MONEY - 40, "and paid for once");
    close_node(t, &n);
}

int main(void)
{
    start_stores();
    tap_task(test_live, NULL, true);
    tap_task(test_picked, NULL, true);
    tap_task(test_sparse, NULL, true);
    tap_task(test_refusals, NULL, true);
    tap_task(test_archived, NULL, true);
    tap_task(test_each, NULL, true);
    tap_task(test_repaired, NULL, true);
    return stop_stores();
}
