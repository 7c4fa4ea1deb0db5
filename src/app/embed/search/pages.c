/* Orders that are kept for the following pages, in Redis: any node may answer the next one.
 *
 *   value = version digest reason hit*
 *
 * with the digest in hexadecimal digits, the reason as one byte (a letter, see reason_of), and hits
 * in HIT_BYTES each. */
#include "app/embed/search/search_private.h"

#include <inttypes.h>

#include "base/sha256.h"
#include "engine/store/keys.h"
#include "wire/redis.h"

#define VERSION    "1"
#define HEAD_BYTES (1 + PAGES_DIGEST_HEX + 1)
#define HIT_BYTES  30
#define KEEP_MS    1000 /* Redis that answers later is away, as far as pages go */
#define PAGES_MS_S "600000"

static const char *const reasons[] = {NULL,
                                      COLLECTION_NO_SERVICE,
                                      COLLECTION_NO_ANSWER,
                                      COLLECTION_EMPTY,
                                      COLLECTION_REBUILT,
                                      COLLECTION_AWAY,
                                      COLLECTION_OTHER,
                                      SEARCH_NO_WORDS};
#define REASONS (sizeof reasons / sizeof *reasons)

static char letter_of(const char *reason)
{
    for (size_t i = 1; i < REASONS && reason; i++)
        if (strcmp(reasons[i], reason) == 0)
            return (char)('a' + i);
    return 'a';
}

static bool reason_of(char letter, const char **reason)
{
    size_t i = (size_t)(letter - 'a');
    if (letter < 'a' || i >= REASONS)
        return false;
    *reason = reasons[i];
    return true;
}

/* --- cursors: "<id of the order>-<place>", "-<place>" where no order was kept --- */

int search_place_read(struct task *t, struct str cursor, struct search_place *out)
{
    int64_t at;
    struct str rest = cursor, id = str_cut(&rest, '-');
    if ((id.n && (id.n != PAGES_ID_CHARS || !hex_is(id, PAGES_ID_CHARS))) || !rest.p ||
        !str_to_i64(rest, &at) || at < 1 || at > ORDER_HITS_MAX)
        return task_fail(t, ERR_INVALID, "is no cursor of a search");
    *out = (struct search_place){id.n ? id : STR_NULL, (size_t)at};
    return 0;
}

struct str search_place_write(struct arena *a, const struct search_place *p)
{
    return str_printf(a, "%.*s-%zu", p->id.p ? (int)p->id.n : 0, p->id.p ? p->id.p : "", p->at);
}

struct str search_digest(struct arena *a, const struct search_wish *w)
{
    struct buf b;
    char hex[SHA256_HEX_BYTES];
    buf_init(&b);
    buf_printf(&b, "%d%d %" PRId64 " %" PRId64, w->kinds[ORDER_POST], w->kinds[ORDER_PAPER],
               w->year_from, w->year_to);
    for (size_t i = 0; i < w->journal_count; i++) {
        buf_add_char(&b, '\n');
        buf_add_str(&b, w->journals[i]);
    }
    buf_add_char(&b, '\0');
    buf_add_str(&b, w->question);
    sha256_hex(buf_str(&b), hex);
    buf_release(&b);
    return str_dup(a, str_from(hex, PAGES_DIGEST_HEX));
}

/* --- orders --- */

static void put_hit(struct buf *b, const struct order_hit *h)
{
    char p[HIT_BYTES] = {(char)h->kind, (char)(h->by_meaning + 2 * h->by_words)};
    memcpy(p + 2, &h->owner, 8);
    memcpy(p + 10, &h->version, 8);
    memcpy(p + 18, &h->score, 8);
    memcpy(p + 26, &h->part, 4);
    buf_add(b, p, sizeof p);
}

static bool get_hit(const char *p, struct order_hit *h)
{
    *h = (struct order_hit){
        .kind = (uint8_t)p[0], .by_meaning = p[1] & 1, .by_words = (p[1] & 2) != 0};
    memcpy(&h->owner, p + 2, 8);
    memcpy(&h->version, p + 10, 8);
    memcpy(&h->score, p + 18, 8);
    memcpy(&h->part, p + 26, 4);
    return h->kind < ORDER_KINDS;
}

void search_keep(struct task *t, struct searches *s, const struct search_wish *w,
                 const struct search_found *f, struct str *id)
{
    char token[PAGES_ID_CHARS + 1];
    struct buf b;
    loop_token(task_loop(t), token, sizeof token);
    struct str key = key_search(task_arena(t), w->who.uid, str_of(token));
    buf_init(&b);
    buf_add_lit(&b, VERSION);
    buf_add_str(&b, search_digest(task_arena(t), w));
    buf_add_char(&b, letter_of(f->reason));
    for (size_t i = 0; i < f->order.count; i++)
        put_hit(&b, &f->order.hits[i]);
    struct str value = str_dup(task_arena(t), buf_str(&b));
    buf_release(&b);
    int64_t old = task_deadline(t, KEEP_MS);
    int err = redis_call(t, s->node->redis, key, NULL, STR("SET"), key, value, STR("PX"),
                         STR(PAGES_MS_S));
    task_deadline_restore(t, old);
    *id = err ? STR_NULL : str_dup(task_arena(t), str_of(token));
}

static int read_order(struct task *t, struct str value, struct str digest, struct search_found *out)
{
    struct str hits = value;
    if (value.n < HEAD_BYTES || !str_starts(value, STR(VERSION)) ||
        (value.n - HEAD_BYTES) % HIT_BYTES != 0 ||
        (value.n - HEAD_BYTES) / HIT_BYTES > ORDER_HITS_MAX)
        return ERR_NOT_FOUND; /* of another version of the program */
    if (!str_eq(str_from(value.p + 1, PAGES_DIGEST_HEX), digest))
        return task_fail(t, ERR_INVALID, "is the cursor of another search");
    if (!reason_of(value.p[HEAD_BYTES - 1], &out->reason))
        return ERR_NOT_FOUND;
    hits = str_skip(value, HEAD_BYTES);
    out->order.count = hits.n / HIT_BYTES;
    out->order.hits = ARENA_ARRAY(task_arena(t), struct order_hit, out->order.count + 1);
    for (size_t i = 0; i < out->order.count; i++)
        if (!get_hit(hits.p + i * HIT_BYTES, &out->order.hits[i]))
            return ERR_NOT_FOUND;
    return 0;
}

int search_kept(struct task *t, struct searches *s, const struct search_wish *w, struct str id,
                struct search_found *out)
{
    const struct redis_reply *r = NULL;
    struct str key = key_search(task_arena(t), w->who.uid, id);
    int64_t old = task_deadline(t, KEEP_MS);
    int err = redis_call(t, s->node->redis, key, &r, STR("GET"), key);
    task_deadline_restore(t, old);
    *out = (struct search_found){.reason = NULL};
    if (err == ERR_CANCELED)
        return err;
    if (err || r->type != REDIS_STRING)
        return ERR_NOT_FOUND;
    return read_order(t, r->str, search_digest(task_arena(t), w), out);
}
