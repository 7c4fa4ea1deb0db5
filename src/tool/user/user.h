/* user.h -- the subcommands of `millrace user`, and what they share. */
#ifndef TOOL_USER_USER_H
#define TOOL_USER_USER_H

/* argv[0] is the subcommand's own name; the result is the exit status of the program. */
int user_add_main(int argc, char **argv);
int user_recharge_main(int argc, char **argv);
int user_deduct_main(int argc, char **argv);
int user_ban_main(int argc, char **argv);
int user_unban_main(int argc, char **argv);
int user_password_main(int argc, char **argv);

/* Say what is wrong; the exit status: 1, and 2 for a wrong command line. */
int user_complain(const char *why);
int user_mistake(const char *why);
#endif
