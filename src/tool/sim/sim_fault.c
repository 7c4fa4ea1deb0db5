#include "tool/sim/sim_fault.h"

static const char *const names[FAULT_COUNT] = {
    [FAULT_NONE] = "none",         [FAULT_LIMITED] = "429",
    [FAULT_ERROR] = "500",         [FAULT_OVERLOADED] = "503",
    [FAULT_TIMEOUT] = "timeout",   [FAULT_CUT] = "cut",
    [FAULT_GARBAGE] = "garbage",   [FAULT_TRICKLE] = "trickle",
    [FAULT_FENCED] = "fenced",     [FAULT_UNREADABLE] = "unreadable",
    [FAULT_THINKING] = "thinking", [FAULT_CLIPPED] = "clipped",
    [FAULT_WRAPPED] = "wrapped",
};

const char *sim_fault_name(enum sim_fault f)
{
    return names[f];
}

static bool find_kind(struct str name, uint32_t *kinds)
{
    if (str_eq(name, STR("all"))) {
        *kinds |= SIM_FAULTS_ALL;
        return true;
    }
    for (int f = FAULT_NONE + 1; f < FAULT_COUNT; f++)
        if (str_eq(name, str_of(names[f]))) {
            *kinds |= 1u << f;
            return true;
        }
    return false;
}

bool sim_fault_kinds(struct str list, uint32_t *kinds, struct str *bad)
{
    uint32_t found = 0;
    while (list.p) {
        struct str name = str_trim(str_cut(&list, ','));
        if (!find_kind(name, &found)) {
            *bad = name;
            return false;
        }
    }
    *kinds = found;
    return true;
}

/* splitmix64's finisher: every bit of x reaches every bit of the result. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

static enum sim_fault nth_kind(uint32_t kinds, unsigned n)
{
    while (n--)
        kinds &= kinds - 1;
    return (enum sim_fault)__builtin_ctz(kinds);
}

struct sim_fate sim_fault_pick(const struct sim_faults *f, uint64_t number)
{
    uint64_t first = mix(f->seed + number * 0x9E3779B97F4A7C15u);
    struct sim_fate fate = {FAULT_NONE, mix(first + 1)};
    double chance = (double)(first >> 11) * 0x1p-53; /* 0 to 1, 1 excluded */
    if (f->kinds && chance < f->rate) {
        unsigned count = (unsigned)__builtin_popcount(f->kinds);
        fate.fault = nth_kind(f->kinds, (unsigned)(mix(first + 2) % count));
    }
    return fate;
}

int64_t sim_fault_delay_ms(const struct sim_fate *fate, int64_t base_ms, int64_t jitter_ms)
{
    if (jitter_ms == 0)
        return base_ms;
    return base_ms + (int64_t)(mix(fate->dice) % (uint64_t)(jitter_ms + 1));
}
