/* prompt.h -- the request that the chat service gets for a paper.
 *
 * What is the same for all papers of a run comes first, so that prefix caches of providers work. */
#ifndef ENGINE_JUDGE_PROMPT_H
#define ENGINE_JUDGE_PROMPT_H

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "engine/judge/judge.h"

#define PROMPT_FILE_BYTES_MAX     (64 * 1024)
#define PROMPT_QUESTION_CHARS_MAX 4000 /* these three: more is cut */
#define PROMPT_TITLE_BYTES_MAX    2000
#define PROMPT_ABSTRACT_BYTES_MAX 20000

/* The parts of a system message before and after the question. */
struct prompt {
    struct str before, after;
};

/* ai.prompt_file, or the built-in text if path is "". Lives in a. ERR_INVALID, ERR_IO with *why (in
 * a). */
MUST_CHECK int prompt_load(struct arena *a, const char *path, struct prompt *out, const char **why);

/* Of a text with one {{question}} in it, which *out borrows. ERR_INVALID: it is none. */
MUST_CHECK int prompt_read(struct str text, struct prompt *out);

/* The members of the request besides the messages. */
struct json;
struct prompt_model {
    const char *name;
    int64_t temperature_milli, max_tokens;
    const struct json *params; /* replace and add members; null removes one. NULL: none */
};

/* Writes them. messages follow. */
struct json_writer;
void prompt_put_members(struct json_writer *w, const struct prompt_model *m);
/* What an answer may have, by whatever name the service knows it. */
int64_t prompt_answer_tokens(const struct prompt_model *m);

/* What is the same for all papers of a run. */
struct judge_question {
    struct str head; /* a request, as JSON, up to where the paper begins */
    int64_t tokens;  /* of head and of the answer, estimated */
    struct judge_origin origin;
};
/* Without its origin. */
struct judge_question *prompt_question(struct arena *a, const struct prompt *p,
                                       const struct prompt_model *m, struct str question);

struct prompt_paper {
    struct str doi, title, abstract; /* as doi.h and text.h give them; the last two may be absent */
};
/* Appends the whole request. Returns the tokens that it may use, estimated a bit too high. */
int64_t prompt_write(const struct judge_question *q, const struct prompt_paper *p, struct buf *out);
#endif
