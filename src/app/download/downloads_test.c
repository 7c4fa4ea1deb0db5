/* Downloads on real stores: leases, workers that die or are slow, limits, expiry, large files. */
#include "app/download/downloads_private.h"

#include "engine/money/ledger_fixture.h"
#include "engine/store/scripts.h"

#define PAPERS   1200
#define RELEVANT 600

struct site {
    struct node node;
    struct jobs *jobs;
    struct downloads *downloads;
    struct group workers;
};

static void open_queue(struct task *t, struct site *s)
{
    struct role_turn turn = {.locked = false};
    check(jobs_refill_role(t, s->jobs, &turn) == 0);
}

static void open_with(struct task *t, struct site *s, struct downloads_options o)
{
    open_node(t, &s->node);
    say(t, &s->node, STR("FLUSHALL"));
    o.redis = s->node.redis;
    o.sql = s->node.sql;
    o.cache = s->node.cache;
    o.ledger = s->node.ledger;
    o.metrics = metrics;
    o.incarnation = 7;
    o.jobs = s->jobs = jobs_new(&(struct jobs_options){
        .redis = s->node.redis, .sql = s->node.sql, .metrics = metrics, .incarnation = 7});
    s->downloads = downloads_new(&o);
    open_queue(t, s);
    group_init(&s->workers, task_loop(t));
}

static void open_site(struct task *t, struct site *s)
{
    open_with(t, s, (struct downloads_options){.lease_ms = 400});
}

static void start_workers(struct site *s)
{
    check(task_go(&s->workers, "jobs", jobs_task, s->jobs) == 0);
    role_in(&s->workers, jobs_keep_role, s->jobs, 20);
}

static void close_site(struct task *t, struct site *s)
{
    group_cancel(&s->workers);
    check(group_join(t, &s->workers) == 0);
    jobs_free(s->jobs);
    downloads_free(s->downloads);
    close_node(t, &s->node);
}

/* --- a run that is archived, of papers in one block --- */

static void fill_corpus(struct task *t, struct node *n)
{
    check(sql_call(t, n->sql, NULL,
                   "REPLACE INTO paperinfo (DOI, Bib) SELECT CONCAT('10.5555/d.', seq),"
                   " CONCAT('{\"journal\":\"NATURE\",\"year\":2024,\"file\":\"a.bib\",\"bib\":"
                   "\"@article{k', seq, ',\\\\n title={Paper ', seq, '},\\\\n abstract={',"
                   " REPEAT('A word about it. ', 250), '}\\\\n}\"}')"
                   " FROM seq_1_to_1200") == 0);
    check(sql_call(t, n->sql, NULL,
                   "REPLACE INTO corpus_block (journal, year, papers, digest) VALUES ('NATURE', "
                   "2024, 1200, 7)") == 0);
}

static struct run_id add_archived(struct task *t, struct node *n, int64_t uid)
{
    static int runs;
    struct run_id id = {uid, str_printf(task_arena(t), "archived%d", runs++)};
    check(sql_call(t, n->sql, NULL,
                   "INSERT INTO query_log (query_id, uid, status, archived, search_params,"
                   " total_papers, finished_papers, relevant_papers)"
                   " VALUES (?, ?, 'DONE', 1, '{\"question\":\"Is it wet?\"}', 1200, 1200, 600)",
                   sql_text(id.qid), sql_int(uid)) == 0);
    check(sql_call(t, n->sql, NULL,
                   "INSERT INTO search_result (uid, query_id, doi, block_key, relevant, ai_result)"
                   " SELECT ?, ?, CONCAT('10.5555/d.', seq), 'meta:NATURE:2024', seq % 2,"
                   " CONCAT('{\"relevant\":', IF(seq % 2, 'true', 'false'),"
                   " ',\"reason\":\"because\"}') FROM seq_1_to_1200",
                   sql_int(uid), sql_text(id.qid)) == 0);
    return id;
}

static struct run_id new_run(struct task *t, struct site *s)
{
    static bool filled;
    if (!filled)
        fill_corpus(t, &s->node);
    filled = true;
    return add_archived(t, &s->node, add_user(t, &s->node, 0));
}

