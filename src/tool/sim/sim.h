/* sim.h -- the simulated AI: a server that speaks OpenAI's chat completions and embeddings,
 * judges papers by a fixed rule, makes plans, finds fields in documents, and fails on demand.
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
 *   6. A message with these lines asks for a plan instead, and gets one as JSON:
 *
 *          Plan: training
 *          Start date: 2026-01-31
 *          Weeks: 4
 *
 *      or `Plan: nutrition`. The same message gets the same plan. Some plans are wrong
 *      (--plan-fault), until there is a complaint: any message after this one, or a line
 *      `Complaint: …` in it. With --plan-fault-stays they are wrong for ever.
 *   7. A system message whose first line begins with `Extract:` asks for fields of a document. Its
 *      lines that begin with {"name" are the fields, as templates have them; the user message has
 *      the document between borders:
 *
 *          Extract: fields of a document
 *          {"name": "dose", "type": "number", "unit": "mg", "required": true}
 *          {"name": "drugs", "type": "list", "of": "text"}
 *
 *          <<<DOCUMENT
 *          The dose was 5.2 mg. Drugs: aspirin, placebo.
 *          DOCUMENT<<<
 *
 *      The value of a field is what follows its name (in either case, as whole words) and one of
 *      `:` `：` is, was, are, were, 是, 为, up to the end of the sentence or line, of the first such
 *      sentence whose value has the type of the field: "5.2 mg" for dose. The sentence is the
 *      quote: "The dose was 5.2 mg". Items of a list are between commas, 、 or "and". What is not
 *      found is null, and a list []. Values are texts as they stand in the document, or with a
 *      response_format JSON of their types: 5.2. A line `Complaint: …` behind the document is
 *      noticed, and changes nothing but faults: some answers are wrong (--extract-fault), until
 *      there is a complaint. Which ones, and how, depends on fields and document alone.
 *
 * Embeddings have 256 dimensions, 768 if the model's name ends with "-768", or as many as the
 * request says; texts that share words and pairs of words are near each other (sim_embed.h). Up to
 * 2,048 texts, each of up to 8,192 tokens. Some replies are wrong (--embed-fault), by the number of
 * the request: asked again, it may be right.
 *
 * A request with "stream": true gets its answer as events, spread over the time to answer.
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

#define SIM_BODY_BYTES_MAX (8 * 1024 * 1024)

struct sim_options {
    const char *listen;
    int64_t latency_ms, jitter_ms;
    int64_t stall_ms;      /* how long FAULT_TIMEOUT sends nothing */
    int64_t retry_after_s; /* what FAULT_LIMITED asks for */
    struct sim_limit limit;
    struct sim_faults faults;
    struct sim_plan_faults plan_faults;
    struct sim_extract_faults extract_faults;
    struct sim_faults embed_faults; /* kinds are those of sim_embeddings.h */
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
