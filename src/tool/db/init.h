/* init.h -- `millrace db init --data DIR`, in the order it happens.
 *
 *   0. look: folder, tables of journals and tags, keys are read and checked, nothing is changed
 *   1. schema: engine/setup/schema.h
 *   2. keys: every .txt of APIKey/ into api_list
 *   3. journals and papers: InfoList.Paper.csv into contentlist, every .bib of Data/<Journal>/ into
 *      paperinfo, corpus_block, corpus_file; then contentlist_year_number and a dictionary
 *   4. tags: InfoList.Tag.csv and InfoList.PaperWithTag.csv into info_tag, info_paper_with_tag
 *
 * Every step can be repeated: what is there already is left alone, and what is in the database but
 * no longer in the folder stays (results point to it), but for tags, which are synchronised. */
#ifndef TOOL_DB_INIT_H
#define TOOL_DB_INIT_H

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
    struct init_journal_row *rows;
    size_t row_count;
    struct init_pair *tags, *pairs;
    size_t tag_count, pair_count;
    bool has_rows, has_tags, has_pairs; /* the file is there; else its table is left alone */
    struct init_key *keys;              /* each once, in order */
    size_t key_count;
};

/* Reads everything but the .bib files. Rows and lines that are no good are reported and left out.
 * ERR_INVALID, ERR_IO or ERR_NOT_FOUND with *why (in a): the folder cannot be used at all: it has none of
 * the three parts, a table lacks a column, a file cannot be read. Blocks. */
MUST_CHECK int init_folder_read(struct arena *a, const char *dir, struct init_report *r,
                                struct init_folder *out, const char **why);

/* When it was changed, since 1970. Wraps around for times that do not fit: all that counts is
 * whether it differs. */
struct stat;
int64_t init_changed_ns(const struct stat *st);

/* One string for two names. They hold no control characters, so NUL keeps them apart. */
struct str init_pair_key(struct arena *a, struct str first, struct str second);

/* --- 2. to 4. --- */

struct init {
    struct db *db;
    struct init_folder folder;
    struct init_report *report;
    struct progress progress;
};

MUST_CHECK int init_keys(struct task *t, struct init *in);
MUST_CHECK int init_journals(struct task *t, struct init *in); /* contentlist */
MUST_CHECK int init_papers(struct task *t, struct init *in);   /* paperinfo and its blocks */
MUST_CHECK int init_years(struct task *t, struct init *in);    /* contentlist_year_number */
MUST_CHECK int init_dictionary(struct task *t, struct init *in);
MUST_CHECK int init_tags(struct task *t, struct init *in);
#endif
