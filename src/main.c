#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "tool/tool.h"

struct subcommand {
    const char *name;
    int (*main)(int argc, char **argv);
    const char *summary; /* NULL: hidden */
};

static const struct subcommand subcommands[] = {
    {"serve", serve_main, "run the server"},
    {"config", config_main, "show every setting, where it comes from and what it means"},
    {"db", db_main, "create tables and load data"},
    {"sim", sim_main, "run the simulated AI"},
    {"sample", sample_main, "make up a collection of papers to try the system with"},
    {"node", node_main, NULL},
};
#define COUNT (sizeof subcommands / sizeof *subcommands)

static int help(void)
{
    printf("usage: millrace COMMAND [options]\n\ncommands:\n");
    for (size_t i = 0; i < COUNT; i++)
        if (subcommands[i].summary)
            printf("  %-10s %s\n", subcommands[i].name, subcommands[i].summary);
    printf("\n\"millrace COMMAND --help\" tells more about a command.\n");
    return 0;
}

static int unknown(const char *name)
{
    struct nearest n = nearest_to(str_of(name));
    for (size_t i = 0; i < COUNT; i++)
        if (subcommands[i].summary)
            nearest_try(&n, subcommands[i].name);
    fprintf(stderr, "millrace: unknown %s \"%s\"", name[0] == '-' ? "option" : "command", name);
    if (nearest_name(&n))
        fprintf(stderr, "; did you mean \"%s\"?", nearest_name(&n));
    fprintf(stderr, "\nSee \"millrace --help\".\n");
    return 2;
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0)
        return help();
    if (strcmp(name, "--version") == 0) {
        printf("millrace %s\n", MILLRACE_VERSION);
        return 0;
    }
    if (argc < 2) {
        fprintf(stderr, "millrace: a command is missing\nSee \"millrace --help\".\n");
        return 2;
    }
    for (size_t i = 0; i < COUNT; i++)
        if (strcmp(name, subcommands[i].name) == 0)
            return subcommands[i].main(argc - 1, argv + 1);
    return unknown(name);
}
