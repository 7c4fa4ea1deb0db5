#include "loop/stack.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/check.h"
#include "base/sanitize.h"
#include "loop/task.h"

#ifdef WITH_ASAN
#include <sanitizer/common_interface_defs.h>
#include <sanitizer/lsan_interface.h>
/* Red zones make every frame larger. */
#define STACK_BYTES (4 * TASK_STACK_BYTES)
#else
#define STACK_BYTES                                       TASK_STACK_BYTES
#define __lsan_register_root_region(p, n)                 ((void)(p))
#define __lsan_unregister_root_region(p, n)               ((void)(p))
#define __sanitizer_start_switch_fiber(fake, low, bytes)  ((void)(low))
#define __sanitizer_finish_switch_fiber(fake, low, bytes) ((void)(low))
#endif

#ifdef HAVE_VALGRIND
#include <valgrind/valgrind.h>
#else
#define VALGRIND_STACK_REGISTER(low, high) 0
#define VALGRIND_STACK_DEREGISTER(id)      ((void)(id))
#endif

void stack_switch(void **save_sp, void *load_sp);
void stack_start(void);

static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static void tell_sanitizers(struct stack *s)
{
    s->id = (unsigned int)VALGRIND_STACK_REGISTER(s->low, s->low + s->bytes);
    /* LeakSanitizer does not scan mappings by itself. */
    __lsan_register_root_region(s->low, STACK_BYTES);
}

static void unmap(struct stack_pool *p, struct stack *s)
{
    VALGRIND_STACK_DEREGISTER(s->id);
    char *low = s->low;
    __lsan_unregister_root_region(low, STACK_BYTES);
    check(munmap(low - page_bytes(), STACK_BYTES + page_bytes()) == 0);
    p->mapped_count--;
}

static struct stack *map(struct stack_pool *p, size_t block_bytes)
{
    size_t guard = page_bytes();
    char *at = mmap(NULL, STACK_BYTES + guard, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return NULL;
    if (mprotect(at, guard, PROT_NONE) != 0) {
        munmap(at, STACK_BYTES + guard);
        return NULL;
    }
    char *low = at + guard;
    size_t block = (block_bytes + 63) & ~(size_t)63;
    struct stack *s = (struct stack *)(void *)(low + STACK_BYTES - block);
    s->low = low;
    s->bytes = STACK_BYTES - block;
    p->mapped_count++;
    tell_sanitizers(s);
    return s;
}

struct stack *stack_get(struct stack_pool *p, size_t block_bytes)
{
    struct stack *s = p->free;
    if (!s)
        return map(p, block_bytes);
    p->free = s->next;
    p->free_count--;
    return s;
}

void stack_put(struct stack_pool *p, struct stack *s)
{
    size_t in_use = p->mapped_count - p->free_count - 1; /* load comes in waves */
    if (p->free_count >= STACKS_KEPT_MAX && p->free_count >= in_use) {
        unmap(p, s);
        return;
    }
    UNPOISON(s->low, s->bytes);
    s->next = p->free;
    p->free = s;
    p->free_count++;
}

void stack_pool_release(struct stack_pool *p)
{
    while (p->free) {
        struct stack *s = p->free;
        p->free = s->next;
        unmap(p, s);
    }
    check(p->mapped_count == 0);
}

/* Lays out what stack_switch would have pushed, with stack_start as the return address. */
void stack_prepare(struct stack *s, void (*fn)(void *arg), void *arg)
{
    uintptr_t *sp = (uintptr_t *)((uintptr_t)(s->low + s->bytes) & ~(uintptr_t)15);
#if defined(__x86_64__)
    sp -= 9; /* seven are popped: stack_start calls from an aligned stack, as the ABI requires */
    memset(sp, 0, 9 * sizeof *sp);
    sp[3] = (uintptr_t)arg; /* r12 */
    sp[4] = (uintptr_t)fn;  /* rbx */
    sp[6] = (uintptr_t)stack_start;
#elif defined(__aarch64__)
    sp -= 20;
    memset(sp, 0, 20 * sizeof *sp);
    sp[0] = (uintptr_t)fn;           /* x19 */
    sp[1] = (uintptr_t)arg;          /* x20 */
    sp[11] = (uintptr_t)stack_start; /* x30 */
#else
#error "no stack switch for this processor"
#endif
    s->sp = sp;
    s->fake = NULL;
}

void stack_enter(struct stack_home *h, struct stack *s)
{
    __sanitizer_start_switch_fiber(&h->fake, s->low, s->bytes);
    stack_switch(&h->sp, s->sp);
    __sanitizer_finish_switch_fiber(h->fake, NULL, NULL);
}

void stack_entered(struct stack_home *h)
{
    __sanitizer_finish_switch_fiber(NULL, &h->low, &h->bytes);
}

void stack_leave(struct stack *s, struct stack_home *h)
{
    __sanitizer_start_switch_fiber(&s->fake, h->low, h->bytes);
    stack_switch(&s->sp, h->sp);
    __sanitizer_finish_switch_fiber(s->fake, &h->low, &h->bytes);
}

_Noreturn void stack_leave_for_good(struct stack *s, struct stack_home *h)
{
    __sanitizer_start_switch_fiber(NULL, h->low, h->bytes); /* frees the fake frames */
    stack_switch(&s->sp, h->sp);
    check_failed(__FILE__, __LINE__, __func__, "a finished stack was entered again");
}
