#include "tool/sim/sim_fault.h"

#include "tests/tap.h"

#define REQUESTS 100000

static void test_kinds(void)
{
    uint32_t kinds = 7;
    struct str bad;
    ok(sim_fault_kinds(STR("429, timeout,cut"), &kinds, &bad), "a list is read");
    is_int(kinds, 1 << FAULT_LIMITED | 1 << FAULT_TIMEOUT | 1 << FAULT_CUT, "each name its bit");
    ok(sim_fault_kinds(STR("all"), &kinds, &bad) && kinds == SIM_FAULTS_ALL, "all of them");
    ok(!sim_fault_kinds(STR("429,none"), &kinds, &bad), "none is not a fault");
    is_str(bad, STR("none"), "and is named");
    is_int(kinds, SIM_FAULTS_ALL, "a wrong list changes nothing");
    ok(!sim_fault_kinds(STR(""), &kinds, &bad), "an empty list is wrong");
}

static void test_rate(void)
{
    struct sim_faults f = {.rate = 0.05, .kinds = SIM_FAULTS_ALL, .seed = 7};
    int of_kind[FAULT_COUNT] = {0};
    for (uint64_t i = 0; i < REQUESTS; i++)
        of_kind[sim_fault_pick(&f, i).fault]++;
    int failed = REQUESTS - of_kind[FAULT_NONE];
    ok(failed > 4700 && failed < 5300, "about one in twenty fails (%d)", failed);
    int share = failed / (FAULT_COUNT - 1);
    for (int k = FAULT_NONE + 1; k < FAULT_COUNT; k++)
        ok(of_kind[k] > share * 8 / 10 && of_kind[k] < share * 12 / 10, "%s has its share (%d)",
           sim_fault_name((enum sim_fault)k), of_kind[k]);
}

static void test_bounds(void)
{
    struct sim_faults never = {.rate = 0, .kinds = SIM_FAULTS_ALL, .seed = 7};
    struct sim_faults always = {.rate = 1, .kinds = 1u << FAULT_CUT, .seed = 7};
    struct sim_faults without = {.rate = 1, .kinds = 0, .seed = 7};
    int wrong = 0;
    for (uint64_t i = 0; i < REQUESTS; i++) {
        wrong += sim_fault_pick(&never, i).fault != FAULT_NONE;
        wrong += sim_fault_pick(&always, i).fault != FAULT_CUT;
        wrong += sim_fault_pick(&without, i).fault != FAULT_NONE;
    }
    is_int(wrong, 0, "never is never, always is always, and only what was asked for");
}

static void test_seed(void)
{
    struct sim_faults a = {.rate = 0.5, .kinds = SIM_FAULTS_ALL, .seed = 1}, b = a, c = a;
    c.seed = 2;
    int other = 0, same = 0;
    for (uint64_t i = 0; i < 1000; i++) {
        struct sim_fate fa = sim_fault_pick(&a, i), fb = sim_fault_pick(&b, i);
        same += fa.fault == fb.fault && fa.dice == fb.dice;
        other += fa.fault != sim_fault_pick(&c, i).fault;
    }
    is_int(same, 1000, "the same seed goes the same way");
    ok(other > 300, "another seed another way");
}

static void test_delay(void)
{
    struct sim_faults f = {.seed = 3};
    int64_t least = INT64_MAX, most = 0;
    for (uint64_t i = 0; i < 10000; i++) {
        struct sim_fate fate = sim_fault_pick(&f, i);
        int64_t ms = sim_fault_delay_ms(&fate, 100, 20);
        least = ms < least ? ms : least;
        most = ms > most ? ms : most;
    }
    is_int(least, 100, "never less than the latency");
    is_int(most, 120, "never more than the jitter on top");
}

int main(void)
{
    test_kinds();
    test_rate();
    test_bounds();
    test_seed();
    test_delay();
    return tap_done();
}
