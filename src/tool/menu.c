#include "tool/menu.h"

#include <stdio.h>
#include <string.h>

#include "base/nearest.h"

static int help(const struct menu *m)
{
    printf("usage: %s COMMAND [options]\n\ncommands:\n", m->name);
    for (size_t i = 0; i < m->count; i++)
        if (m->items[i].summary)
            printf("  %-10s  %s\n", m->items[i].name, m->items[i].summary);
    printf("\n\"%s COMMAND --help\" tells more about a command.\n", m->name);
    return fflush(stdout) == 0 ? 0 : 1;
}

static int unknown(const struct menu *m, const char *name)
{
    struct nearest n = nearest_to(str_of(name));
    for (size_t i = 0; i < m->count; i++)
        if (m->items[i].summary)
            nearest_try(&n, m->items[i].name);
    fprintf(stderr, "%s: unknown %s \"%s\"", m->name, name[0] == '-' ? "option" : "command", name);
    if (nearest_name(&n))
        fprintf(stderr, "; did you mean \"%s\"?", nearest_name(&n));
    fprintf(stderr, "\nSee \"%s --help\".\n", m->name);
    return 2;
}

int menu_run(const struct menu *m, int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "%s: a command is missing\nSee \"%s --help\".\n", m->name, m->name);
        return 2;
    }
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0)
        return help(m);
    for (size_t i = 0; i < m->count; i++)
        if (strcmp(name, m->items[i].name) == 0)
            return m->items[i].main(argc - 1, argv + 1);
    return unknown(m, name);
}
