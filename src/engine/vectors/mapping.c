#include "engine/vectors/mapping.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"

/* A slot is taken by setting `taken`, and counts once `bytes` is not zero. */
static struct slot {
    int taken;
    uintptr_t at;
    size_t bytes;
    bool writable;
    bool *damaged;
} slots[MAPPINGS_MAX];
static int slots_used; /* none beyond was ever taken */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct sigaction before;
static uintptr_t page_bytes;

/* True: the page at `at` can be read now. Only what is safe in a signal handler. */
static bool mend(uintptr_t at)
{
    int used = __atomic_load_n(&slots_used, __ATOMIC_ACQUIRE);
    for (int i = 0; i < used; i++) {
        size_t bytes = __atomic_load_n(&slots[i].bytes, __ATOMIC_ACQUIRE);
        if (!bytes || at < slots[i].at || at - slots[i].at >= bytes)
            continue;
        uintptr_t page = at & ~(page_bytes - 1);
        int protection = slots[i].writable ? PROT_READ | PROT_WRITE : PROT_READ;
        __atomic_store_n(slots[i].damaged, true, __ATOMIC_SEQ_CST);
        return mmap((void *)page, slots[i].at + bytes - page, protection,
                    MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED;
    }
    return false;
}

static void on_bus_error(int signo, siginfo_t *info, void *context)
{
    if (info->si_code > 0 && mend((uintptr_t)info->si_addr))
        return;
    if (before.sa_flags & SA_SIGINFO) {
        before.sa_sigaction(signo, info, context);
        return;
    }
    if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
        before.sa_handler(signo);
        return;
    }
    /* Ends the process when the instruction is repeated, as without us. One that was sent by a
     * program does not come again by itself. */
    sigaction(SIGBUS, &before, NULL);
    if (info->si_code <= 0)
        raise(SIGBUS);
}

static void set_up(void)
{
    page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
    struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    check(sigaction(SIGBUS, &action, &before) == 0);
}

static int take_slot(void)
{
    for (int i = 0; i < MAPPINGS_MAX; i++) {
        int free_slot = 0;
        if (!__atomic_compare_exchange_n(&slots[i].taken, &free_slot, 1, false, __ATOMIC_ACQUIRE,
                                         __ATOMIC_RELAXED))
            continue;
        int used = __atomic_load_n(&slots_used, __ATOMIC_RELAXED);
        while (used <= i && !__atomic_compare_exchange_n(&slots_used, &used, i + 1, false,
                                                         __ATOMIC_RELEASE, __ATOMIC_RELAXED))
            continue;
        return i;
    }
    return -1;
}

int mapping_open(struct mapping *m, int fd, off_t from, size_t bytes, bool writable, bool *damaged)
{
    check(pthread_once(&once, set_up) == 0);
    int slot = take_slot();
    if (slot < 0)
        return ERR_LIMIT;
    int protection = writable ? PROT_READ | PROT_WRITE : PROT_READ;
    void *at = mmap(NULL, bytes, protection, MAP_SHARED, fd, from);
    if (at == MAP_FAILED) {
        __atomic_store_n(&slots[slot].taken, 0, __ATOMIC_RELEASE);
        return ERR_IO;
    }
    slots[slot].at = (uintptr_t)at;
    slots[slot].writable = writable;
    slots[slot].damaged = damaged;
    __atomic_store_n(&slots[slot].bytes, bytes, __ATOMIC_RELEASE);
    *m = (struct mapping){.at = at, .bytes = bytes, .slot = slot};
    return 0;
}

void mapping_close(struct mapping *m)
{
    if (!m->at)
        return;
    __atomic_store_n(&slots[m->slot].bytes, 0, __ATOMIC_RELEASE);
    munmap(m->at, m->bytes);
    __atomic_store_n(&slots[m->slot].taken, 0, __ATOMIC_RELEASE);
    *m = (struct mapping){.at = NULL};
}
