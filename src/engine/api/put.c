/* Replies, by the table of their fields. */
#include "base/time.h"
#include "engine/api/api.h"

static void put_known(struct json_writer *w, bool known, int64_t v)
{
    if (known)
        jw_int(w, v);
    else
        jw_null(w);
}

static void put_time(struct json_writer *w, int64_t wall_ms)
{
    char text[TIME_ISO_BYTES];
    time_iso(wall_ms * 1000, text);
    jw_str(w, wall_ms ? str_of(text) : STR_NULL);
}

void api_put_known(struct json_writer *w, const char *name, bool known, int64_t v)
{
    jw_key(w, str_of(name));
    put_known(w, known, v);
}

void api_put_time(struct json_writer *w, const char *name, int64_t wall_ms)
{
    jw_key(w, str_of(name));
    put_time(w, wall_ms);
}

/* --- from structs --- */

static void put_ints(struct json_writer *w, const int64_t *numbers, size_t count)
{
    jw_array(w);
    for (size_t i = 0; i < count; i++)
        jw_int(w, numbers[i]);
    jw_end_array(w);
}

static void put_value(struct task *t, struct json_writer *w, const struct api_field *f,
                      const void *at)
{
    const int64_t *number = at;
    switch (f->type) {
    case API_TEXT:
        jw_str(w, *(const struct str *)at);
        break;
    case API_INT:
        put_known(w, !f->optional || *number >= f->least, *number);
        break;
    case API_BOOL:
        jw_bool(w, *(const bool *)at);
        break;
    case API_MONEY:
        jw_str(w, amount_decimal(task_arena(t), *number));
        break;
    case API_TIME:
        put_time(w, *number);
        break;
    case API_INTS:
        put_ints(w, number, f->bytes / sizeof *number);
        break;
    case API_OBJECT:
        jw_object(w);
        api_put_fields(t, w, f->fields, at);
        jw_end_object(w);
        break;
    default:
        check(false); /* api_check_route */
    }
}

void api_put_fields(struct task *t, struct json_writer *w, const struct api_field *fields,
                    const void *from)
{
    for (const struct api_field *f = fields; f->name; f++) {
        if (!f->bytes)
            continue;
        jw_key(w, str_of(f->name));
        put_value(t, w, f, (const char *)from + f->at);
    }
}

void api_put_items(struct task *t, struct json_writer *w, const char *name,
                   const struct api_field *fields, const void *items, size_t count, size_t bytes)
{
    jw_key(w, str_of(name));
    jw_array(w);
    for (size_t i = 0; i < count; i++) {
        jw_object(w);
        api_put_fields(t, w, fields, (const char *)items + i * bytes);
        jw_end_object(w);
    }
    jw_end_array(w);
}
