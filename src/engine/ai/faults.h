/* faults.h -- how calls to an AI service fail, by kind: for metrics, the log and the overview.
 *
 * Kinds: proxy, dns, refused (the connection), tls, unreachable, timeout, cut, status_3xx,
 * status_4xx, status_5xx, unreadable (a reply), no_key, and other for what has another name. A kind
 * is logged when it begins and then once a minute, with the words of its last call. */
#ifndef ENGINE_AI_FAULTS_H
#define ENGINE_AI_FAULTS_H

#include "base/metrics.h"
#include "base/str.h"

struct ai_faults;
struct task;

#define AI_FAULTS_LATELY_MS   60000 /* what counts as lately */
#define AI_FAULTS_WORDS_BYTES 200
#define AI_FAULTS_METRIC      "millrace_ai_errors_total"

/* The kind of a call without a reply. err and text: of http_call and its task_error, or of a
 * message that ends with that text. */
const char *ai_fault_kind(int err, const char *text);

struct ai_faults *ai_faults_new(struct metrics *m, const char *service); /* of service.h */
void ai_faults_free(struct ai_faults *f);

/* A call has failed. kind: as above; "status_503" and "reply" are understood, too. words: the
 * cause, without secrets; may be NULL. Does not wait. f may be NULL: nothing is counted. */
void ai_faults_note(struct ai_faults *f, struct task *t, const char *kind, const char *words);

/* Those of this node that were noted lately, of all these services, NULLs left out:
 * [{"service", "kind", "count", "at_ms", "words"}], in the task's arena. */
struct str ai_faults_json(struct task *t, const struct ai_faults *const *services, size_t count);
#endif
