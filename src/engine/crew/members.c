#include "engine/crew/members.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/log.h"
#include "base/map.h"
#include "engine/store/keys.h"
#include "engine/store/scripts.h"

#define TOLD_MS 1000 /* a difference of clocks that an operator should know of */

/* --- the heartbeat --- */

static struct str note_json(struct task *t, const struct member_note *note)
{
    struct buf b;
    struct json_writer w;
    if (!note)
        return STR("");
    buf_init(&b);
    jw_init(&w, &b);
    jw_object(&w);
    jw_put_str(&w, "id", note->id);
    jw_put_str(&w, "name", note->name);
    jw_put_bool(&w, "takes", note->self.takes);
    jw_put_int(&w, "workers", note->self.workers);
    jw_put_int(&w, "latency_us", note->self.latency_us);
    jw_put_int(&w, "tokens", note->self.tokens);
    jw_put_bool(&w, "drained", note->drained);
    jw_put_str(&w, "prompt", note->prompt);
    jw_put_int(&w, "resident_bytes", note->resident_bytes);
    jw_put_int(&w, "late_us", note->late_us);
    jw_put_int(&w, "tasks", note->tasks);
    jw_key(&w, STR("service"));
    jw_object(&w);
    jw_put_bool(&w, "open", note->service_open);
    if (note->service_open) {
        jw_put_int(&w, "since_ms", note->service_since_ms);
        jw_put_str(&w, "cause", note->service_cause);
        jw_put_str(&w, "words", note->service_words);
    }
    jw_end_object(&w);
    jw_key(&w, STR("faults"));
    jw_raw(&w, note->faults.p ? note->faults : STR("[]"));
    jw_key(&w, STR("runs"));
    jw_raw(&w, note->runs);
    jw_end_object(&w);
    struct str json = str_dup(task_arena(t), buf_str(&b));
    buf_release(&b);
    return json;
}

static bool read_member(struct arena *a, struct str incarnation, struct str json,
                        struct member *out)
{
    const struct json *j;
    struct member m = {.takes = false};
    char *end, *text = str_z(a, incarnation);
    m.incarnation = strtoull(text, &end, 16);
    if (incarnation.n == 0 || *end || json_parse(a, json, &j, NULL))
        return false;
    (void)json_bool(json_get(j, "takes"), &m.takes);
    (void)json_int(json_get(j, "workers"), &m.workers);
    (void)json_int(json_get(j, "latency_us"), &m.latency_us);
    (void)json_int(json_get(j, "tokens"), &m.tokens);
    *out = m;
    return true;
}

static int by_incarnation(const void *a, const void *b)
{
    const struct member *x = a, *y = b;
    return (x->incarnation > y->incarnation) - (x->incarnation < y->incarnation);
}

/* redis_ms was Redis' time at some moment since sent_ms. */
static void follow_clock(struct loop *l, int64_t sent_ms, int64_t redis_ms)
{
    int64_t half_ms = (loop_wall_ms(l) - sent_ms) / 2;
    int64_t behind_ms = redis_ms - (sent_ms + half_ms);
    /* Negative: this machine's clock was set back meanwhile; the next heartbeat tells. */
    if (half_ms < 0 || llabs(behind_ms) <= half_ms + MEMBER_CLOCK_MS)
        return;
    int64_t was_ms = loop_wall_ahead(l), ahead_ms = was_ms + behind_ms;
    if (llabs(ahead_ms) <= MEMBER_CLOCK_MS)
        ahead_ms = 0;
    loop_set_wall_ahead(l, ahead_ms);
    if (llabs(ahead_ms) < TOLD_MS && llabs(was_ms) >= TOLD_MS)
        log_info("clock", "this machine's clock agrees with Redis' again");
    else if (llabs(ahead_ms - was_ms) >= TOLD_MS)
        log_warn("clock",
                 "this machine's clock is %.1f s %s Redis', which is used instead where machines "
                 "must agree; see that both are set by NTP: certificates and logs need it",
                 (double)llabs(ahead_ms) / 1000, ahead_ms >= 0 ? "behind" : "ahead of");
}

int members_beat(struct task *t, struct members *m, const struct member_note *note)
{
    struct arena *a = task_arena(t);
    int64_t sent_ms = loop_wall_ms(task_loop(t));
    uint64_t epoch = redis_epoch_at(m->redis, key_nodes);
    const struct redis_reply *r;
    int err = SCRIPT(t, m->redis, node_beat, &r, .nodes = key_nodes, .notes = key_nodes_info,
                     .lost = key_nodes_lost, .node = str_printf(a, "%016" PRIx64, m->incarnation),
                     .silent_ms = str_int(a, MEMBER_SILENT_MS), .note = note_json(t, note));
    if (err)
        return err;
    if (r->type != REDIS_ARRAY || r->count == 0 || r->items[0]->type != REDIS_INT)
        return task_fail(t, ERR_PROTO, "script node_beat returned something else");
    follow_clock(task_loop(t), sent_ms, r->items[0]->integer);
    if (m->epoch != epoch)
        m->since_ms = loop_now_ms(task_loop(t));
    m->epoch = epoch;
    m->count = 0;
    for (size_t i = 1; i + 1 < r->count && m->count < MEMBERS_MAX; i += 2)
        m->count += read_member(a, r->items[i]->str, r->items[i + 1]->str, &m->list[m->count]);
    qsort(m->list, m->count, sizeof *m->list, by_incarnation);
    return 0;
}

/* --- conclusions from the list --- */

bool members_certain(const struct members *m, int64_t now_ms)
{
    return m->count > 0 && m->epoch == redis_epoch_at(m->redis, key_nodes) &&
           redis_up_at(m->redis, key_nodes) && now_ms - m->since_ms >= MEMBER_SILENT_MS;
}

bool members_live(const struct members *m, uint64_t incarnation)
{
    struct member key = {.incarnation = incarnation};
    return bsearch(&key, m->list, m->count, sizeof key, by_incarnation) != NULL;
}

bool members_any_takes(const struct members *m)
{
    for (size_t i = 0; i < m->count; i++)
        if (m->list[i].takes)
            return true;
    return false;
}

int64_t members_share(const struct members *m, struct str run, int64_t count)
{
    static const uint8_t key[16];
    int64_t takers = 0, own = -1;
    for (size_t i = 0; i < m->count; i++) {
        if (m->list[i].incarnation == m->incarnation && m->list[i].takes)
            own = takers;
        takers += m->list[i].takes;
    }
    if (own < 0)
        return 0;
    int64_t first = (int64_t)(siphash(key, run) % (uint64_t)takers);
    int64_t place = (own + takers - first) % takers;
    return count / takers + (place < count % takers);
}