static int create(struct task *t, struct site *s, struct run_id run, enum export_format f, bool all,
                  char *id)
{
    struct download_wish w = {run, f, all};
    return download_create(t, s->downloads, &w, id);
}

/* --- looking --- */

static struct download look(struct task *t, struct site *s, int64_t uid, const char *id)
{
    struct download d = {.state = DOWNLOAD_FAILED};
    check(download_look(t, s->downloads, uid, str_of(id), &d) == 0);
    return d;
}

static struct download await(struct task *t, struct site *s, int64_t uid, const char *id)
{
    struct download d = {.state = DOWNLOAD_FAILED};
    int64_t old = task_deadline(t, 20000);
    check(download_await(t, s->downloads, uid, str_of(id), &d) == 0);
    task_deadline_restore(t, old);
    return d;
}

static int add_piece(struct task *t, struct str piece, void *arg)
{
    (void)t;
    check(piece.n <= DOWNLOAD_PIECE_BYTES);
    buf_add_str(arg, piece);
    return 0;
}

static struct str file_of(struct task *t, struct site *s, const struct download *d)
{
    struct buf all;
    buf_init(&all);
    int err = download_send(t, s->downloads, d, NULL, add_piece, &all);
    struct str text = err ? str_of(err_name(err)) : str_dup(task_arena(t), buf_str(&all));
    buf_release(&all);
    return text;
}

static size_t count_of(struct str text, struct str part)
{
    size_t n = 0;
    for (ptrdiff_t at; (at = str_find(text, part)) >= 0; n++)
        text = str_from(text.p + at + 1, text.n - (size_t)at - 1);
    return n;
}

static int64_t taken(struct task *t, struct site *s)
{
    return ask_int(t, &s->node, STR("ZCARD"), key_jobs_part(task_arena(t), "download", "leases"),
                   STR_NULL);
}

static int64_t waiting(struct task *t, struct site *s)
{
    return ask_int(t, &s->node, STR("ZCARD"), key_jobs(task_arena(t), "download"), STR_NULL);
}

/* A download is READY a moment before its worker has let go of it. */
static bool let_go(struct task *t, struct site *s)
{
    for (int i = 0; i < 1000 && taken(t, s) > 0; i++)
        pause_ms(t, 5);
    return taken(t, s) == 0;
}

static struct str status_key(struct task *t, int64_t uid, const char *id)
{
    return key_download_status(task_arena(t), uid, str_of(id));
}

static bool lives_for(struct task *t, struct site *s, struct str key, int64_t ms)
{
    int64_t left = ask_int(t, &s->node, STR("PTTL"), key, STR_NULL);
    return left > ms - 20000 && left <= ms;
}

/* --- tests --- */

