/* tool.h -- entry points of the subcommands. argv[0] is the subcommand's name; the result is the
 * exit status of the program: 0 done, 1 failed, 2 wrong command line. */
#ifndef TOOL_TOOL_H
#define TOOL_TOOL_H

int serve_main(int argc, char **argv);
int node_main(int argc, char **argv); /* hidden: started by a supervisor */
int config_main(int argc, char **argv);
int db_main(int argc, char **argv);
int admin_main(int argc, char **argv);
int ai_main(int argc, char **argv);
int audit_main(int argc, char **argv);
int backup_main(int argc, char **argv);
int embed_main(int argc, char **argv);
int pool_main(int argc, char **argv);
int restore_main(int argc, char **argv);
int sim_main(int argc, char **argv);
int sample_main(int argc, char **argv);
int token_main(int argc, char **argv);
int user_main(int argc, char **argv);
#endif
