/* prompt.h -- the chat request for one part of a document.
 *
 * The system message is the same for all documents of a task: instructions, fields, the form of the
 * answer. It comes first, so that prefix caches of providers work. The user message is the part
 * and, when the last answer could not be used, the complaint. tool/sim/sim.h has the format, which
 * the simulated AI reads.
 *
 * Always true: text of a document, of a template and of a complaint cannot pass for instructions.
 * The part stands between two lines with "<<<" in them, and "<<<" is found nowhere else in its
 * message: a blank is put into it where text has it. Fields are JSON, one in a line. */
#ifndef APP_EXTRACT_FIELDS_PROMPT_H
#define APP_EXTRACT_FIELDS_PROMPT_H

#include "app/extract/fields/template.h"
#include "base/buf.h"

struct prompt_model; /* engine/judge/prompt.h */

/* What is the same for all parts of all documents of a task. */
struct extract_question {
    struct str head; /* a request, as JSON, up to where the user message begins */
    struct str tail; /* what follows the user message: response_format, or nothing, and the end */
    int64_t tokens;  /* of head, tail, borders and the answer, estimated on the high side */
};
/* With json_schema the request has a response_format (strict mode) besides the words. In a. */
struct extract_question *extract_question(struct arena *a, const struct extract_template *x,
                                          const struct prompt_model *m, bool json_schema);

struct extract_asked {
    struct str text;       /* of the part */
    size_t number, count;  /* of the part, from 1, and how many there are */
    const char *complaint; /* about the last answer, as extract_reply_read gives it; NULL: none */
};
/* Appends the whole request. Returns the tokens that it may use, estimated on the high side. */
int64_t extract_prompt_write(const struct extract_question *q, const struct extract_asked *p,
                             struct buf *out);

/* The JSON schema of an answer: every member required, none besides, null where there may be no
 * value. */
void extract_schema_put(struct json_writer *w, const struct extract_template *x);
#endif
