/* Rows and hashes as structs. */
#include "engine/store/record.h"

#include "tests/tap.h"

struct thing {
    int64_t id, count, at_ms;
    struct str name, note;
    bool open;
    int other;
};

#define AT(member) .at = offsetof(struct thing, member)
static const struct record_column columns[] = {
    {NULL, "id", RECORD_INT, AT(id)},
    {"name", NULL, RECORD_TEXT, AT(name)},
    {"count", "n + 1", RECORD_INT, AT(count)},
    {"seen", "at", RECORD_TIME, AT(at_ms)},
    {NULL, "note", RECORD_TEXT, AT(note)},
    {"state", NULL, RECORD_FLAG, AT(open), .words = {"closed", "open"}},
    {.type = RECORD_END},
};
static const struct record_kind kind = {"things", columns, sizeof(struct thing)};

static void test_rows(struct arena *a)
{
    is_str(str_of(record_select(a, &kind, "WHERE id = ?")),
           STR("SELECT id, name, n + 1, at, note, state FROM things WHERE id = ?"), "a SELECT");
    const struct sql_value row[] = {sql_int(7),    sql_text(STR("x")), sql_int(3),
                                    sql_int(5999), sql_null(),         sql_text(STR("open"))};
    struct thing x = {.note = STR("old"), .other = 9};
    record_take(&kind, row, &x);
    ok(x.id == 7 && x.count == 3 && x.at_ms == 5999 && x.open && str_eq(x.name, STR("x")),
       "a row, each column in its place");
    ok(!x.note.p && x.other == 9, "NULL is no text, and other members stay");
    struct sql_value numbers[6];
    memcpy(numbers, row, sizeof numbers);
    numbers[5] = sql_int(0);
    record_take(&kind, numbers, &x);
    ok(!x.open, "a flag may be a number");
}

static struct redis_reply *text(struct arena *a, struct str s)
{
    struct redis_reply *r = ARENA_NEW(a, struct redis_reply);
    r->type = REDIS_STRING;
    r->str = s;
    return r;
}

static bool reads(struct arena *a, struct script_list fields, struct thing *out)
{
    struct redis_reply hash = {.type = REDIS_ARRAY, .count = fields.n};
    struct redis_reply **items = ARENA_ARRAY(a, struct redis_reply *, fields.n + 1);
    for (size_t i = 0; i < fields.n; i++)
        items[i] = text(a, fields.p[i]);
    hash.items = (void *)items;
    return record_read(&kind, &hash, out);
}

static void test_hashes(struct arena *a)
{
    struct thing x = {.id = 7, .count = 3, .at_ms = 5999, .name = STR("x"), .open = true}, y = {0};
    struct script_list w = record_write(a, &kind, &x);
    is_int((int64_t)w.n, 8, "four fields: what has no name in Redis is not kept there");
    is_str(w.p[5], STR("5"), "times in seconds");
    is_str(w.p[7], STR("open"), "flags in words");
    ok(reads(a, w, &y) && y.count == 3 && y.at_ms == 5000 && y.open && str_eq(y.name, STR("x")),
       "and back");
    is_int(y.id, 0, "what is not kept stays as it was");
    struct script_list less = {w.p, w.n - 2};
    ok(!reads(a, less, &y), "a field is missing");
    static const struct {
        size_t at;
        const char *value;
    } wrong[] = {{3, "many"}, {3, "-1"}, {5, "9223372036854775807"}, {7, "ajar"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct str *damaged = ARENA_ARRAY(a, struct str, w.n);
        memcpy(damaged, w.p, w.n * sizeof *damaged);
        damaged[wrong[i].at] = str_of(wrong[i].value);
        ok(!reads(a, (struct script_list){damaged, w.n}, &y), "no value of its type: %s",
           wrong[i].value);
    }
    struct redis_reply number = {.type = REDIS_INT};
    ok(!record_read(&kind, &number, &y), "what is no hash is no record");
}

static void test_copy(struct arena *a)
{
    char name[] = "abc";
    struct thing x = {.id = 7, .name = str_of(name), .other = 9}, y;
    record_copy(a, &kind, &x, &y);
    name[0] = 'z';
    ok(y.id == 7 && y.other == 9 && !y.note.p && str_eq(y.name, STR("abc")),
       "a copy has texts of its own");
}

int main(void)
{
    struct arena a;
    arena_init(&a);
    test_rows(&a);
    test_hashes(&a);
    test_copy(&a);
    arena_release(&a);
    return tap_done();
}
