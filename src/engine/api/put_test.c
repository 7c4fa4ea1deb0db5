#include "engine/api/api.h"
#include "tests/tap.h"

struct sight {
    struct str name, absent;
    int64_t number, none, cents, at_ms, never_ms, numbers[2];
    bool flag;
    struct sight_part {
        int64_t x;
    } part;
};
#define AT(member) API_AT(struct sight, member)

static const struct api_field part_fields[] = {{"x", API_INT, API_AT(struct sight_part, x)},
                                               API_END};
static const struct api_field sight_fields[] = {
    {"name", API_TEXT, AT(name)},
    {"absent", API_TEXT, AT(absent), .optional = true},
    {"number", API_INT, AT(number)},
    {"none", API_INT, AT(none), .optional = true, .least = 1, .most = 5},
    {"elsewhere", API_INT, .optional = true},
    {"amount", API_MONEY, AT(cents)},
    {"at", API_TIME, AT(at_ms)},
    {"never", API_TIME, AT(never_ms), .optional = true},
    {"numbers", API_INTS, AT(numbers)},
    {"flag", API_BOOL, AT(flag)},
    {"part", API_OBJECT, AT(part), .fields = part_fields},
    API_END,
};

static void test_values(struct task *t, void *arg)
{
    (void)arg;
    const struct sight all[] = {{.name = STR("a"),
                                 .number = -1,
                                 .cents = 1234,
                                 .at_ms = 1000,
                                 .numbers = {3, 4},
                                 .flag = true,
                                 .part = {5}}};
    struct buf b;
    struct json_writer w;
    jw_begin(&w, &b);
    api_put_list(t, &w, "sights", sight_fields, all, 1);
    api_put_list(t, &w, "none", sight_fields, all, 0);
    is_str(jw_finish(&w, task_arena(t)),
           STR("{\"sights\":[{\"name\":\"a\",\"absent\":null,\"number\":-1,\"none\":null,"
               "\"amount\":\"12.34\",\"at\":\"1970-01-01T00:00:01.000Z\",\"never\":null,"
               "\"numbers\":[3,4],\"flag\":true,\"part\":{\"x\":5}}],\"none\":[]}"),
           "values from structs");
}

int main(void)
{
    tap_task(test_values, NULL, true);
    return tap_done();
}
