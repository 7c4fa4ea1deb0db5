#include "engine/people/hooks.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/ip.h"
#include "base/log.h"
#include "base/sha256.h"
#include "engine/setup/address.h"
#include "engine/setup/config.h"
#include "wire/http_client.h"
#include "wire/http_client/http_url.h"

#define AT_ONCE       20 /* calls of one round */
#define PAUSE_S       10 /* after the first failure; doubles */
#define PAUSE_S_MAX   3600
#define KEPT_DAYS     "7" /* rows that have ended */
#define SWEEP_EACH_MS (10LL * 60 * 1000)
#define SWEEP_PAGE    1000

struct hooks {
    struct node *node;
    struct arena arena;
    struct address_list *allowed;
    struct http_client *client;
    int64_t swept_ms;
    int64_t *delivered, *again, *failed;
};

/* --- what a node holds --- */

static bool allows(void *arg, struct str address)
{
    const struct hooks *h = arg;
    struct ip ip;
    return ip_parse(address, &ip) && (ip_is_public(&ip) || address_list_has(h->allowed, address));
}

struct hooks *hooks_new(struct node *n)
{
    struct hooks *h = check_memory(calloc(1, sizeof *h));
    const char *name = "millrace_webhooks_total", *help = "Calls to webhooks of users.";
    h->node = n;
    arena_init(&h->arena);
    h->allowed = address_list_new(&h->arena, n->config->webhook_allow);
    h->client = http_client_new(
        n->loop, &(struct http_client_options){
                     .ca_file = *n->config->webhook_ca_file ? n->config->webhook_ca_file : NULL,
                     .connect_ms = HOOK_CALL_MS,
                     .reply_bytes_max = HOOK_REPLY_BYTES,
                     .proxy = "none", /* it would hide which address is called */
                     .allows = allows,
                     .allows_arg = h});
    h->delivered = metric(n->metrics, METRIC_COUNTER, name, "outcome=\"delivered\"", help);
    h->again = metric(n->metrics, METRIC_COUNTER, name, "outcome=\"again\"", help);
    h->failed = metric(n->metrics, METRIC_COUNTER, name, "outcome=\"failed\"", help);
    return h;
}

void hooks_free(struct hooks *h)
{
    if (!h)
        return;
    http_client_free(h->client);
    arena_release(&h->arena);
    free(h);
}

/* --- adding --- */

const char *hook_url_problem(struct arena *a, struct str url)
{
    struct http_url parts;
    if (url.n > HOOK_URL_CHARS)
        return arena_printf(a, "may have at most %d characters", HOOK_URL_CHARS);
    if (!http_url_split(url, &parts))
        return "must be an address like https://example.org/hook, without user and password";
    return parts.tls ? NULL : "must begin with https://";
}

void hook_key_new(struct task *t, char out[HOOK_KEY_BYTES])
{
    loop_token(task_loop(t), out, HOOK_KEY_BYTES);
}

struct str hook_secret(struct arena *a, struct str key)
{
    struct buf b;
    buf_init(&b);
    buf_add_lit(&b, "whsec_");
    buf_add_base64(&b, key.p, key.n);
    struct str s = str_dup(a, buf_str(&b));
    buf_release(&b);
    return s;
}

int hook_add(struct task *t, struct sql *c, const struct hook *h)
{
    return sql_on(t, c, NULL,
                  "INSERT IGNORE INTO webhook_delivery (id, uid, url, secret, body, state, due_at,"
                  " created_at) VALUES (?, ?, ?, ?, ?, 'pending', UTC_TIMESTAMP(3),"
                  " UTC_TIMESTAMP(3))",
                  sql_text(h->id), sql_int(h->uid), sql_text(h->url), sql_text(h->key),
                  sql_text(h->body));
}

/* --- calling --- */

struct delivery {
    struct hooks *hooks;
    int64_t number, tries;
    struct str id, url, key, body;
    bool old; /* this is the last try */
    int err;  /* of its task: only that of MySQL, or of the task itself */
};

static struct str signature(struct arena *a, const struct delivery *d, int64_t now_s)
{
    uint8_t sum[SHA256_BYTES];
    struct buf b;
    hmac_sha256(d->key,
                str_printf(a, "%.*s.%" PRId64 ".%.*s", STR_ARG(d->id), now_s, STR_ARG(d->body)),
                sum);
    buf_init(&b);
    buf_add_lit(&b, "Webhook-Signature: v1,");
    buf_add_base64(&b, sum, sizeof sum);
    struct str s = str_dup(a, buf_str(&b));
    buf_release(&b);
    return s;
}

