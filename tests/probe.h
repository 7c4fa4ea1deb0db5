/* probe.h -- the program that tries what a sandbox must refuse: tests/sandbox_probe.c. */
#ifndef TESTS_PROBE_H
#define TESTS_PROBE_H

struct task;

/* Compiles it to a path, executable for all. Tests start in the folder of the build. */
void probe_compile(struct task *t, const char *path);
#endif
