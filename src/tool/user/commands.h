/* commands.h -- what the files of `millrace user` share. */
#ifndef TOOL_USER_COMMANDS_H
#define TOOL_USER_COMMANDS_H

#include "tool/account.h"

/* The user that the command names. ERR_NOT_FOUND, explained. */
MUST_CHECK int user_named(struct task *t, const struct account *a, struct user *out);

int user_list_main(int argc, char **argv);
int user_release_main(int argc, char **argv);
#endif
