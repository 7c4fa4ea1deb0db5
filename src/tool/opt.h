/* opt.h -- command lines from a table: --name VALUE or --name=VALUE, switches, operands, --help.
 *
 *     const char *file = "config.json";
 *     int64_t nodes = 0;
 *     const struct opt opts[] = {
 *         OPT_CONFIG(&file),
 *         {"nodes", "N", "processes to start", .number = &nodes, .least = 1, .most = 32},
 *     };
 *     struct command c = {"serve", NULL, "Runs the server.", opts, 2};
 *     int status = opt_parse(&c, argc, argv);
 *     if (status >= 0)
 *         return status;
 *
 * opt_parse itself reports mistakes on standard error. */
#ifndef TOOL_OPT_H
#define TOOL_OPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"

#define OPT_TEXTS_MAX 64
struct opt_texts { /* of an option that may be given several times */
    const char *list[OPT_TEXTS_MAX];
    size_t count;
};

struct opt {
    const char *name;  /* without dashes */
    const char *value; /* what the help calls it: "FILE"; NULL for switches */
    const char *help;
    /* Exactly one of these takes the value; untouched when the option is absent. */
    const char **text; /* borrowed from argv */
    struct opt_texts *texts;
    int64_t *number; /* least to most, both allowed */
    double *real;    /* least to most likewise */
    bool *flag;
    int64_t least, most;
    bool needed; /* a text that must be given */
};

#define OPT_CONFIG(path)                                                                           \
    {                                                                                              \
        "config", "FILE", "settings to use; default: " DEFAULT_CONFIG_FILE " if it exists",        \
            .text = (path)                                                                         \
    }

struct command {
    const char *name;     /* "serve", "db init" */
    const char *operands; /* "NAME AMOUNT": each must be given; NULL: none are allowed */
    const char *text;     /* what it does; one or more whole lines without the last newline */
    const struct opt *opts;
    size_t opt_count;
};

/* argv[0] is the command's own name. Operands are moved behind it, from argv[1] on, in order; `--`
 * ends the options. Returns -1 when the command goes on, else the exit status of the program: 0
 * after --help, 2 after a mistake, which has been explained. */
int opt_parse(const struct command *c, int argc, char **argv);

/* Prints "millrace NAME: …" on standard error and returns the exit status: OPT_WRONG for a wrong
 * command line, with a pointer to --help; OPT_FAILED for all other failures. */
enum opt_status { OPT_FAILED = 1, OPT_WRONG = 2 };
int opt_error(const struct command *c, enum opt_status status, const char *fmt, ...) PRINTF(3, 4);
#endif
