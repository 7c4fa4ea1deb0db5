#include "tests/pdf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct pdf *pdf_new(void)
{
    struct pdf *p = calloc(1, sizeof *p);
    check(p);
    buf_init(&p->out);
    buf_add_lit(&p->out, "%PDF-1.5\n");
    return p;
}

void pdf_free(struct pdf *p)
{
    buf_release(&p->out);
    free(p);
}

static void begin(struct pdf *p)
{
    check(p->count < PDF_OBJECTS_MAX);
    p->at[++p->count] = p->out.len;
    buf_printf(&p->out, "%zu 0 obj\n", p->count);
}

void pdf_object(struct pdf *p, const char *fmt, ...)
{
    struct arena a;
    va_list ap;
    arena_init(&a);
    begin(p);
    va_start(ap, fmt);
    buf_add_str(&p->out, str_of(arena_vprintf(&a, fmt, ap)));
    va_end(ap);
    buf_add_lit(&p->out, "\nendobj\n");
    arena_release(&a);
}

void pdf_stream(struct pdf *p, const char *dict, struct str bytes)
{
    begin(p);
    buf_printf(&p->out, "<< /Length %zu %s >>\nstream\n", bytes.n, dict);
    buf_add_str(&p->out, bytes);
    buf_add_lit(&p->out, "\nendstream\nendobj\n");
}

struct str pdf_finish(struct pdf *p, const char *more)
{
    size_t table = p->out.len;
    buf_printf(&p->out, "xref\n0 %zu\n0000000000 65535 f \n", p->count + 1);
    for (size_t i = 1; i <= p->count; i++)
        buf_printf(&p->out, "%010zu 00000 n \n", p->at[i]);
    buf_printf(&p->out, "trailer\n<< /Size %zu /Root 1 0 R %s >>\nstartxref\n%zu\n%%%%EOF\n",
               p->count + 1, more, table);
    return buf_str(&p->out);
}

void pdf_page(struct pdf *p, struct str content)
{
    pdf_object(p,
               "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %zu 0 R "
               "/Resources << /Font << /F1 3 0 R >> >> >>",
               p->count + 2);
    pdf_stream(p, "", content);
}

struct pdf *pdf_pages(size_t pages, const char *text)
{
    struct pdf *p = pdf_new();
    struct buf kids;
    char line[256];
    buf_init(&kids);
    for (size_t i = 0; i < pages; i++)
        buf_printf(&kids, "%zu 0 R ", 4 + 2 * i);
    pdf_object(p, "<< /Type /Catalog /Pages 2 0 R >>");
    pdf_object(p, "<< /Type /Pages /Count %zu /Kids [%.*s] >>", pages, STR_ARG(buf_str(&kids)));
    pdf_object(p, "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>");
    for (size_t i = 0; i < pages; i++) {
        int n =
            snprintf(line, sizeof line, "BT /F1 12 Tf 72 720 Td (page %zu: %s) Tj ET", i + 1, text);
        check(n > 0 && n < (int)sizeof line);
        pdf_page(p, str_from(line, (size_t)n));
    }
    buf_release(&kids);
    return p;
}
