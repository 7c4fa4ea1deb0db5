#include "engine/ai/faults.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/json.h"
#include "base/log.h"
#include "engine/ai/service.h"
#include "loop/task.h"

#define BUCKETS   12
#define BUCKET_MS (AI_FAULTS_LATELY_MS / BUCKETS)

/* --- the kind of a failed call --- */

/* In this order: a proxy fails in ways that a service does, too, and the text of a TLS error may
 * speak of time. */
static const struct {
    const char *said, *kind;
} causes[] = {
    {"the proxy ", "proxy"},
    {"cannot find ", "dns"},
    {"TLS: ", "tls"},
    {"Connection refused", "refused"},
    {"in time", "timeout"},
    {"timed out", "timeout"},
    {"connection was lost", "cut"},
    {"connection was closed", "cut"},
    {"Connection reset", "cut"},
    {"connections end before a reply", "cut"},
};

const char *ai_fault_kind(int err, const char *text)
{
    if (err == ERR_TIMEOUT)
        return "timeout";
    if (err == ERR_UNCERTAIN)
        return "cut";
    if (err == ERR_PROTO || err == ERR_LIMIT)
        return "unreadable";
    for (size_t i = 0; i < sizeof causes / sizeof *causes; i++)
        if (strstr(text, causes[i].said))
            return causes[i].kind;
    return "other";
}

/* --- counted --- */

static const char *const kinds[] = {
    "proxy",      "dns",        "refused",    "tls",        "unreachable", "timeout", "cut",
    "status_3xx", "status_4xx", "status_5xx", "unreadable", "no_key",      "other"};
#define KINDS (sizeof kinds / sizeof *kinds)

struct fault {
    int64_t *metric;
    int64_t buckets[BUCKETS], bucket_of[BUCKETS]; /* calls; in which BUCKET_MS since the start */
    int64_t at_ms;                                /* the last one, since 1970 */
    int64_t logged_ms;                            /* of the loop; -1: never */
    int64_t unlogged;                             /* calls since then */
    char words[AI_FAULTS_WORDS_BYTES];
};

struct ai_faults {
    const char *service; /* of service.h */
    struct fault faults[KINDS];
};

struct ai_faults *ai_faults_new(struct metrics *m, const char *service)
{
    struct ai_faults *f = check_memory(calloc(1, sizeof *f));
    f->service = service;
    for (size_t i = 0; i < KINDS; i++) {
        char labels[80], before[40] = "";
        if (!ai_is_chat(service))
            snprintf(before, sizeof before, "service=\"%s\",", service);
        snprintf(labels, sizeof labels, "%skind=\"%s\"", before, kinds[i]);
        f->faults[i].metric = metric(m, METRIC_COUNTER, AI_FAULTS_METRIC, labels,
                                     "Calls to the AI service that failed, by kind.");
        f->faults[i].logged_ms = -1;
    }
    return f;
}

void ai_faults_free(struct ai_faults *f)
{
    free(f);
}

/* The number of metrics is bounded, so statuses are told by their class. */
static size_t number_of(const char *kind)
{
    char name[sizeof "status_4xx"];
    int status = 0;
    if (sscanf(kind, "status_%3d", &status) == 1 && status >= 100 && status <= 599)
        snprintf(name, sizeof name, "status_%dxx", status / 100 % 10);
    else
        snprintf(name, sizeof name, "%s", strcmp(kind, "reply") == 0 ? "unreadable" : kind);
    for (size_t i = 0; i + 1 < KINDS; i++)
        if (strcmp(name, kinds[i]) == 0)
            return i;
    return KINDS - 1;
}

static void log_kind(const struct ai_faults *f, struct fault *x, const char *kind, int64_t now_ms)
{
    x->unlogged++;
    if (x->logged_ms >= 0 && now_ms - x->logged_ms < AI_FAULTS_LATELY_MS)
        return;
    log_warn("ai",
             "calls to %s fail (%s), %lld since the last such line: %s; what they are about is "
             "asked again",
             ai_service_words(f->service), kind, (long long)x->unlogged,
             *x->words ? x->words : "no words");
    x->logged_ms = now_ms;
    x->unlogged = 0;
}

void ai_faults_note(struct ai_faults *f, struct task *t, const char *kind, const char *words)
{
    if (!f)
        return;
    size_t i = number_of(kind);
    struct fault *x = &f->faults[i];
    int64_t now_ms = loop_now_ms(task_loop(t)), bucket = now_ms / BUCKET_MS;
    size_t slot = (size_t)(bucket % BUCKETS);
    if (x->bucket_of[slot] != bucket)
        x->buckets[slot] = 0;
    x->bucket_of[slot] = bucket;
    x->buckets[slot]++;
    x->at_ms = loop_wall_ms(task_loop(t));
    snprintf(x->words, sizeof x->words, "%s", words ? words : "");
    metric_add(x->metric, 1);
    log_kind(f, x, kind, now_ms);
}

static int64_t lately(const struct fault *x, int64_t now_ms)
{
    int64_t sum = 0;
    for (size_t i = 0; i < BUCKETS; i++)
        if (x->bucket_of[i] > now_ms / BUCKET_MS - BUCKETS)
            sum += x->buckets[i];
    return sum;
}

static void write_lately(struct json_writer *w, const struct ai_faults *f, int64_t now_ms)
{
    for (size_t i = 0; i < KINDS; i++) {
        const struct fault *x = &f->faults[i];
        int64_t count = lately(x, now_ms);
        if (count == 0)
            continue;
        jw_object(w);
        jw_put_str(w, "service", str_of(f->service));
        jw_put_str(w, "kind", str_of(kinds[i]));
        jw_put_int(w, "count", count);
        jw_put_int(w, "at_ms", x->at_ms);
        jw_put_str(w, "words", str_of(x->words));
        jw_end_object(w);
    }
}

struct str ai_faults_json(struct task *t, const struct ai_faults *const *services, size_t count)
{
    struct buf b;
    struct json_writer w;
    buf_init(&b);
    jw_init(&w, &b);
    jw_array(&w);
    for (size_t i = 0; i < count; i++)
        if (services[i])
            write_lately(&w, services[i], loop_now_ms(task_loop(t)));
    jw_end_array(&w);
    struct str json = str_dup(task_arena(t), buf_str(&b));
    buf_release(&b);
    return json;
}
