/* machine.h -- what this machine, or the container we are in, has to offer. */
#ifndef SERVE_MACHINE_H
#define SERVE_MACHINE_H

#include <stdint.h>

int machine_cores(void);            /* that we may use: affinity and cgroup quota; at least 1 */
int64_t machine_memory_bytes(void); /* of the machine, or the cgroup limit if that is lower */

/* As many open files as we are allowed to have. */
void machine_raise_file_limit(void);
/* Every task has a stack with a guard page: two mappings. Warns when the kernel's limit per process is too low for
 * so many. */
void machine_check_mappings(int64_t tasks);
#endif
