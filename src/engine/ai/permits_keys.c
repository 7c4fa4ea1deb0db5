/* Which keys there are, which of them rest, and which were refused. */
#include <stdlib.h>

#include "base/log.h"
#include "engine/ai/permits_private.h"
#include "engine/store/keys.h"
#include "engine/store/scripts.h"

#define LOOK_MS       5000 /* how long one look may take */
#define REST_MS_LEAST 1000
#define REST_MS_MAX   60000      /* whatever the service asks for: then one call tries */
#define REFUSED_MS    10000      /* every node has read api_list by then */
#define RESTED_MS     2000       /* how long the call to Redis may take */
#define FORGOTTEN_US  3600000000 /* of a deleted key; longer than any call takes */
#define BEGUN         "keyring.begun"

/* In place of a key, for a service that needs none. api_list counts from 1. */
#define NO_KEY_ID  0
#define NO_KEY     "none"
#define NO_KEY_RPM 1000000
#define NO_KEY_TPM 2000000000

/* --- rest and refusal --- */

/* error: as permits_error_text makes it. False: other nodes were not told. */
static bool rest_everywhere(struct task *t, struct permits *k, int64_t key_id, int64_t ms,
                            struct str error)
{
    const char *text = arena_strdup(task_arena(t), task_error(t));
    int64_t old = task_deadline(t, RESTED_MS);
    struct arena *a = task_arena(t);
    int err = SCRIPT(t, k->redis, permits_rest, NULL, .window = key_window(a, key_id),
                     .errors = key_key_errors, .ms = str_int(a, ms), .id = str_int(a, key_id),
                     .error = error);
    task_deadline_restore(t, old);
    if (err) {
        log_warn("keyring", "key %lld rests on this node only, others go on with it: %s",
                 (long long)key_id, task_error(t));
        (void)task_fail(t, 0, "%s", text);
    }
    return !err;
}

void permits_cool(struct task *t, struct permits *k, int64_t key_id, int64_t retry_after_ms)
{
    struct permits_key *key = permits_find(k, key_id);
    check(key);
    int64_t ms = retry_after_ms < REST_MS_LEAST ? REST_MS_LEAST : retry_after_ms;
    if (ms > REST_MS_MAX)
        ms = REST_MS_MAX;
    int64_t now_us = loop_now_us(task_loop(t)), until_us = now_us + ms * 1000;
    if (until_us > key->rests_until_us)
        key->rests_until_us = until_us;
    key->on_trial = true;
    key->tried = false;
    permits_clear_lots(k, now_us, key);
    metric_add(k->rests, 1);
    const char *text =
        arena_printf(task_arena(t), "status 429: it rests for %lld ms", (long long)ms);
    if (!rest_everywhere(t, k, key_id, ms, permits_error_text(t, false, text)))
        return;
    /* From here on Redis refuses leases, until the end of the rest or until the key is woken. Only
     * a lease call that was under way may still bring some, while they are valid. */
    until_us = loop_now_us(task_loop(t)) + PERMITS_VALID_SLOTS * permits_slot_us(k);
    if (key->rests_until_us > until_us)
        key->rests_until_us = until_us;
}

int permits_wake_key(struct task *t, struct permits *k, int64_t key_id)
{
    struct str window = key_window(task_arena(t), key_id);
    struct permits_key *key = permits_find(k, key_id);
    int err = redis_call(t, k->redis, window, NULL, STR("HDEL"), window, STR("rest"));
    if (err)
        return err == ERR_UNCERTAIN ? ERR_UNAVAILABLE : err; /* idempotent */
    if (key)
        key->rests_until_us = 0;
    k->ask_again_us = 0;
    permits_wake(k);
    permits_forget_error(t, k, key_id);
    return 0;
}

/* The largest limit of the active keys, and which waiting tasks are above it. */
static void count_keys(struct permits *k)
{
    int64_t most = 0;
    for (size_t i = 0; i < k->key_count; i++) {
        const struct permits_key *key = k->keys[i];
        if (key->active && key->tpm > most)
            most = key->tpm;
    }
    k->tpm_max = most;
    if (most == 0 && k->looked)
        permits_fail_waiters(k, ERR_UNAVAILABLE);
    else
        permits_sort_waiters(k);
}