static void test_whole(struct task *t, void *arg)
{
    (void)arg;
    struct site s;
    char id[DOWNLOAD_ID_BYTES];
    open_with(t, &s, (struct downloads_options){0}); /* a short lease would end on a busy machine */
    struct run_id run = new_run(t, &s);
    is_int(create(t, &s, run, EXPORT_BIB, false, id), 0, "a download is asked for");
    struct download d = look(t, &s, run.uid, id);
    ok(d.state == DOWNLOAD_PENDING && d.progress == 0, "it is PENDING");
    ok(strlen(id) == 32, "its id has 128 bits");
    ok(lives_for(t, &s, status_key(t, run.uid, id), DOWNLOAD_STATUS_MS),
       "its status lives an hour");
    is_int(waiting(t, &s), 1, "and it waits");
    start_workers(&s);
    d = await(t, &s, run.uid, id);
    ok(d.state == DOWNLOAD_READY && d.progress == 100 && !d.streamed, "it is READY");
    ok(d.pieces == 3 && d.bytes > 2 * DOWNLOAD_PIECE_BYTES, "in pieces");
    ok(ask_int(t, &s.node, STR("STRLEN"), key_download_piece(task_arena(t), run.uid, str_of(id), 0),
               STR_NULL) < DOWNLOAD_PIECE_BYTES / 2,
       "which are packed");
    struct str text = file_of(t, &s, &d);
    ok((int64_t)text.n == d.bytes && count_of(text, STR("@article{k")) == RELEVANT,
       "the relevant papers are in it");
    ok(str_find(text, STR("@article{k1,\n title={Paper 1},\n abstract={A word about it. ")) >= 0 &&
           str_find(text, STR("@article{k2,")) < 0,
       "byte for byte");
    ok(lives_for(t, &s, key_download_piece(task_arena(t), run.uid, str_of(id), 0),
                 DOWNLOAD_FILE_MS),
       "its pieces live five minutes");
    ok(d.expires_ms > loop_wall_ms(task_loop(t)) + DOWNLOAD_FILE_MS - 20000, "as it says");
    ok(let_go(t, &s), "no worker holds it");
    check(create(t, &s, run, EXPORT_CSV, true, id) == 0);
    d = await(t, &s, run.uid, id);
    is_str(d.error, STR_NULL, "nothing goes wrong");
    text = file_of(t, &s, &d);
    ok(count_of(text, STR("\r\n")) == PAPERS + 1 && count_of(text, STR("not relevant")) == RELEVANT,
       "all of them as a table");
    say(t, &s.node, STR("DEL"), key_download_piece(task_arena(t), run.uid, str_of(id), 0));
    is_str(file_of(t, &s, &d), STR("not_found"), "a file that has expired");
    close_site(t, &s);
}

static void test_others(struct task *t, void *arg)
{
    (void)arg;
    struct site s;
    char id[DOWNLOAD_ID_BYTES];
    struct download d;
    open_site(t, &s);
    struct run_id run = new_run(t, &s);
    struct run_id theirs = {run.uid + 1, run.qid}, none = {run.uid, STR("x:status")};
    is_int(create(t, &s, theirs, EXPORT_BIB, false, id), ERR_NOT_FOUND, "another user's run");
    is_int(create(t, &s, none, EXPORT_BIB, false, id), ERR_NOT_FOUND, "no run at all");
    check(create(t, &s, run, EXPORT_BIB, false, id) == 0);
    is_int(download_look(t, s.downloads, run.uid + 1, str_of(id), &d), ERR_NOT_FOUND,
           "another user's download");
    is_int(download_look(t, s.downloads, run.uid, STR("0123456789abcdef0123456789abcdef"), &d),
           ERR_NOT_FOUND, "none at all");
    is_int(download_look(t, s.downloads, run.uid, STR("../x"), &d), ERR_NOT_FOUND, "not an id");
    d = look(t, &s, run.uid, id);
    is_str(file_of(t, &s, &d), STR("conflict"), "a file that is not there yet");
    close_site(t, &s);
}

static void test_limits(struct task *t, void *arg)
{
    (void)arg;
    struct site s;
    char id[DOWNLOAD_ID_BYTES];
    open_with(t, &s, (struct downloads_options){.queued_max = DOWNLOADS_WAITING_MAX + 1});
    struct run_id run = new_run(t, &s), other = new_run(t, &s);
    int made = 0;
    while (made < DOWNLOADS_WAITING_MAX && create(t, &s, run, EXPORT_RIS, false, id) == 0)
        made++;
    is_int(made, DOWNLOADS_WAITING_MAX, "so many may wait");
    is_int(create(t, &s, run, EXPORT_RIS, false, id), ERR_RATE, "not one more");
    is_int(create(t, &s, other, EXPORT_RIS, false, id), 0, "of another user, though");
    is_int(create(t, &s, other, EXPORT_RIS, false, id), ERR_BUSY, "until the queue is full");
    is_int(ask_int(t, &s.node, STR("EXISTS"), status_key(t, other.uid, id), STR_NULL), 0,
           "what was refused is forgotten");
    start_workers(&s);
    while (waiting(t, &s) > 0)
        pause_ms(t, 10);
    ok(let_go(t, &s), "all are built");
    is_int(create(t, &s, run, EXPORT_RIS, false, id), 0, "then there is room again");
    check(await(t, &s, run.uid, id).state == DOWNLOAD_READY);
    close_site(t, &s);
}

