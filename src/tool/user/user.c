#include "tool/user/user.h"

#include <stdio.h>

#include "tool/menu.h"
#include "tool/tool.h"

static const struct menu_item items[] = {
    {"add", user_add_main, "add somebody who may log in"},
    {"recharge", user_recharge_main, "give a user money to spend"},
    {"deduct", user_deduct_main, "take money from a user"},
    {"ban", user_ban_main, "end a user's sessions and refuse new ones"},
    {"unban", user_unban_main, "let a banned user log in again"},
    {"password", user_password_main, "give a user a new password"},
};

int user_complain(const char *why)
{
    fprintf(stderr, "millrace user: %s\n", why);
    return 1;
}

int user_mistake(const char *why)
{
    fprintf(stderr, "millrace user: %s; see --help\n", why);
    return 2;
}

int user_main(int argc, char **argv)
{
    return menu_run(&(struct menu){"millrace user", items, sizeof items / sizeof *items}, argc,
                    argv);
}
