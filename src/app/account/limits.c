#include "app/account/limits.h"

#include "engine/jobs/limits.h"

struct limit_row {
    struct str kind, period;
    int64_t used, limit; /* -1: not known; none */
    int64_t ends_ms;
};

static const struct api_field row_fields[] = {
    {"kind", API_TEXT, .choices = LIMIT_KIND_NAMES, .about = "what is started",
     API_AT(struct limit_row, kind)},
    {"period", API_TEXT, .choices = LIMIT_PERIOD_NAMES, .about = "of the calendar, UTC",
     API_AT(struct limit_row, period)},
    {"used", API_INT, .optional = true, .most = INT32_MAX,
     .about = "started in this period; null: not known now", API_AT(struct limit_row, used)},
    {"limit", API_INT, .optional = true, .most = INT32_MAX,
     .about = "at most so many; null: any number", API_AT(struct limit_row, limit)},
    {"ends", API_TIME, .optional = true, .about = "when the period ends; null: not known now",
     API_AT(struct limit_row, ends_ms)},
    API_END,
};

const struct api_field account_limits_reply[] = {
    {"limits", API_OBJECTS, .fields = row_fields, .about = "by kind, then period"},
    API_END,
};

static void fill(struct limit_row *rows, const struct limits *l, enum limit_kind kind,
                 const struct limit_look *looks)
{
    for (size_t p = 0; p < LIMIT_PERIODS; p++) {
        int64_t most = limit_most(l, kind, (enum limit_period)p);
        rows[p] = (struct limit_row){.kind = str_of(limit_kind_name(kind)),
                                     .period = str_of(limit_period_name((enum limit_period)p)),
                                     .used = looks ? looks[p].used : -1,
                                     .limit = most ? most : -1,
                                     .ends_ms = looks ? looks[p].ends_ms : 0};
    }
}

int account_limits(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct limit_row rows[LIMIT_KINDS * LIMIT_PERIODS];
    struct limits *l = c->node->limits;
    for (size_t k = 0; k < LIMIT_KINDS; k++) {
        struct limit_look looks[LIMIT_PERIODS];
        enum limit_kind kind = (enum limit_kind)k;
        int err = c->degraded ? ERR_UNAVAILABLE : limit_look(t, l, c->session.uid, kind, looks);
        if (err && !cache_goes_on(t))
            return err;
        c->degraded = c->degraded || err; /* the limits themselves are known all the same */
        fill(rows + k * LIMIT_PERIODS, l, kind, err ? NULL : looks);
    }
    api_put_list(t, w, "limits", row_fields, rows, sizeof rows / sizeof *rows);
    return 0;
}
