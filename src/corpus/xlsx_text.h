/* xlsx_text.h -- text as the XML of a workbook holds it. For xlsx.c.
 *
 * Always true: what is written is valid UTF-8 without characters that XML forbids. */
#ifndef CORPUS_XLSX_TEXT_H
#define CORPUS_XLSX_TEXT_H

#include "base/str.h"

struct buf;

size_t xlsx_units(struct str s); /* of UTF-16, which the programs count; a bad byte is one */

/* Of a cell: cut to XLSX_TEXT_MAX, its line ends \n; _x0041_ stays these seven characters, which
 * the programs would take for an A. */
void xlsx_put_cell_text(struct buf *out, struct str text);
void xlsx_put_attribute(struct buf *out, struct str text);

/* A name that a sheet may have: 1 to 31 units, none of them []:*?/\ or a control character. */
struct str xlsx_sheet_name(struct arena *a, struct str name);
/* The same with " (number)" behind it, of 31 units at most. */
struct str xlsx_numbered_name(struct arena *a, struct str name, size_t number);
bool xlsx_same_name(struct str a, struct str b); /* case apart */
#endif
