#include "engine/money/result.h"

#include <string.h>

#include "base/json.h"

/* The member that has the words. */
static const char *reason_name(const struct result *r)
{
    return r->outcome != OUTCOME_FAILED ? "reason"
           : r->not_judged              ? "not_judged"
           : r->withdrawn               ? "withdrawn"
                                        : "error";
}

static void write_verdict(struct json_writer *w, const struct result *r)
{
    jw_object(w);
    if (r->outcome != OUTCOME_FAILED)
        jw_put_bool(w, "relevant", r->outcome == OUTCOME_HIT);
    jw_key(w, str_of(reason_name(r)));
    jw_str(w, r->reason);
    if (r->simulated)
        jw_put_bool(w, "simulated", true);
    jw_end_object(w);
}

void result_write(struct buf *out, const struct result *r)
{
    struct json_writer w;
    jw_init(&w, out);
    jw_object(&w);
    jw_key(&w, STR("ai_result"));
    write_verdict(&w, r);
    jw_put_str(&w, "block_key", r->block_key);
    jw_end_object(&w);
}

void result_write_verdict(struct buf *out, const struct result *r)
{
    struct json_writer w;
    jw_init(&w, out);
    write_verdict(&w, r);
}

static struct result of_json(struct str block_key, const struct json *verdict)
{
    struct result r = {.block_key = block_key, .outcome = OUTCOME_FAILED};
    bool relevant;
    if (json_bool(json_get(verdict, "relevant"), &relevant))
        r.outcome = relevant ? OUTCOME_HIT : OUTCOME_MISS;
    bool failed = r.outcome == OUTCOME_FAILED;
    r.not_judged = failed && json_get(verdict, "not_judged");
    r.withdrawn = failed && !r.not_judged && json_get(verdict, "withdrawn");
    r.simulated = json_bool(json_get(verdict, "simulated"), &r.simulated) && r.simulated;
    r.reason = json_str(json_get(verdict, reason_name(&r)));
    if (!r.reason.p)
        r.reason = STR("");
    return r;
}

int result_read(struct arena *a, struct str json, struct result *out)
{
    const struct json *j;
    if (json_parse(a, json, &j, NULL))
        return ERR_PROTO;
    struct str block_key = json_str(json_get(j, "block_key"));
    if (!block_key.p)
        return ERR_PROTO;
    *out = of_json(block_key, json_get(j, "ai_result"));
    return 0;
}

/* result_write puts block_key last. Within a string of JSON its quotes would be escaped. */
struct str result_verdict_text(struct arena *a, struct str json, const struct result *r)
{
    const struct str head = STR("{\"ai_result\":"), next = STR(",\"block_key\":\"");
    const char *end = str_starts(json, head) ? memmem(json.p, json.n, next.p, next.n) : NULL;
    if (end)
        return str_dup(a, str_from(json.p + head.n, (size_t)(end - json.p) - head.n));
    struct buf b;
    buf_init(&b);
    result_write_verdict(&b, r);
    struct str text = str_dup(a, buf_str(&b));
    buf_release(&b);
    return text;
}

int result_read_columns(struct arena *a, struct str block_key, struct str ai_result,
                        struct result *out)
{
    const struct json *j = NULL;
    if (ai_result.p && json_parse(a, ai_result, &j, NULL))
        return ERR_PROTO;
    *out = of_json(block_key, j);
    return 0;
}
