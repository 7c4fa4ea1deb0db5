/* menu.h -- a command that is a list of commands: millrace, millrace db, millrace user. */
#ifndef TOOL_MENU_H
#define TOOL_MENU_H

#include <stddef.h>

struct menu_item {
    const char *name;
    int (*main)(int argc, char **argv); /* argv[0] is its own name */
    const char *summary;                /* NULL: hidden */
};

struct menu {
    const char *name; /* "millrace db" */
    const struct menu_item *items;
    size_t count;
};

/* Runs the one that argv[1] names; the exit status of the program. Help, a missing and an unknown
 * command are dealt with here. */
int menu_run(const struct menu *m, int argc, char **argv);
#endif
