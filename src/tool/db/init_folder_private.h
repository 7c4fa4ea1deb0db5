/* init_folder_private.h -- shared by the readers of a data folder. */
#ifndef TOOL_DB_INIT_FOLDER_PRIVATE_H
#define TOOL_DB_INIT_FOLDER_PRIVATE_H

#include "base/err.h"
#include "tool/db/init.h"

struct folder_reading {
    struct arena *arena;
    const char *dir;
    struct init_report *report;
    struct init_folder *out;
    const char **why;
};

/* *why becomes "<dir>/<name>: …"; returns err. */
int folder_fail(struct folder_reading *f, int err, const char *name, const char *fmt, ...)
    PRINTF(4, 5);

/* What is wrong with the name of a journal or tag, as a constant; NULL: nothing. */
const char *folder_name_problem(struct str name);

/* The whole file as UTF-8 in *out; p == NULL when there is no such file. A conversion is
 * reported. */
MUST_CHECK int folder_text(struct folder_reading *f, const char *name, struct str *out);

/* The three tables of PaperAndTagInfo/. */
MUST_CHECK int folder_tables(struct folder_reading *f);
#endif
