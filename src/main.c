#include <stdio.h>
#include <string.h>

#include "tool/menu.h"
#include "tool/tool.h"

static const struct menu_item items[] = {
    {"serve", serve_main, "run the server"},
    {"config", config_main, "show every setting, where it comes from and what it means"},
    {"db", db_main, "create tables and load data"},
    {"user", user_main, "add users, move their money, ban them, reset passwords"},
    {"token", token_main, "make, list and revoke API tokens of users' programs"},
    {"admin", admin_main, "add admins, list and remove them"},
    {"ai", ai_main, "ask the AI service about one paper, to see whether it works"},
    {"pool", pool_main, "put items into pools, see how full they are"},
    {"embed", embed_main, "have papers indexed for searches"},
    {"audit", audit_main, "check the money of all users"},
    {"backup", backup_main, "copy everything into a folder, while runs go on"},
    {"restore", restore_main, "bring a backup back"},
    {"sim", sim_main, "run the simulated AI"},
    {"sample", sample_main, "generate a collection of made-up papers"},
    {"node", node_main, NULL},
};

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--version") == 0) {
        printf("millrace %s\n", MILLRACE_VERSION);
        return 0;
    }
    return menu_run(&(struct menu){"millrace", items, sizeof items / sizeof *items}, argc, argv);
}