/* What a worker does to take a download, by hand. ms NULL: it only begins. */
static void take_by_hand(struct task *t, struct site *s, int64_t uid, const char *id,
                         const char *lease, const char *ms)
{
    const struct redis_reply *r;
    struct arena *a = task_arena(t);
    if (ms)
        check(SCRIPT(t, s->node.redis, jobs_take, &r, .waiting = key_jobs(a, "download"),
                     .delays = key_jobs_part(a, "download", "delays"),
                     .leases = key_jobs_part(a, "download", "leases"),
                     .info = key_jobs_part(a, "download", "info"),
                     .held = key_jobs_part(a, "download", "held"),
                     .probes = key_jobs_part(a, "download", "probes"),
                     .aside = key_jobs_part(a, "download", "aside"),
                     .state = key_jobs_part(a, "download", "state"), .count = STR("1"),
                     .work_max = STR("0"), .lease = str_of(lease), .ms = str_of(ms)) == 0 &&
              r->count == 5);
    check(SCRIPT(t, s->node.redis, download_begin, &r, .status = status_key(t, uid, id),
                 .lease = str_of(lease)) == 0 &&
          r->count == 5);
}

static int64_t save_by_hand(struct task *t, struct site *s, int64_t uid, const char *id,
                            const char *lease)
{
    int64_t saved = -1;
    check(SCRIPT_NUMBER(t, s->node.redis, download_save, &saved, .status = status_key(t, uid, id),
                        .piece = key_download_piece(task_arena(t), uid, str_of(id), 0),
                        .lease = str_of(lease), .progress = STR("50"), .packed = STR("spoilt"),
                        .ms = STR("1000")) == 0);
    return saved;
}

static void test_dead(struct task *t, void *arg)
{
    (void)arg;
    struct site s;
    char id[DOWNLOAD_ID_BYTES];
    open_site(t, &s);
    struct run_id run = new_run(t, &s);
    check(create(t, &s, run, EXPORT_BIB, false, id) == 0);
    take_by_hand(t, &s, run.uid, id, "dead:1", "1500");
    is_int(save_by_hand(t, &s, run.uid, id, "dead:1"), 1, "a worker has begun with it");
    is_int(look(t, &s, run.uid, id).state, DOWNLOAD_PROCESSING, "it is PROCESSING");
    start_workers(&s);
    pause_ms(t, 300);
    is_int(look(t, &s, run.uid, id).state, DOWNLOAD_PROCESSING,
           "no other worker takes it from a living one");
    struct download d = await(t, &s, run.uid, id);
    is_int(d.state, DOWNLOAD_READY, "it comes back when the lease has ended");
    is_int(save_by_hand(t, &s, run.uid, id, "dead:1"), 0, "the dead one cannot save any more");
    ok(count_of(file_of(t, &s, &d), STR("@article{k")) == RELEVANT, "the file is whole");
    ok(let_go(t, &s), "no worker holds it");
    close_site(t, &s);
}

/* Another worker takes it while one of this node builds it, and dies. */
static void test_slow(struct task *t, void *arg)
{
    (void)arg;
    struct site s;
    char id[DOWNLOAD_ID_BYTES];
    open_with(t, &s, (struct downloads_options){.lease_ms = 1200});
    struct run_id run = new_run(t, &s);
    check(create(t, &s, run, EXPORT_BIB, true, id) == 0);
    start_workers(&s);
    while (look(t, &s, run.uid, id).state == DOWNLOAD_PENDING)
        check(task_yield(t) == 0);
    take_by_hand(t, &s, run.uid, id, "other:1", NULL);
    pause_ms(t, 100);
    is_int(look(t, &s, run.uid, id).state, DOWNLOAD_PROCESSING,
           "the first worker could not finish it");
    struct download d = await(t, &s, run.uid, id);
    ok(d.state == DOWNLOAD_READY && count_of(file_of(t, &s, &d), STR("@article{k")) == PAPERS,
       "it is taken again when the other does not keep it");
    is_int(save_by_hand(t, &s, run.uid, id, "other:1"), 0, "which can do nothing more to it");
    close_site(t, &s);
}

