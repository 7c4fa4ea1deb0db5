/* reply.h -- reads what the AI answered about one part of a document.
 *
 * The answer is one JSON object, also inside prose or a fence, with a member for each field:
 * {"dose": {"value": 5.2, "quote": "…"}, …}. A list is [{"value": …, "quote": …}, …] or {"value":
 * […], "quote": …}. null, {"value": null}, [] or no member: not found. A value without its object
 * is taken, without a quote. Other members are ignored.
 *
 * Values are typed as the template says (values.h): a number may be "5.2 mg" or "1,234", a boolean
 * "yes" or 否, a date "5 May 2020", a choice in another case. Nothing is guessed: a value that can
 * mean two things ("03/04/2020", "5 to 10") is a complaint.
 *
 * Always true: begin <= end <= the document's length; a value is verified only if its quote is in
 * the document and, of a number, the quote has that number. */
#ifndef APP_EXTRACT_FIELDS_REPLY_H
#define APP_EXTRACT_FIELDS_REPLY_H

#include "app/extract/fields/values.h"

struct quote_text; /* corpus/quote.h */

struct extract_reading {
    const struct extract_template *template;
    const struct quote_text *document; /* the whole of it, not the part; NULL: quotes are not
                                          looked for, and no value is verified */
    size_t part;                       /* from 0 */
    bool whole; /* the part is all of the document: required fields must have a value */
};

/* text: what the model says, as ai_reply_text gives it (engine/ai/reply.h). ERR_INVALID:
 * *complaint, in a, is one line for the AI that names every field that is wrong, of at most
 * EXTRACT_COMPLAINT_BYTES_MAX bytes. The values borrow text and the template, the rest is in a. */
MUST_CHECK int extract_reply_read(struct arena *a, const struct extract_reading *r, struct str text,
                                  struct extract_values *out, const char **complaint);
#endif
