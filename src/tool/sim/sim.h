/* sim.h -- the simulated AI: a server that speaks OpenAI's chat completions and embeddings,
 * judges papers by a fixed rule, and fails on demand.
 *
 * The format of a prompt:
 *
 *     Question: Which catalysts split water?
 *
 *     Title: Nickel catalysts in alkaline water
 *     Abstract: We report …
 *     DOI: 10.1000/182
 *
 *   1. Fields stand at the beginning of a line, in any order, in either case, with `:` or `：`:
 *      `Question`, `Title`, `Abstract`, `DOI`, or 问题, 标题, 摘要. A field lasts until the
 *      next label, an empty line or the end of the message.
 *   2. They are taken from the last user message; a question in the system (or developer)
 *      message outranks one there. The first line with a label counts, later ones are text:
 *      an abstract cannot change question or title, if those come before it.
 *   3. A paper is relevant when a word of its title or abstract is also a word of the
 *      question, and has four letters or more or is a pair of neighbouring Han characters.
 *      sim_words.h says what a word is. Words of the question that say nothing of a topic
 *      (stop words, such as "about") do not count.
 *   4. A DOI with a label (--labels) has that verdict, independent of the words.
 *   5. The answer is {"relevant": true, "reason": "…"}, the reason at most 200 characters,
 *      naming the word found. A prompt without question or paper is echoed: as text, or as
 *      {"text": "…"} where response_format asks for JSON.
 *
 * A request costs sim_tokens() of every message and of the answer. Both are known before anything
 * is sent, so that limits are exact: a request over them gets 429 and is not counted. A fault comes
 * after the limits: a request that fails has used its place in the window. */
#ifndef TOOL_SIM_H
#define TOOL_SIM_H

#include "loop/sync.h"
#include "tool/sim/sim_chat.h"
#include "tool/sim/sim_fault.h"
#include "tool/sim/sim_limit.h"
#include "tool/sim/sim_stats.h"

struct http_server;
struct map;

#define SIM_BODY_BYTES_MAX    (8 * 1024 * 1024)
#define SIM_EMBED_INPUTS_MAX  2048
#define SIM_EMBED_NUMBERS_MAX (1024 * 1024) /* inputs times dimensions */

struct sim_options {
    const char *listen;
    int64_t latency_ms, jitter_ms;
    int64_t stall_ms;      /* how long FAULT_TIMEOUT sends nothing */
    int64_t retry_after_s; /* what FAULT_LIMITED asks for */
    struct sim_limit limit;
    struct sim_faults faults;
    bool http1;                     /* only */
    const char *tls_cert, *tls_key; /* PEM files; NULL: plain HTTP */
    int64_t tls_handshake_ms;       /* how much longer each handshake takes */
};

struct sim {
    struct sim_options options;
    struct map *labels; /* NULL: none */
    struct map *keys;   /* those accepted; NULL: any */
    struct sim_stats stats;
    uint64_t count;         /* requests so far; a fault depends on the number */
    struct waitq quit;      /* stalled requests wait here; woken by a drain */
    struct sim_brief brief; /* of the last chat; not used across a wait */
    struct buf content;     /* scratch, likewise */
};

/* Adds the routes; the server borrows s. */
void sim_routes(struct http_server *server, struct sim *s);
#endif
