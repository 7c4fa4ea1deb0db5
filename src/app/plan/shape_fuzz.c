#include <stdlib.h>

#include "app/plan/shape.h"
#include "base/err.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_complaint(const char *complaint)
{
    check(complaint && *complaint && !strpbrk(complaint, "\r\n"));
    check(str_utf8_valid(str_of(complaint)));
}

/* What was read is read again as the same. */
static void check_day(struct arena *a, const struct plan_frame *f, const struct plan_day *d,
                      int64_t i)
{
    struct plan_day again;
    const struct json *j;
    const char *complaint = NULL;
    check(str_eq(d->date, plan_date(a, f, i)));
    check(json_parse(a, d->json, &j, NULL) == 0);
    check(plan_day_read(a, f, j, &again, &complaint) == 0);
    check(str_eq(again.json, d->json));
}

static void read_text(struct arena *a, const struct plan_frame *f, struct str text)
{
    struct plan_shape shape;
    struct plan_day day;
    const struct json *j;
    const char *complaint = NULL;
    int err = plan_shape_read(a, f, text, &shape, &complaint);
    check(err == 0 || err == ERR_INVALID);
    if (err)
        check_complaint(complaint);
    for (size_t i = 0; !err && i < shape.day_count; i++)
        check_day(a, f, &shape.days[i], (int64_t)i);
    check(err || shape.day_count == (size_t)(7 * f->weeks));
    if (json_parse(a, text, &j, NULL) == 0 && plan_day_read(a, f, j, &day, &complaint))
        check_complaint(complaint);
    check(plan_days_seen(text) <= PLAN_DAYS_MAX);
}

/* The first byte chooses the kind; the rest is the text. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n == 0)
        return 0;
    char *copy = check_memory(malloc(n)); /* of exactly this size: reading on is seen */
    memcpy(copy, data, n);
    struct arena a;
    arena_init(&a);
    struct plan_frame f = {.kind = copy[0] == 'n' ? PLAN_NUTRITION : PLAN_TRAINING,
                           .start_date = STR("2026-02-27"),
                           .weeks = 1};
    read_text(&a, &f, str_from(copy + 1, n - 1));
    arena_release(&a);
    free(copy);
    return 0;
}
