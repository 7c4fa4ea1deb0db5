/* admin.h -- the subcommands of `millrace admin`, and what they share. */
#ifndef TOOL_ADMIN_ADMIN_H
#define TOOL_ADMIN_ADMIN_H

/* argv[0] is the subcommand's own name; the result is the exit status of the program. */
int admin_add_main(int argc, char **argv);
int admin_list_main(int argc, char **argv);
int admin_remove_main(int argc, char **argv);
int admin_password_main(int argc, char **argv);

/* Say what is wrong; the exit status: 1, and 2 for a wrong command line. */
int admin_complain(const char *why);
int admin_mistake(const char *why);
#endif
