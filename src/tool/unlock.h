/* unlock.h -- `millrace user unlock` and `millrace admin unlock`: end a lock-out that failed
 * log-ins caused (engine/people/attempts.h). */
#ifndef TOOL_UNLOCK_H
#define TOOL_UNLOCK_H

int unlock_user_main(int argc, char **argv);
int unlock_admin_main(int argc, char **argv);
#endif
