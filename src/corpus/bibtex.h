/* bibtex.h -- reads BibTeX entry by entry, never holding more than one.
 *
 * Bytes are UTF-8 or any other superset of ASCII. Common mistakes of exports are accepted where the
 * meaning is clear: a missing comma, a field without value, an empty key, a quote inside quotes.
 * Braces count even behind a backslash, as they do for BibTeX.
 *
 * Always true:
 *   - raw is the entry as it stands in the file, byte for byte;
 *   - an entry ends at its own closing brace, and at the latest before the next line that begins
 *     with "@type{" (or, indented or with a parenthesis, "@type(key,"): damage stays in one entry;
 *   - what is found does not depend on how the bytes were cut into windows;
 *   - every entry that is not returned is reported, with its line. */
#ifndef CORPUS_BIBTEX_H
#define CORPUS_BIBTEX_H

#include "base/str.h"

#define BIBTEX_ENTRY_BYTES_MAX  (4u << 20) /* also of one field with its @strings put in */
#define BIBTEX_FIELDS_MAX       256
#define BIBTEX_DEPTH_MAX        100 /* braces in braces */
#define BIBTEX_MACROS_MAX       4096
#define BIBTEX_MACRO_BYTES_MAX  (64u << 10) /* the value of one @string */
#define BIBTEX_MACROS_BYTES_MAX (8u << 20)  /* all @strings of a file */
#define BIBTEX_MACRO_NAME_MAX   128
#define BIBTEX_MACRO_USES_MAX   64 /* @strings behind one @string */

struct bibtex;      /* the reader; knows windows of bytes and no files */
struct bibtex_file; /* a reader with a file behind it */

struct bibtex_macro {                       /* an @string */
    struct str name;                        /* as written; names are alike whatever their case */
    struct str value;                       /* expanded */
    struct str raw;                         /* "@string{...}" */
    const struct bibtex_macro *const *uses; /* @strings behind this one, each after its own */
    size_t use_count;
    uint64_t seen, order; /* private */
};

/* Values are without their outer quotes or braces, joined at '#', with @strings and months put in
 * and white space collapsed; LaTeX is left as it is. Absent: p == NULL. The memory is the reader's
 * and valid until its next call; that of macros until it is freed or reset. */
struct bibtex_entry {
    struct str raw;
    uint64_t line; /* of its '@', from 1 */
    struct str type, key;
    struct str title, abstract, doi, authors;
    struct str year;      /* year, else the first four digits in a row of date */
    struct str journal;   /* journal, else journaltitle */
    struct str booktitle; /* where a paper of a conference was printed */
    /* The @strings that this entry needs, each behind those it needs itself. */
    const struct bibtex_macro *const *macros;
    size_t macro_count;
};

struct bibtex_problem {
    uint64_t line;
    const char *reason;
    struct str about; /* key, field or @string it is about; may be empty */
    bool dropped;     /* the entry or @string is lost; else it was read all the same */
};
typedef void bibtex_report(void *arg, const struct bibtex_problem *p);

struct bibtex *bibtex_new(bibtex_report *report, void *arg); /* report may be NULL */
void bibtex_free(struct bibtex *b);
void bibtex_reset(struct bibtex *b); /* as new, for another text; keeps its memory */

enum bibtex_step {
    BIBTEX_ENTRY, /* *e is filled */
    BIBTEX_MORE,  /* call again with a longer window, or with last set */
    BIBTEX_END,
};

/* Reads on. window holds the bytes not used up yet; last says that no others follow. Afterwards
 * the first *used bytes of the window are done with; they must stay in place as long as *e is
 * needed, and the next window begins behind them. Used bytes plus the longest entry are all that
 * need ever be kept. */
enum bibtex_step bibtex_next(struct bibtex *b, struct str window, bool last, struct bibtex_entry *e,
                             size_t *used) MUST_CHECK;

/* Starts over and reads the first entry of a whole text. False: there is none. */
bool bibtex_only(struct bibtex *b, struct str text, struct bibtex_entry *e) MUST_CHECK;

/* Takes raw as bibtex_next gave it, without searching for its end again; bibtex_field then reads
 * its fields. False: not such an entry, or only bibtex_next can tell. */
bool bibtex_take(struct bibtex *b, struct str raw) MUST_CHECK;

/* Any field of the entry that bibtex_next gave last, or bibtex_take took; absent: p == NULL. */
struct str bibtex_field(struct bibtex *b, struct str name);

/* A file, read in blocks; it blocks, so a server does it in an offload. ERR_IO leaves errno. */
int bibtex_open(struct bibtex_file **f, const char *path, bibtex_report *report,
                void *arg) MUST_CHECK;
/* 1: *e is filled, until the next call. 0: the end. ERR_IO. */
int bibtex_read(struct bibtex_file *f, struct bibtex_entry *e) MUST_CHECK;
struct bibtex *bibtex_reader(struct bibtex_file *f); /* for bibtex_field */
void bibtex_close(struct bibtex_file *f);
#endif
