/* pdf.h -- PDFs for tests, written object by object: good ones, and such that are meant to harm. */
#ifndef TESTS_PDF_H
#define TESTS_PDF_H

#include "base/buf.h"

#define PDF_OBJECTS_MAX 40000

struct pdf {
    struct buf out;
    size_t count;
    size_t at[PDF_OBJECTS_MAX + 1]; /* where each object begins */
};

/* Objects are numbered from 1 in the order in which they are added. By convention 1 is the
 * catalog, 2 the root of the pages, 3 a font called F1. */
struct pdf *pdf_new(void);
void pdf_free(struct pdf *p);
void pdf_object(struct pdf *p, const char *fmt, ...) PRINTF(2, 3);
void pdf_stream(struct pdf *p, const char *dict, struct str bytes); /* dict: its other members */
/* Writes the table of objects and the trailer with more members; the whole file, until pdf_free. */
struct str pdf_finish(struct pdf *p, const char *more);

void pdf_page(struct pdf *p, struct str content); /* a page and its content: two objects */
/* A file of so many pages with a line of text each: "page 1: TEXT". */
struct pdf *pdf_pages(size_t pages, const char *text);
#endif