/* The status is there, the entry in the queue is not: Redis has lost its last commands. */
static void test_lost(struct task *t, void *arg)
{
    (void)arg;
    struct site s;
    char id[DOWNLOAD_ID_BYTES];
    open_site(t, &s);
    struct run_id run = new_run(t, &s);
    check(create(t, &s, run, EXPORT_RIS, false, id) == 0);
    say(t, &s.node, STR("HSET"), status_key(t, run.uid, id), STR("created_at"), STR("1"));
    is_int(look(t, &s, run.uid, id).state, DOWNLOAD_PENDING, "one that waits for long");
    is_int(waiting(t, &s), 1, "is in the queue once");
    say(t, &s.node, STR("DEL"), key_jobs(task_arena(t), "download"));
    say(t, &s.node, STR("DEL"), key_jobs_part(task_arena(t), "download", "info"));
    start_workers(&s);
    is_int(await(t, &s, run.uid, id).state, DOWNLOAD_READY, "and if it is not, it is put there");
    ok(let_go(t, &s), "no worker holds it");
    close_site(t, &s);
}

/* Redis restarts without a piece that was saved, while the worker builds the next one. */
static void test_older(struct task *t, void *arg)
{
    (void)arg;
    struct site s;
    char id[DOWNLOAD_ID_BYTES];
    open_with(t, &s, (struct downloads_options){0});
    struct run_id run = new_run(t, &s);
    check(create(t, &s, run, EXPORT_BIB, true, id) == 0);
    struct str first = key_download_piece(task_arena(t), run.uid, str_of(id), 0);
    start_workers(&s);
    check(sem_get(t, &s.downloads->turn) == 0);
    while (ask_int(t, &s.node, STR("EXISTS"), first, STR_NULL) == 0) {
        sem_put(&s.downloads->turn);
        check(task_yield(t) == 0 && sem_get(t, &s.downloads->turn) == 0);
    }
    is_int(look(t, &s, run.uid, id).state, DOWNLOAD_PROCESSING,
           "a piece is saved, more will follow");
    uint64_t epoch = redis_epoch(s.node.redis);
    say(t, &s.node, STR("DEL"), first);
    say(t, &s.node, STR("SAVE"));
    restart_redis();
    await_new_redis(t, &s.node, epoch);
    forget_snapshot();
    open_queue(t, &s);
    sem_put(&s.downloads->turn);
    struct download d = await(t, &s, run.uid, id);
    ok(d.state == DOWNLOAD_READY && count_of(file_of(t, &s, &d), STR("@article{k")) == PAPERS,
       "it is built anew, and whole");
    ok(let_go(t, &s), "no worker holds it");
    close_site(t, &s);
}

static void test_drain(struct task *t, void *arg)
{
    (void)arg;
    struct site s;
    char id[DOWNLOAD_ID_BYTES], late[DOWNLOAD_ID_BYTES];
    open_site(t, &s);
    struct run_id run = new_run(t, &s);
    check(create(t, &s, run, EXPORT_BIB, true, id) == 0);
    start_workers(&s);
    while (look(t, &s, run.uid, id).state == DOWNLOAD_PENDING)
        check(task_yield(t) == 0);
    jobs_drain(t, s.jobs, 20000);
    ok(look(t, &s, run.uid, id).state == DOWNLOAD_READY && taken(t, &s) == 0,
       "a node that drains finishes what it has");
    check(create(t, &s, run, EXPORT_BIB, true, late) == 0);
    pause_ms(t, 300);
    is_int(look(t, &s, run.uid, late).state, DOWNLOAD_PENDING, "and takes nothing more");
    close_site(t, &s);
}

