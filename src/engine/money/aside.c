/* Records of billing_queue that cannot be read, or whose checksum is wrong (BIL-6).
 *
 * What such a record has cost is not known any more. So it goes aside, and one that costs nothing
 * takes its place, with its seq: the records after it come to MySQL. Its user is closed to charges
 * until the operator writes it off: then the money that it took is the user's again. */
#include "engine/money/ledger_private.h"
#include "engine/store/keys.h"
#include "engine/store/scripts.h"

#define SHOWN_BYTES 200 /* of a record, in a message */

int ledger_put_aside(struct task *t, struct ledger *l, const struct ledger_batch *b, bool *done)
{
    struct arena *a = task_arena(t);
    int64_t before = b->count ? b->records[b->count - 1].seq : 0, status = 0;
    struct str id = str_printf(a, "aside-%lld", (long long)loop_wall_ms(task_loop(t)));
    struct str shown = b->unreadable, text = ledger_deduction_text(t, 0, id);
    shown.n = shown.n < SHOWN_BYTES ? shown.n : SHOWN_BYTES;
    int err =
        SCRIPT_NUMBER(t, l->redis, ledger_aside, &status, .ledger = key_ledger(a, b->uid),
                      .queue = key_billing_queue(a, b->uid), .aside = key_aside(a, b->uid),
                      .generation = generation_str(&b->generation), .synced = str_int(a, b->synced),
                      .place = str_int(a, (int64_t)b->count), .record = b->unreadable,
                      .before = str_int(a, before), .after = str_int(a, b->readable_seq),
                      .distance = str_int(a, b->readable_distance), .text = text,
                      .sum = str_int(a, ledger_record_sum(text)));
    *done = !err && status == 1;
    if (*done)
        (void)ledger_alarm(t, l,
                           "user %lld: a billing record cannot be read: %.*s; it is put aside, and "
                           "this user is not charged until it is released (millrace user release)",
                           (long long)b->uid, STR_ARG(shown));
    return err == ERR_UNCERTAIN ? ERR_UNAVAILABLE : err;
}

int ledger_aside(struct task *t, struct ledger *l, int64_t uid, const struct str **out,
                 size_t *count)
{
    struct str key = key_aside(task_arena(t), uid);
    const struct redis_reply *r;
    int err = redis_call(t, l->redis, key, &r, STR("LRANGE"), key, STR("0"), STR("-1"));
    if (err)
        return err == ERR_UNCERTAIN ? ERR_UNAVAILABLE : err;
    struct str *list = ARENA_ARRAY(task_arena(t), struct str, r->count + 1);
    for (size_t i = 0; i < r->count; i++)
        list[i] = r->items[i]->str;
    *out = list;
    *count = r->count;
    return 0;
}

int ledger_write_off(struct task *t, struct ledger *l, int64_t uid, struct str record)
{
    struct str key = key_aside(task_arena(t), uid);
    return redis_call(t, l->redis, key, NULL, STR("LREM"), key, STR("1"), record);
}
