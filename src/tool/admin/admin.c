#include "tool/admin/admin.h"

#include <stdio.h>

#include "tool/menu.h"
#include "tool/tool.h"

static const struct menu_item items[] = {
    {"add", admin_add_main, "add somebody who may look after millrace"},
    {"list", admin_list_main, "show all admins"},
    {"password", admin_password_main, "give an admin a new password"},
    {"remove", admin_remove_main, "remove an admin"},
};

int admin_complain(const char *why)
{
    fprintf(stderr, "millrace admin: %s\n", why);
    return 1;
}

int admin_mistake(const char *why)
{
    fprintf(stderr, "millrace admin: %s; see --help\n", why);
    return 2;
}

int admin_main(int argc, char **argv)
{
    return menu_run(&(struct menu){"millrace admin", items, sizeof items / sizeof *items}, argc,
                    argv);
}
