/* export.h -- results of a run as a file for other programs: CSV, BibTeX or RIS, row by row.
 *
 *   CSV      RFC 4180 in UTF-8 with a byte order mark, which Excel needs; no cell can start a
 *            formula. LaTeX is turned into text.
 *   BibTeX   the original entries, byte for byte, in the order of the rows. An @string stands
 *            before the first entry that needs it, once per file; again only where another source
 *            file gave the same name another value in between. Two entries with the same key keep
 *            it: that is what their sources say, and programs that read the file report it.
 *   RIS      corpus/ris.h.
 *
 * Verdicts of the simulated AI are marked: by "yes" in the last column of CSV, by a comment before
 * the BibTeX entry, by a note (N1) in RIS. What a run is about is not in these files, because
 * programs that read CSV or RIS know no comments: GET /api/queries/:id/scope has it.
 *
 * A paper that has left the corpus since is still in the file, with the fields of its result. */
#ifndef APP_DOWNLOAD_EXPORT_H
#define APP_DOWNLOAD_EXPORT_H

#include "engine/runs/results.h"

enum export_format { EXPORT_CSV, EXPORT_BIB, EXPORT_RIS };

#define EXPORT_FORMATS "csv|bib|ris"
const char *export_name(enum export_format f); /* "csv": also the ending of its files */
bool export_parse(struct str name, enum export_format *out);
const char *export_media(enum export_format f); /* for Content-Type */

struct exporter;

/* out is borrowed; what stands before the first row is in it at once. */
struct exporter *export_new(enum export_format f, struct buf *out);
void export_free(struct exporter *e);

/* One row; bibtex as block_pick has it. Needs no task: it may be called on a helper thread. */
void export_add(struct exporter *e, const struct result_row *row, struct str bibtex);
#endif
