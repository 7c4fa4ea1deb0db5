/* ai.h -- asks a service that speaks OpenAI's HTTP API: one call, for whatever is asked (SCR-11).
 *
 * A struct ai is one service: chat completions, embeddings. The caller writes the request and reads
 * the reply; permits, retries, refused keys and HTTP are here. Knows nothing of papers, prompts,
 * runs and money.
 *
 * A call needs a permit of the service's keys (permits.h), and waits for it; afterwards the permit
 * is settled with the tokens that were used. What goes wrong has one of four faults:
 *   - the service's: it cannot be reached, cuts the connection, is silent, cannot be read, answers
 *     with 402, 404, 408, 429, 5xx or what is unheard of. Tried again with exponential backoff and
 *     jitter. While no call succeeds the breaker opens (breaker.h), and calls wait.
 *   - the request's, if the service has answered others between AI_ATTEMPTS_MAX such attempts.
 *   - the request's: 400, 413, 422. Final, in the words of the service.
 *   - the key's: 401, 403. Another key is tried at once; without any, calls wait for one.
 * A redirect is named and never followed. No key is in a log line or a message. */
#ifndef ENGINE_AI_AI_H
#define ENGINE_AI_AI_H

#include "base/buf.h"
#include "base/metrics.h"
#include "base/str.h"
#include "engine/ai/service.h"
#include "loop/task.h"

struct ai;
struct ai_faults;
struct http_client;
struct permits;

#define AI_ATTEMPTS_MAX 4

struct ai_options {
    const char *service;        /* AI_CHAT, AI_EMBEDDING */
    const char *url, *path;     /* base address, and what follows its path; copied */
    const char *headers;        /* more of them, and the header of the key, as endpoint.h has */
    const char *key_header;     /* them; NULL: none, and Authorization. Copied */
    int64_t timeout_ms;         /* of one attempt */
    size_t reply_bytes_max;     /* 0: AI_REPLY_BYTES_MAX */
    struct http_client *client; /* this and all below borrowed */
    struct permits *permits;    /* of this service */
    struct metrics *metrics;    /* calls by outcome, tokens, latency */
    struct ai_faults *faults;   /* calls that fail, by kind; NULL: not counted */
};
/* NULL: url is empty, there is no such service. */
struct ai *ai_new(const struct ai_options *o);
void ai_free(struct ai *ai);

/* What is asked. Both functions are called for each attempt. */
struct ai_request {
    /* The body, into *body, and the tokens that the request may use at most. body is shared by all
     * requests of the service, so that nothing of a request is held while the service thinks: waits
     * come first, then buf_clear(body), then no wait until the return. Other than 0 ends the call
     * with that error. */
    int (*write)(struct task *t, void *arg, struct buf *body, int64_t *tokens);
    /* The body of a reply with status 200 to 299. *tokens_used is -1, and stays so if the reply
     * does not tell. ERR_PROTO: it cannot be read, and the service is asked again; task_error
     * completes "the service sent …". No other errors. */
    int (*read)(struct task *t, void *arg, struct str body, int64_t *tokens_used);
    void *arg;
    /* If set, the reply is asked for as a stream, and this sees the text of the answer as far as it
     * has come, each time it has grown: from its beginning, without the thoughts that have members
     * of their own. May be called on the loop's stack: must not wait, nor take long. A further
     * attempt begins with a shorter text. write writes the request as ever, an object, and "stream"
     * is added to it; read gets the whole reply as ever. A service that does not stream works, too:
     * then nothing is seen. The timeout of an attempt counts from the last event, so that a long
     * answer may take longer than a short one; the task's deadline bounds it all. */
    void (*seen)(void *arg, struct str text);
    /* It asks for another model than the settings do, which the service need not have any more: a
     * 404 refuses this request, and says nothing about the service. */
    bool other_model;
    /* Whose call it is, and whether that may ask now: &ai_for_run, for workers of a run, which are
     * claimed before they begin; else of a job, struct job.asks (engine/jobs/jobs.h), whose permits
     * are of the jobs' share (permits.h). A job that asks without its claim is a mistake of its
     * function, or of its kind, and stops the process at its first call. */
    const bool *asks;
};
extern const bool ai_for_run; /* true */

struct ai_answer {
    int64_t tokens;     /* of all attempts; what was reserved, where the service did not tell */
    int64_t latency_us; /* of the last attempt, without the wait for its permit */
    int attempts;       /* refused keys do not count */
};

/* How a caller and its owner come to terms. */
struct ai_hand {
    bool busy;   /* a call is under way, or was answered: to cancel the task wastes an answer */
    bool leaves; /* set by the owner: no further attempt begins */
};

/* 0: read was content, *out is filled. ERR_CANCELED: the task was, or it leaves. ERR_TIMEOUT: its
 * own deadline passed. ERR_UNAVAILABLE: the service does not work, as far as this call could see;
 * another request should be asked first, then this one again, which waits until it is worth a try.
 * ERR_REFUSED: the service refuses the request. ERR_PROTO: it answers others, and not this one.
 * With these three task_error says why in a few words for the user. Replies lie in the task's
 * arena: ask each question in a scope of its own. */
MUST_CHECK int ai_ask(struct task *t, struct ai *ai, const struct ai_request *q,
                      struct ai_hand *hand, struct ai_answer *out);

/* What is wrong: cause is one of few words ("unreachable", "timeout", "status_500"), words are for
 * an operator. */
struct ai_fault {
    char cause[24], words[200];
};

/* The service as this node sees it. fault is what was wrong last. */
struct ai_state {
    bool open; /* it does not work: calls wait */
    int64_t since_ms, successes;
    const struct ai_fault *fault;
};
struct ai_state ai_state(const struct ai *ai, int64_t now_ms);
/* What err means for the document of a job: ERR_TIMEOUT while the service does not work becomes
 * ERR_UNAVAILABLE, with what is wrong with the service; that was no try of the document. Others
 * stay as they are. ai may be NULL. */
MUST_CHECK int ai_job_error(struct task *t, const struct ai *ai, int err);

/* One call with this key: no permit, no second attempt. Errors are those of http_call; task_error
 * names the cause. body as body_fn of struct http_call. */
struct http_response;
MUST_CHECK int ai_call(struct task *t, const struct ai *ai, struct str api_key,
                       int (*body)(struct task *t, void *arg, struct str *out), void *arg,
                       struct http_response *r);
const char *ai_url(const struct ai *ai); /* that is called */
/* Where a redirect points to, in the task's arena: scheme and host, or a path of the same host. */
struct str ai_redirect_target(struct task *t, const struct http_response *r);

/* Moving averages over the last successful calls that were not streamed; 0 before the first. */
void ai_averages(const struct ai *ai, int64_t *latency_us, int64_t *tokens);
#endif