/* NULL: it was taken. Else what was wrong, in the task's arena. */
static const char *call(struct task *t, const struct delivery *d)
{
    struct arena *a = task_arena(t);
    int64_t now_s = loop_wall_ms(task_loop(t)) / 1000;
    const struct str headers[] = {
        STR("Content-Type: application/json"),
        str_printf(a, "Webhook-Id: %.*s", STR_ARG(d->id)),
        str_printf(a, "Webhook-Timestamp: %" PRId64, now_s),
        signature(a, d, now_s),
    };
    struct http_call c = {.method = "POST",
                          .url = str_z(a, d->url),
                          .headers = headers,
                          .header_count = sizeof headers / sizeof *headers,
                          .body = d->body};
    struct http_response r;
    int64_t old = task_deadline(t, HOOK_CALL_MS);
    int err = http_call(t, d->hooks->client, &c, &r);
    task_deadline_restore(t, old);
    if (err)
        return arena_strdup(a, *task_error(t) ? task_error(t) : err_name(err));
    return r.status >= 200 && r.status < 300 ? NULL
                                             : arena_printf(a, "it answers with %d", r.status);
}

static int64_t pause_s(struct task *t, int64_t tries)
{
    int64_t s = PAUSE_S;
    for (int64_t i = 0; i < tries && s < PAUSE_S_MAX; i++)
        s *= 2;
    return loop_jitter(task_loop(t), s < PAUSE_S_MAX ? s : PAUSE_S_MAX);
}

static int note(struct task *t, const struct delivery *d, const char *problem)
{
    struct hooks *h = d->hooks;
    const char *state = !problem ? "delivered" : d->old ? "failed" : "pending";
    metric_add(!problem ? h->delivered : d->old ? h->failed : h->again, 1);
    if (problem)
        log_debug("hooks", "%.*s is not delivered: %s", STR_ARG(d->id), problem);
    return sql_call(t, h->node->sql, NULL,
                    "UPDATE webhook_delivery SET state = ?, tries = tries + 1,"
                    " error = LEFT(?, 500), due_at = UTC_TIMESTAMP(3) + INTERVAL ? SECOND,"
                    " ended_at = IF(state = 'pending', NULL, UTC_TIMESTAMP(3))"
                    " WHERE number = ? AND state = 'pending'",
                    sql_text(str_of(state)), sql_text(problem ? str_of(problem) : STR_NULL),
                    sql_int(problem && !d->old ? pause_s(t, d->tries) : 0), sql_int(d->number));
}

static void deliver(struct task *t, void *arg)
{
    struct delivery *d = arg;
    const char *problem = call(t, d);
    d->err = task_canceled(t) ? ERR_CANCELED : note(t, d, problem);
}

static int deliver_all(struct task *t, struct delivery *list, size_t count)
{
    struct group g;
    int err = 0;
    group_init(&g, task_loop(t));
    for (size_t i = 0; !err && i < count; i++)
        err = task_go(&g, "hook", deliver, &list[i]);
    int joined = group_join(t, &g);
    for (size_t i = 0; !err && i < count; i++)
        err = list[i].err;
    return err ? err : joined;
}

/* --- the role --- */

static int sweep(struct task *t, struct hooks *h)
{
    int64_t now_ms = loop_now_ms(task_loop(t));
    if (h->swept_ms && now_ms - h->swept_ms < SWEEP_EACH_MS)
        return 0;
    h->swept_ms = now_ms;
    return sql_call(t, h->node->sql, NULL,
                    "DELETE FROM webhook_delivery WHERE state IN ('delivered', 'failed')"
                    " AND due_at < UTC_TIMESTAMP(3) - INTERVAL " KEPT_DAYS " DAY LIMIT ?",
                    sql_int(SWEEP_PAGE));
}

int hooks_role(struct task *t, void *arg, struct role_turn *turn)
{
    struct hooks *h = arg;
    struct sql_rows r;
    (void)turn;
    int err = sweep(t, h);
    if (!err)
        err = sql_call(t, h->node->sql, &r,
                       "SELECT number, tries, id, url, secret, body,"
                       " created_at < UTC_TIMESTAMP(3) - INTERVAL ? HOUR FROM webhook_delivery"
                       " WHERE state = 'pending' AND due_at <= UTC_TIMESTAMP(3)"
                       " ORDER BY due_at LIMIT ?",
                       sql_int(HOOK_LIFE_H), sql_int(AT_ONCE));
    if (err || r.count == 0)
        return err;
    struct delivery *list = ARENA_ARRAY(task_arena(t), struct delivery, r.count);
    for (size_t i = 0; i < r.count; i++) {
        const struct sql_value *v = sql_row(&r, i);
        list[i] = (struct delivery){.hooks = h,
                                    .number = v[0].i,
                                    .tries = v[1].i,
                                    .id = v[2].s,
                                    .url = v[3].s,
                                    .key = v[4].s,
                                    .body = v[5].s,
                                    .old = v[6].i != 0};
    }
    err = deliver_all(t, list, r.count);
    return err ? err : r.count == AT_ONCE ? ROLE_MORE : 0;
}
