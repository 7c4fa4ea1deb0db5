/* init.h -- `millrace db init --data DIR`, in the order it happens.
 *
 *   0. check: folder, tables of journals and tags, and keys are read; nothing is changed
 *   1. schema: engine/setup/schema.h; then the load gets its number (init_load.c)
 *   2. keys: every .txt of APIKey/ into api_list
 *   3. journals and papers: InfoList.Paper.csv into contentlist, every .bib of Data/<Journal>/ into
 *      paperinfo, corpus_block, corpus_change, corpus_file; papers that left the folder are
 *      counted, or withdrawn (init_left.c); then contentlist_year_number, which ends the load, and
 *      a dictionary
 *   4. tags: InfoList.Tag.csv and InfoList.PaperWithTag.csv into info_tag, info_paper_with_tag
 *   5. the server counts what the tables hold: schema_analyze
 *
 * Every step is idempotent: existing rows are left alone, and rows that are no longer in the folder
 * stay, unless --prune is given. Tags alone are synchronised. */
#ifndef TOOL_DB_INIT_H
#define TOOL_DB_INIT_H

#include "base/map.h"
#include "corpus/paper.h"
#include "tool/db/db.h"
#include "tool/db/init_report.h"
#include "tool/progress.h"

/* --- 0. the folder; all of it in one arena --- */

struct init_file { /* Data/<journal>/<name> */
    struct str journal, name;
    const char *path, *shown; /* shown: the part of path below dir, for reports */
    int64_t bytes, changed_ns;
};

struct init_journal_row { /* of InfoList.Paper.csv */
    struct str name, full_name, data_range, update_date;
    int64_t price;
};

struct init_pair { /* of InfoList.Tag.csv: tag, type; of InfoList.PaperWithTag.csv: journal, tag */
    struct str first, second;
    int64_t line;
};

struct init_key {         /* of APIKey/; never shown */
    struct str key, name; /* name: of its file, without .txt */
};

struct init_folder {
    const char *dir;
    struct init_file *files; /* by journal, then name, byte by byte */
    size_t file_count;
    struct str *journals; /* folders in Data/, in order; also those without .bib files */
    size_t journal_count;
    bool incomplete; /* something in Data/ cannot be accessed */
    struct init_journal_row *rows;
    size_t row_count;
    struct init_pair *tags, *pairs;
    size_t tag_count, pair_count;
    bool has_rows, has_tags, has_pairs; /* the file exists; else its table is left alone */
    struct init_key *keys;              /* each once, in order */
    size_t key_count;
};

/* Reads everything but the .bib files. Invalid rows and lines are reported and left out.
 * ERR_INVALID, ERR_IO or ERR_NOT_FOUND with *why (in a): the folder cannot be used at all, because
 * it has none of the three parts, a table lacks a column, or a file cannot be read. Blocks. */
MUST_CHECK int init_folder_read(struct arena *a, const char *dir, struct init_report *r,
                                struct init_folder *out, const char **why);

/* The time of the last change, since 1970. Wraps around for times that do not fit: it is only
 * compared. */
struct stat;
int64_t init_changed_ns(const struct stat *st);

/* One string for two names, separated by NUL, which no name contains. */
struct str init_pair_key(struct arena *a, struct str first, struct str second);

/* Room for one more behind the `count` items of p, all added through this function. */
void *init_room(struct arena *a, void *p, size_t count, size_t item_bytes);

/* Converts the bytes of a file to UTF-8, in a, and reports it. Errors as charset_to_utf8; *charset
 * is the name of the charset in any case. */
MUST_CHECK int init_to_utf8(struct arena *a, struct init_report *r, const char *path,
                            struct str bytes, struct str *out, const char **charset);

/* --- 2. to 5. --- */

struct init {
    struct db *db;
    int64_t load; /* its number */
    bool prune;   /* papers that are not in the folder any more leave the corpus */
    struct init_folder folder;
    struct init_report *report;
    struct progress progress;
};

/* Whether a paper has no abstract. */
bool init_is_bare(struct arena *a, struct bibtex *reader, const struct paper *p);

/* Adds to out what a statement with one column of text selects. */
MUST_CHECK int init_read_set(struct task *t, struct sql *c, const char *select, struct map *out);

/* Runs body while no other load goes on. Its exit status, or 1 after reporting why not. */
int init_load_alone(struct task *t, struct init *in, int (*body)(struct task *t, struct init *in));
MUST_CHECK int init_load_begin(struct task *t, struct init *in); /* takes the next number */
/* First in every transaction that changes papers, their blocks or files. ERR_BUSY: a later load has
 * begun. */
MUST_CHECK int init_load_check(struct task *t, struct sql *c, int64_t load);
/* In the transaction that writes contentlist_year_number: the catalog and its load agree. */
MUST_CHECK int init_load_end(struct task *t, struct sql *c, int64_t load);

MUST_CHECK int init_keys(struct task *t, struct init *in);
MUST_CHECK int init_journals(struct task *t, struct init *in); /* contentlist */
MUST_CHECK int init_papers(struct task *t, struct init *in);   /* paperinfo and its blocks */
MUST_CHECK int init_bare(struct task *t, struct init *in);     /* corpus_bare */
MUST_CHECK int init_years(struct task *t, struct init *in);    /* contentlist_year_number */
MUST_CHECK int init_dictionary(struct task *t, struct init *in);
MUST_CHECK int init_tags(struct task *t, struct init *in);
#endif
