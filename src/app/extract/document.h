/* document.h -- files that users upload, and the text in them.
 *
 * Owns tables document and document_piece: the file, in pieces of at most 1 MB, and its text as
 * UTF-8. Nothing is on a node's disk, and an upload is never in memory as a whole (text that is not
 * UTF-8 excepted, one at a time per node: all of its bytes tell which encoding it is in).
 *
 * The life of a document:
 *
 *   1. Upload. A row without stored_at; then pieces as they come. A client that leaves, and any
 *      other failure, has them removed at once; what a dead node leaves is removed after an hour.
 *      The last step, one transaction, compares quota and digest: the same bytes again are the
 *      same document, with the name that it had.
 *   2. Text. Text and Markdown have it from step 1 on. A PDF is parsed when its text is first asked
 *      for, once: the result is stored, and a file whose own fault it is that there is no text
 *      (ERR_INVALID) is never parsed again. Two nodes that parse at the same time get the same
 *      result: the first one stored.
 *   3. Deletion. The document is listed and found no more, and its bytes do not count for the quota
 *      any more. If no task has it, all of its pieces go; else (documents_use) the text stays for
 *      its tasks, and the file until its text is known. So a deletion is never refused, and a task
 *      never loses a document that it has begun with.
 *
 * An id of another user is ERR_NOT_FOUND. */
#ifndef APP_EXTRACT_DOCUMENT_H
#define APP_EXTRACT_DOCUMENT_H

#include "base/err.h"
#include "base/str.h"
#include "engine/store/role.h"

struct documents;
struct http_exchange;
struct node;
struct sql;
struct task;

#define DOCUMENT_PIECE_BYTES    (1 << 20)
#define DOCUMENT_NAME_CHARS     255
#define DOCUMENT_ID_CHARS       64
#define DOCUMENT_BYTES_MAX      (INT64_C(200) << 20) /* extract.document_mb is at most this */
#define DOCUMENT_UPLOADS_MAX    32                   /* of one user at the same time */
#define DOCUMENTS_MAX           100000               /* of one user */
#define DOCUMENT_PAGE_MAX       1000
#define DOCUMENTS_AT_ONCE_MAX   10000 /* in documents_find */
#define DOCUMENT_MEDIA          "text/plain|text/markdown|application/pdf"
#define DOCUMENTS_SWEEP_EACH_MS 2000

struct document {
    struct str id, name, media;
    int64_t number; /* later ones are larger */
    int64_t bytes;
    int64_t text_bytes;    /* 0: not known yet, or there is none */
    struct str text_error; /* why there is none; p == NULL: there is, or it is not known yet */
    struct str text_code;  /* the same by a word of PDF_REASONS */
    int64_t pages;         /* of a PDF whose text is known; else 0 */
    int64_t used;          /* a task has it: its text stays */
    int64_t created_ms;
};

/* What a node holds: texts that are being taken out of PDFs. Borrows n. */
struct documents *documents_new(struct node *n);
void documents_free(struct documents *d);

/* --- uploads --- */

/* Reads the body of x and stores it. name as the client gave it; its last part is kept, without
 * control characters. *again: the user has had these bytes before. ERR_INVALID: empty, or neither
 * text nor PDF. ERR_LIMIT: larger than extract.document_mb. ERR_CONFLICT: extract.user_mb are full.
 * ERR_RATE: DOCUMENT_UPLOADS_MAX. */
MUST_CHECK int document_upload(struct task *t, struct node *n, int64_t uid, struct str name,
                               struct http_exchange *x, struct document *out, bool *again);

/* --- reading --- */

/* ERR_NOT_FOUND: the user has no such document (any more). */
MUST_CHECK int document_get(struct task *t, struct node *n, int64_t uid, struct str id,
                            struct document *out);
struct document_list {
    struct document *list; /* the newest first */
    size_t count;
    int64_t next;       /* number to go on below; 0: nothing more */
    int64_t bytes_used; /* of all documents of the user, uploads under way, too */
};
MUST_CHECK int document_page(struct task *t, struct node *n, int64_t uid, int64_t below,
                             int64_t limit, struct document_list *out);
/* In the order of ids, which may repeat. ERR_NOT_FOUND names the first that is not there. */
MUST_CHECK int documents_find(struct task *t, struct node *n, int64_t uid, const struct str *ids,
                              size_t count, struct document *out);
/* In the transaction that makes a task of them, as they were found: from now on their texts stay.
 * They differ from each other. ERR_NOT_FOUND: one that no task had was deleted since. */
MUST_CHECK int documents_use(struct task *t, struct sql *c, int64_t uid,
                             const struct document *list, size_t count);

/* The text, in the task's arena; valid UTF-8. Parses a PDF and stores its text if no task has done
 * so. Also of a deleted document that a task has. ERR_INVALID: the file has none, the text says
 * why, and *reason by a word (PDF_REASONS of pdf.h); ERR_NOT_FOUND; other errors may pass
 * (*reason: PDF_READER, or NULL). */
MUST_CHECK int document_text(struct task *t, struct node *n, int64_t uid, struct str id,
                             struct str *text, const char **reason);
/* The same in pieces of at most DOCUMENT_PIECE_BYTES, each valid UTF-8. fn may wait; other than 0
 * ends it. */
typedef int document_piece_fn(struct task *t, struct str piece, void *arg);
MUST_CHECK int document_text_each(struct task *t, struct node *n, int64_t uid, struct str id,
                                  document_piece_fn *fn, void *arg);

/* --- deleting --- */

MUST_CHECK int document_delete(struct task *t, struct node *n, int64_t uid, struct str id);
role_fn documents_sweep_role; /* pieces that nothing needs; arg: a struct documents */
#endif
