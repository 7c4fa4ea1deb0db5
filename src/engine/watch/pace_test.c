#include "engine/watch/pace.h"

#include "tests/tap.h"

static const struct pace_facts usual = {.papers = 6000,
                                        .workers_min = 10,
                                        .workers_max = 10,
                                        .latency_us = 1000000,
                                        .tokens = 500,
                                        .requests_limit = 6000,
                                        .tokens_limit = 6000000};

static bool within(const struct pace_facts *f, int64_t lo, int64_t hi)
{
    int64_t least = -1, most = -1;
    bool known = pace_range(f, &least, &most);
    return known && least >= lo && least <= most && most <= hi;
}

static void knows(void)
{
    struct pace_facts f = usual;
    ok(within(&f, 600, 1000), "10 workers at a second each: 6,000 papers take ten minutes or more");
    f.requests_limit = 60;
    ok(within(&f, 6000, 8000), "the limit of requests holds them to one a second");
    f = usual;
    f.tokens_limit = 30000;
    ok(within(&f, 6000, 8000), "and so does the limit of tokens");
    f = usual;
    f.requests_limit = 300;
    int64_t alone = 0, shared = 0, least;
    ok(pace_range(&f, &least, &alone), "known");
    f.workers_others = 30;
    ok(pace_range(&f, &least, &shared) && shared > 3 * alone && least == 1200,
       "others use the same permits: it may take four times as long, or no longer");
    f = usual;
    f.papers = 0;
    ok(within(&f, 0, 1), "nothing is left");
    f = (struct pace_facts){.papers = 100,
                            .workers_min = 1,
                            .workers_max = 1,
                            .latency_us = 60000000,
                            .requests_limit = 600,
                            .tokens_limit = 1};
    ok(within(&f, 6000, 8000), "one worker at a minute each: never \"1 s\"");
}

static void does_not_know(void)
{
    struct pace_facts f = usual;
    int64_t least = 7, most = 7;
    f.latency_us = 0;
    ok(!pace_range(&f, &least, &most), "no call was made yet");
    f = usual;
    f.requests_limit = 0;
    ok(!pace_range(&f, &least, &most), "no key may be used");
    f = usual;
    f.workers_min = 0;
    ok(!pace_range(&f, &least, &most), "no worker may work");
    ok(least == 7 && most == 7, "and nothing is said");
}

int main(void)
{
    knows();
    does_not_know();
    return tap_done();
}
