/* document_private.h -- what the files of documents know of each other.
 *
 *   document.c         rows: found, listed, used, deleted, swept
 *   document_upload.c  from a request into pieces
 *   document_text.c    pieces, and the text of a PDF */
#ifndef APP_EXTRACT_DOCUMENT_PRIVATE_H
#define APP_EXTRACT_DOCUMENT_PRIVATE_H

#include "app/extract/document.h"
#include "base/map.h"
#include "engine/setup/node.h"
#include "loop/gather.h"
#include "loop/sync.h"
#include "wire/sql.h"

#define DOCUMENT_FILE  "file" /* kinds of pieces */
#define DOCUMENT_TEXT  "text"
#define DOCUMENT_ERROR 1000 /* bytes of text_error */

struct documents {
    struct node *node;
    struct map *parsing;    /* ids of PDFs that a task of this node takes the text of */
    struct waitq parsed;    /* one of them has ended */
    struct sem parses;      /* each holds a PDF in memory */
    struct sem conversions; /* each holds a text in memory, twice */
    struct gather looks;    /* texts that are wanted at the same time */
};

void document_texts_init(struct documents *d); /* document_text.c */
int document_none(struct task *t);             /* ERR_NOT_FOUND, with its text */
struct str document_clip(struct str s,
                         size_t n); /* at most n bytes, no half character at the end */

/* Pieces of one kind, in order. */
struct document_pieces {
    int64_t number;
    const char *kind;
    int64_t bytes; /* of all of them */
};
/* ERR_NOT_FOUND: one is gone, because the document was deleted. */
MUST_CHECK int document_pieces_each(struct task *t, struct sql_pool *sql,
                                    const struct document_pieces *p, document_piece_fn *fn,
                                    void *arg);
MUST_CHECK int document_pieces_read(struct task *t, struct sql_pool *sql,
                                    const struct document_pieces *p, struct str *out);
MUST_CHECK int document_piece_add(struct task *t, struct sql_pool *sql, int64_t number,
                                  const char *kind, int64_t place, struct str bytes);
/* In a transaction. text is valid UTF-8. */
MUST_CHECK int document_text_add(struct task *t, struct sql *c, int64_t number, struct str text);

/* Removes a row whose upload has not ended, and its pieces. */
MUST_CHECK int document_drop(struct task *t, struct sql_pool *sql, int64_t number);
#endif