static void test_tries(struct task *t, void *arg)
{
    (void)arg;
    struct site s;
    char id[DOWNLOAD_ID_BYTES];
    open_site(t, &s);
    struct run_id run = new_run(t, &s);
    check(create(t, &s, run, EXPORT_BIB, false, id) == 0);
    struct str info = key_jobs_part(task_arena(t), "download", "info");
    struct str name = str_printf(task_arena(t), "%lld:%s", (long long)run.uid, id);
    say(t, &s.node, STR("HSET"), info, name,
        str_printf(task_arena(t), "1 5 0 1 %lld 1 - -", (long long)run.uid));
    start_workers(&s);
    struct download d = await(t, &s, run.uid, id);
    ok(d.state == DOWNLOAD_FAILED && d.error.n > 0, "one that kills its workers FAILED at last");
    ok(let_go(t, &s), "and is not taken again");
    is_int(ask_int(t, &s.node, STR("HLEN"), key_jobs_part(task_arena(t), "download", "users"),
                   STR_NULL),
           0, "nor counted");
    static const char *const odd[] = {"1:gone", "nonsense"};
    for (size_t i = 0; i < 2; i++)
        check(jobs_push(t, s.jobs, "download", &(struct job_push){.id = str_of(odd[i]), .uid = 1},
                        1, NULL) == 0);
    check(create(t, &s, run, EXPORT_RIS, false, id) == 0);
    d = await(t, &s, run.uid, id);
    ok(d.state == DOWNLOAD_READY && let_go(t, &s), "what is not there any more is passed over");
    close_site(t, &s);
}

/* A client that takes a piece only when another download is READY. */
struct slow_client {
    struct site *site;
    struct run_id run;
    enum download_state meanwhile;
};

static int take_slowly(struct task *t, struct str piece, void *arg)
{
    struct slow_client *c = arg;
    char id[DOWNLOAD_ID_BYTES];
    (void)piece;
    if (c->meanwhile == DOWNLOAD_READY)
        return 0;
    check(create(t, c->site, c->run, EXPORT_CSV, false, id) == 0);
    c->meanwhile = await(t, c->site, c->run.uid, id).state;
    return 0;
}

static void test_large(struct task *t, void *arg)
{
    (void)arg;
    struct site s;
    char id[DOWNLOAD_ID_BYTES];
    open_with(t, &s, (struct downloads_options){.held_bytes_max = 3 << 19});
    struct run_id run = new_run(t, &s);
    start_workers(&s);
    check(create(t, &s, run, EXPORT_BIB, false, id) == 0);
    struct download d = await(t, &s, run.uid, id);
    ok(d.state == DOWNLOAD_READY && d.streamed && d.progress == 100, "a large file is not held");
    ok(let_go(t, &s), "no worker holds the download");
    is_int(ask_int(t, &s.node, STR("EXISTS"),
                   key_download_piece(task_arena(t), run.uid, str_of(id), 0), STR_NULL),
           0, "nothing of it is left");
    is_int((int64_t)count_of(file_of(t, &s, &d), STR("@article{k")), RELEVANT,
           "it is built while it is sent");
    struct slow_client slow = {.site = &s, .run = run, .meanwhile = DOWNLOAD_PENDING};
    is_int(download_send(t, s.downloads, &d, NULL, take_slowly, &slow), 0, "to a slow client too");
    ok(slow.meanwhile == DOWNLOAD_READY, "for which no other file waits");
    s.downloads->streaming[3] = s.downloads->streaming[5] = run.uid;
    is_str(file_of(t, &s, &d), STR("busy"), "two at once for one user");
    s.downloads->streaming[5] = 0;
    is_int((int64_t)count_of(file_of(t, &s, &d), STR("@article{k")), RELEVANT, "and no third");
    close_site(t, &s);
}

static void test_much(struct task *t, void *arg)
{
    (void)arg;
    struct site s;
    char id[DOWNLOAD_ID_BYTES];
    open_site(t, &s);
    struct run_id run = new_run(t, &s);
    struct arena *a = task_arena(t);
    struct str until = str_int(a, loop_wall_ms(task_loop(t)) + 60000);
    say(t, &s.node, STR("ZADD"), key_downloads_of(a, run.uid), until,
        str_printf(a, "another:%d", DOWNLOAD_USER_BYTES_MAX - 1000));
    start_workers(&s);
    check(create(t, &s, run, EXPORT_BIB, false, id) == 0);
    struct download d = await(t, &s, run.uid, id);
    ok(d.state == DOWNLOAD_READY && d.streamed,
       "a user who has much held gets the rest while it is built");
    ok(let_go(t, &s) && ask_int(t, &s.node, STR("EXISTS"),
                                key_download_piece(a, run.uid, str_of(id), 0), STR_NULL) == 0,
       "its pieces are gone");
    check(sql_call(t, s.node.sql, NULL, "DELETE FROM search_result WHERE query_id = ?",
                   sql_text(run.qid)) == 0);
    check(create(t, &s, run, EXPORT_BIB, false, id) == 0);
    d = await(t, &s, run.uid, id);
    ok(d.state == DOWNLOAD_READY && !d.streamed && d.bytes == 0 && file_of(t, &s, &d).n == 0,
       "a file of nothing");
    close_site(t, &s);
}