/* Idempotent. The key in the row may have been replaced since. */
static int tell_refused(struct task *t, struct permits *k, struct permits_key *key)
{
    const char *text = arena_printf(task_arena(t), "status %d: it was switched off", key->status);
    (void)rest_everywhere(t, k, key->id, REFUSED_MS, permits_error_text(t, true, text));
    int err = sql_call(t, k->sql, NULL,
                       "UPDATE api_list SET is_active = 0 WHERE api_index = ? AND api_key = ?",
                       sql_int(key->id), sql_text(str_of(key->api_key)));
    if (!err)
        key->refused = false;
    return err;
}

void permits_refused(struct task *t, struct permits *k, int64_t key_id, int status)
{
    struct permits_key *key = permits_find(k, key_id);
    check(key);
    if (!key->active)
        return; /* several requests with it were under way */
    key->active = false;
    key->refused = true;
    key->status = status;
    metric_add(k->refusals, 1);
    log_error("keyring",
              "the AI service refuses key %lld (%s) with status %d: it is switched off in api_list",
              (long long)key_id, log_secret(task_arena(t), str_of(key->api_key)), status);
    permits_clear_lots(k, loop_now_us(task_loop(t)), key);
    count_keys(k);
    const char *text = arena_strdup(task_arena(t), task_error(t));
    if (tell_refused(t, k, key))
        (void)task_fail(t, 0, "%s", text); /* the next look tells it */
}

/* --- looks at api_list --- */

/* Deleted so long ago that no request with it is under way, and nothing of it goes back. */
static bool is_forgotten(const struct permits_key *key, int64_t now_us)
{
    if (key->listed || key->gone_us == 0 || now_us - key->gone_us < FORGOTTEN_US)
        return false;
    for (size_t i = 0; i < PERMITS_SLOTS; i++)
        if (key->returns[i].waiting)
            return false;
    return true;
}

/* Where a key goes that is new here: keys of years that are deleted take no place. */
static struct permits_key *free_place(struct permits *k, int64_t now_us)
{
    if (k->key_count < PERMITS_KEYS_MAX)
        return k->keys[k->key_count++] = check_memory(calloc(1, sizeof(struct permits_key)));
    for (size_t i = 0; i < k->key_count; i++)
        if (is_forgotten(k->keys[i], now_us)) {
            free(k->keys[i]->api_key);
            free(k->keys[i]->name);
            *k->keys[i] = (struct permits_key){0};
            return k->keys[i];
        }
    return NULL;
}

static struct permits_key *known_key(struct permits *k, int64_t id, int64_t now_us)
{
    struct permits_key *key = permits_find(k, id);
    if (!key && (key = free_place(k, now_us)))
        key->id = id;
    return key;
}

static int64_t cap_of(const struct sql_value *v)
{
    return v->type == SQL_NULL ? -1 : v->i < 0 ? 0 : v->i;
}

static void learn_key(struct permits *k, const struct sql_value *row, int64_t now_us)
{
    struct permits_key *key = known_key(k, row[0].i, now_us);
    if (!key) {
        if (!k->crowded)
            log_warn(
                "keyring",
                "api_list has more than %d keys of one service, with those deleted in the last "
                "hour: the others are not used; delete some, and wait for that hour",
                PERMITS_KEYS_MAX);
        k->crowded = true;
        return;
    }
    if (!key->api_key || !str_eq(row[1].s, str_of(key->api_key))) {
        free(key->api_key);
        key->api_key = check_memory(strndup(row[1].s.p, row[1].s.n));
        key->refused = false; /* another key was */
    }
    free(key->name);
    struct str name = row[8].type == SQL_TEXT ? row[8].s : STR("");
    key->name = check_memory(strndup(name.p, name.n));
    key->rpm = row[2].i;
    key->tpm = row[3].i;
    key->listed = true;
    key->gone_us = 0;
    key->active = row[4].i != 0 && !key->refused && key->rpm > 0 && key->tpm > 0;
    for (size_t c = 0; c < PERMITS_CAPS; c++)
        key->caps[c] = cap_of(&row[5 + c]);
}

