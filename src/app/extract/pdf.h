/* pdf.h -- the text of a PDF, by a program or a service that is not trusted.
 *
 * By default pdftotext (Debian: poppler-utils) reads the file from its standard input, in a sandbox
 * (loop/process.h) without network, without files but those of /usr, within limits of time, memory,
 * pages and output. The setting extract.pdf_command names another program, which runs in the same
 * sandbox; extract.pdf_url a service that the file is posted to.
 *
 * Always true:
 *   - the text is valid UTF-8 without NUL; a form feed ends each page, where the parser says where
 *     that is;
 *   - a document is read whole or not at all: one with too many pages is refused, not cut;
 *   - what is wrong with a document is ERR_INVALID with a sentence for its owner (task_error): a
 *     repeat would end the same way. What is wrong with this machine or the service is
 *     ERR_UNAVAILABLE with a sentence for the operator; a repeat can succeed. */
#ifndef APP_EXTRACT_PDF_H
#define APP_EXTRACT_PDF_H

#include "base/str.h"
#include "loop/task.h"

struct config;

#define PDF_TEXT_BYTES_MAX (20 * 1024 * 1024)

struct pdf_options {
    const char *command; /* a program and its arguments, separated by blanks; "": pdftotext */
    const char *url;     /* instead of a program; "": none */
    int64_t seconds, memory_mb, pages; /* limits */
};

struct pdf_options pdf_options(const struct config *c);

bool pdf_is(struct str file); /* whether it begins as a PDF does */

/* What is wrong with a document, by a word for programs. */
#define PDF_NONE      "not_pdf"
#define PDF_LOCKED    "pdf_locked"  /* by a password */
#define PDF_DAMAGED   "pdf_damaged" /* the program cannot read it */
#define PDF_PAGES     "pdf_pages"   /* more than the limit */
#define PDF_TIME      "pdf_time"
#define PDF_MEMORY    "pdf_memory"
#define PDF_MUCH_TEXT "too_much_text" /* more than PDF_TEXT_BYTES_MAX */
#define PDF_NO_TEXT   "no_text"       /* its pages may be images */
#define PDF_REASONS                                                                                \
    PDF_NONE "|" PDF_LOCKED "|" PDF_DAMAGED "|" PDF_PAGES "|" PDF_TIME "|" PDF_MEMORY              \
             "|" PDF_MUCH_TEXT "|" PDF_NO_TEXT
/* What is wrong with this machine or the service, for whatever waits. */
#define PDF_READER "pdf_reader"
const char *pdf_reason(struct str word); /* the one of PDF_REASONS; NULL: there is none */

/* The text of a PDF, in the task's arena, and its number of pages (at least 1). file is borrowed.
 * ERR_INVALID: see above, and *reason is one of PDF_REASONS. ERR_UNAVAILABLE: see above.
 * ERR_TIMEOUT, ERR_CANCELED: the task's own. */
MUST_CHECK int pdf_text(struct task *t, const struct pdf_options *o, struct str file,
                        struct str *text, int64_t *pages, const char **reason);
#endif