/* --- parts --- */

/* A file of two whole pieces and a short one, as a worker would have saved it. */
static struct download hold_pieces(struct task *t, struct site *s, struct str bytes)
{
    struct arena *a = task_arena(t);
    struct download d = {.uid = 1,
                         .id = STR("0123456789abcdef0123456789abcdef"),
                         .state = DOWNLOAD_READY,
                         .bytes = (int64_t)bytes.n};
    while (bytes.n > 0) {
        struct str packed;
        size_t n = bytes.n < DOWNLOAD_PIECE_BYTES ? bytes.n : DOWNLOAD_PIECE_BYTES;
        check(download_pack(t, str_from(bytes.p, n), &packed) == 0);
        say(t, &s->node, STR("SET"), key_download_piece(a, d.uid, d.id, d.pieces++), packed);
        bytes = str_skip(bytes, n);
    }
    return d;
}

static bool part_is(struct task *t, struct site *s, const struct download *d, struct str bytes,
                    int64_t first, int64_t count)
{
    struct buf got;
    buf_init(&got);
    int err = download_send_part(t, s->downloads, d, first, count, NULL, add_piece, &got);
    bool same = !err && str_eq(buf_str(&got), str_from(bytes.p + first, (size_t)count));
    buf_release(&got);
    return same;
}

static void test_parts(struct task *t, void *arg)
{
    (void)arg;
    const int64_t piece = DOWNLOAD_PIECE_BYTES;
    struct site s;
    open_site(t, &s);
    size_t n = 2 * DOWNLOAD_PIECE_BYTES + 1000;
    char *p = arena_alloc(task_arena(t), n);
    for (size_t i = 0; i < n; i++)
        p[i] = (char)('a' + i / 1000 % 26);
    struct str bytes = str_from(p, n);
    struct download d = hold_pieces(t, &s, bytes);
    const int64_t parts[][2] = {
        {0, d.bytes}, {0, 1},         {10, 100},         {piece - 1, 2},   {piece, 1},
        {piece, 10},  {5, 2 * piece}, {d.bytes - 1, 1},  {2 * piece, 999}, {0, 0},
        {0, piece},   {1, piece},     {piece, 2 * 1000},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        ok(part_is(t, &s, &d, bytes, parts[i][0], parts[i][1]), "a part: %lld bytes from %lld on",
           (long long)parts[i][1], (long long)parts[i][0]);
    say(t, &s.node, STR("DEL"), key_download_piece(task_arena(t), d.uid, d.id, 0));
    ok(part_is(t, &s, &d, bytes, piece, 10), "of a part only its own pieces are fetched");
    is_str(file_of(t, &s, &d), STR("not_found"), "but the whole has expired");
    struct str packed;
    check(download_pack(t, STR("short"), &packed) == 0);
    say(t, &s.node, STR("SET"), key_download_piece(task_arena(t), d.uid, d.id, 0), packed);
    is_str(file_of(t, &s, &d), STR("proto"), "a piece that is too short is not sent");
    close_site(t, &s);
}

int main(void)
{
    static void (*const tests[])(struct task * t, void *arg) = {
        test_drain, test_whole, test_others, test_limits, test_dead, test_older,
        test_lost,  test_slow,  test_tries,  test_large,  test_much, test_parts,
    };
    start_stores();
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        tap_task(tests[i], NULL, true);
    return stop_stores();
}
