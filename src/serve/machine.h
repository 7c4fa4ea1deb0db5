/* machine.h -- the resources of this machine, or of the container it runs in. */
#ifndef SERVE_MACHINE_H
#define SERVE_MACHINE_H

#include <stdint.h>

int machine_cores(void);            /* usable: by affinity and cgroup quota; at least 1 */
int64_t machine_memory_bytes(void); /* of the machine, or the cgroup limit if that is lower */

/* Raises the limit of open files as far as allowed. */
void machine_raise_file_limit(void);
/* Every task has a stack with a guard page: two mappings. Warns when the kernel's limit per process
 * is too low for so many tasks. */
void machine_check_mappings(int64_t tasks);
#endif