/* Not listed: admins see the keys of api_list only. */
static void learn_no_key(struct permits *k, int64_t now_us)
{
    bool any = false;
    for (size_t i = 0; i < k->key_count; i++)
        any = any || k->keys[i]->active;
    struct permits_key *key = any ? NULL : known_key(k, NO_KEY_ID, now_us);
    if (!key)
        return;
    if (!key->api_key) {
        key->api_key = check_memory(strdup(NO_KEY));
        key->name = check_memory(strdup(""));
    }
    key->rpm = NO_KEY_RPM;
    key->tpm = NO_KEY_TPM;
    key->active = !key->refused;
    for (size_t c = 0; c < PERMITS_CAPS; c++)
        key->caps[c] = -1;
}

/* Changes with all that can end the wait of a task. */
static int64_t signature(const struct permits *k)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < k->key_count; i++) {
        const struct permits_key *key = k->keys[i];
        sum = sum * 31 + (uint64_t)key->active;
        sum = sum * 31 + (uint64_t)key->rpm;
        sum = sum * 31 + (uint64_t)key->tpm;
        for (size_t c = 0; c < PERMITS_CAPS; c++)
            sum = sum * 31 + (uint64_t)key->caps[c];
    }
    return (int64_t)sum;
}

static int look_at_keys(struct task *t, struct permits *k)
{
    struct sql_rows r;
    for (size_t i = 0; i < k->key_count; i++) {
        struct permits_key *key = k->keys[i];
        int err = key->refused ? tell_refused(t, k, key) : 0;
        if (err)
            return err;
    }
    int err = sql_call(t, k->sql, &r,
                       "SELECT api_index, api_key, rpm_limit, tpm_limit, is_active,"
                       " minute_cap, day_cap, month_cap, api_name FROM api_list"
                       " WHERE service = ? ORDER BY api_index",
                       sql_text(str_of(k->service)));
    if (err)
        return err;
    int64_t before = signature(k), now_us = loop_now_us(task_loop(t));
    for (size_t i = 0; i < k->key_count; i++)
        k->keys[i]->listed = k->keys[i]->active = false;
    for (size_t i = 0; i < r.count; i++)
        learn_key(k, sql_row(&r, i), now_us);
    if (k->keyless)
        learn_no_key(k, now_us);
    for (size_t i = 0; i < k->key_count; i++) {
        struct permits_key *key = k->keys[i];
        if (!key->active)
            permits_clear_lots(k, now_us, key);
        if (!key->listed && key->gone_us == 0 && key->id != NO_KEY_ID)
            key->gone_us = now_us;
    }
    k->looked = true;
    count_keys(k);
    if (signature(k) != before) {
        k->ask_again_us = 0;
        permits_wake(k);
    }
    return 0;
}

/* (7) */
static int begin(struct task *t, struct permits *k)
{
    struct sql_rows r;
    struct str name =
        ai_is_chat(k->service) ? STR(BEGUN) : str_printf(task_arena(t), BEGUN ".%s", k->service);
    int err = sql_call(t, k->sql, &r, "SELECT 1 FROM setting WHERE name = ?", sql_text(name));
    if (!err && r.count == 0) {
        err = permits_lease(t, k, true);
        if (!err)
            err = sql_call(t, k->sql, NULL,
                           "INSERT IGNORE INTO setting (name, value, version, changed_at)"
                           " VALUES (?, 'true', 1, UTC_TIMESTAMP(3))",
                           sql_text(name));
    }
    if (err)
        return err;
    k->begun = true;
    permits_wake(k);
    return 0;
}

int permits_role(struct task *t, void *arg, struct role_turn *turn)
{
    (void)turn;
    struct permits *k = arg;
    int64_t old = task_deadline(t, LOOK_MS);
    int err = look_at_keys(t, k);
    if (!err && !k->begun)
        err = begin(t, k);
    task_deadline_restore(t, old);
    return err;
}
