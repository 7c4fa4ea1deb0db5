/* quote.h -- finds a quote in a document, and says which bytes of the document it is.
 *
 * An AI that is asked for the words of a document gives them nearly as they stand. These
 * differences are looked past, in document and quote alike:
 *   - white space, line and page breaks: anywhere, so Chinese text needs no spaces;
 *   - dashes, of any form, before anything but a digit: infor-\nmation is information. Before a
 *     digit all dashes are one: 5–10 is 5-10, but never 510, and -3 is not 3;
 *   - quotation marks, apostrophes, soft hyphens, invisible characters, and the marks * _ ` ^ of
 *     Markdown;
 *   - case; accents (U+0300 to U+036F and letters that have one); ligatures, full-width forms,
 *     superscripts and whatever else Unicode calls compatible, unless its form in UTF-8 would be
 *     longer; × and x.
 * Anything else must be the same. Punctuation around a quote is ignored.
 *
 * An ellipsis in a quote (… ... […] (...)) stands for up to QUOTE_GAP_BYTES_MAX bytes of the
 * document, if there are at least QUOTE_PIECE_BYTES_MIN bytes, folded, on both sides of it; the
 * place is then all from the first piece to the last. First it is tried as it stands.
 *
 * Always true of a place that is found:
 *   - begin < end <= the document's length, both between characters of valid UTF-8;
 *   - it does not begin or end inside a number: "5 mg" is not in "15 mg", "1.5 mg" or "-5 mg";
 *   - a quote of less than 16 bytes, folded, does not begin or end inside a word of letters.
 *     A longer one may: text of a PDF has lost some of its spaces.
 * A quote of less than three letters or digits is never found, it would be everywhere; Chinese,
 * Japanese and Korean characters count twice.
 *
 * Any bytes are taken. A byte that is not UTF-8 is like any other and like U+FFFD. */
#ifndef CORPUS_QUOTE_H
#define CORPUS_QUOTE_H

#include "base/str.h"

#define QUOTE_DOCUMENT_BYTES_MAX (1u << 30)
#define QUOTE_GAP_BYTES_MAX      2000
#define QUOTE_PIECE_BYTES_MIN    6

struct quote_text; /* a document, folded once, with where its characters came from */

struct quote_place {
    size_t begin, end; /* bytes of the document; end is behind the last one */
};

/* Linear, about 130 MB a second: one of many megabytes is work for a helper thread. At most 1.25
 * bytes of the arena for each byte of the document, and 64 more. The document is borrowed, and at
 * most QUOTE_DOCUMENT_BYTES_MAX long. */
struct quote_text *quote_text_new(struct arena *a, struct str document);

/* The first place of the quote. False, and nothing is written: it is not there. Linear in the
 * document's and the quote's length; of a quote with an ellipsis only the first 1,000 places of its
 * first piece are tried. */
bool quote_find(const struct quote_text *d, struct str quote, struct quote_place *out);
#endif
