/* loop.h -- one thread, one event loop, any number of tasks.
 *
 * Owns the clock, the random source, the run queue, the timers, the stack pool
 * and the helper threads. A turn of the loop: run every task that was ready at
 * its start, then some of those that have stood back, then poll file
 * descriptors, then fire due timers. */
#ifndef LOOP_LOOP_H
#define LOOP_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct loop;

#define TIME_NEVER INT64_MAX

struct loop_options {
    /* Time stands still while tasks run and jumps to the next timer when all of them wait:
     * tests of hours take milliseconds and are deterministic. */
    bool virtual_time;
    uint64_t seed;       /* 0: from the kernel */
    int offload_threads; /* 0: two */
};

struct loop *loop_new(const struct loop_options *o); /* o may be NULL */
void loop_free(struct loop *l);                      /* no task may be left */

void loop_run(struct loop *l); /* returns when the last task has ended */

int64_t loop_now_ms(const struct loop *l);  /* monotonic, as of this turn */
int64_t loop_now_us(const struct loop *l);  /* monotonic, read now; for measuring */
int64_t loop_wall_ms(const struct loop *l); /* since 1970, UTC, on the clock of all machines */

/* The clock of all machines is so far ahead of this machine's. 0 at first. */
void loop_set_wall_ahead(struct loop *l, int64_t ms);
int64_t loop_wall_ahead(const struct loop *l);

uint64_t loop_random(struct loop *l); /* for jitter and sampling, not for secrets */
/* Unguessable bytes from the kernel, or from the seed if one was given. */
void loop_secret(struct loop *l, void *out, size_t n);
/* The same as hexadecimal digits: size - 1 of them, at most 64, and a NUL. */
void loop_token(struct loop *l, char *out, size_t size);
/* base_ms shortened by up to a half, at random: for backoff. */
int64_t loop_jitter(struct loop *l, int64_t base_ms);

size_t loop_task_count(const struct loop *l);

/* fn runs on the loop's own stack when the signal arrives: it must not wait. */
void loop_on_signal(struct loop *l, int signo, void (*fn)(void *arg), void *arg);
#endif
