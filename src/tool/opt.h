/* opt.h -- command lines from a table: --name VALUE or --name=VALUE, switches, operands, --help.
 *
 *     const char *file = "config.json";
 *     int64_t nodes = 0;
 *     const struct opt opts[] = {
 *         {"config", "FILE", "settings to use", .text = &file},
 *         {"nodes", "N", "processes to start", .number = &nodes, .least = 1, .most = 32},
 *     };
 *     struct command c = {"serve", NULL, "Runs the server.", opts, 2};
 *     int status = opt_parse(&c, argc, argv, NULL);
 *     if (status >= 0)
 *         return status;
 *
 * What is wrong is said on standard error; nobody has to print anything. */
#ifndef TOOL_OPT_H
#define TOOL_OPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct opt {
    const char *name;  /* without dashes */
    const char *value; /* what the help calls it: "FILE"; NULL for switches */
    const char *help;
    /* Exactly one of these takes the value; untouched when the option is absent. */
    const char **text; /* borrowed from argv */
    int64_t *number;   /* least to most, both allowed */
    double *real;      /* least to most likewise */
    bool *flag;
    int64_t least, most;
};

struct command {
    const char *name;     /* "serve", "db init" */
    const char *operands; /* "NAME" in the usage line; NULL: none are allowed */
    const char *text;     /* what it does; one or more whole lines without the last newline */
    const struct opt *opts;
    size_t opt_count;
};

struct operands {
    char **v;
    size_t n;
};

/* argv[0] is the command's own name. Operands are gathered behind argv[0], in order; `--` ends
 * the options. Returns -1 when the command shall go on, else the exit status of the
 * program: 0 after --help, 2 after a mistake, which has been explained. out may be NULL if the command takes none. */
int opt_parse(const struct command *c, int argc, char **argv, struct operands *out);
#endif
