/* stack.h -- guarded stacks and the switch between them. Only task.c includes this.
 *
 *   low                                            low + bytes
 *    | guard |  grows down  <-------------- frames | owner's block |
 *
 * The owner's block stands at the top, in the page that the first frames touch anyway, so an
 * idle task costs one page. Sanitizers and valgrind are notified of every stack and switch. */
#ifndef LOOP_STACK_H
#define LOOP_STACK_H

#include <stddef.h>

struct stack {
    char *low; /* of the usable part; the guard page lies below */
    size_t bytes;
    void *sp;        /* while it does not run */
    void *fake;      /* AddressSanitizer's copy of the frames */
    unsigned int id; /* valgrind's */
    struct stack *next;
};

struct stack_pool {
    struct stack *free; /* newest first: its pages are warm */
    size_t free_count, mapped_count;
};

/* The stack the loop itself runs on. */
struct stack_home {
    void *sp;
    void *fake;
    const void *low;
    size_t bytes;
};

/* Free stacks beyond this, and beyond as many as are in use, are unmapped. */
#define STACKS_KEPT_MAX 1024

void stack_pool_release(struct stack_pool *p); /* all zero is an empty pool */

/* The struct stands at the start of an owner's block of block_bytes. NULL: the limit of mappings
 * (vm.max_map_count) is reached. */
struct stack *stack_get(struct stack_pool *p, size_t block_bytes);
void stack_put(struct stack_pool *p, struct stack *s);

void stack_prepare(struct stack *s, void (*fn)(void *arg), void *arg);
void stack_enter(struct stack_home *h, struct stack *s); /* home to s */
void stack_leave(struct stack *s, struct stack_home *h); /* s to home */
_Noreturn void stack_leave_for_good(struct stack *s, struct stack_home *h);
void stack_entered(struct stack_home *h); /* first thing on a new stack */
#endif
