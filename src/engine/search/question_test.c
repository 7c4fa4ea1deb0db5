#include "engine/search/question.h"

#include <stdio.h>

#include "tests/tap.h"

#define N 8

static void fill(float *v, float x)
{
    for (size_t i = 0; i < N; i++)
        v[i] = x + (float)i;
}

int main(void)
{
    struct questions *q = questions_new(4000);
    float v[N], got[N] = {0};
    fill(v, 1);
    ok(!questions_find(q, 1, STR("what"), N, got), "a question that was not asked");
    questions_keep(q, 1, STR("what"), v, N);
    ok(questions_find(q, 1, STR("what"), N, got) && got[0] == 1 && got[N - 1] == N, "one that was");
    ok(!questions_find(q, 2, STR("what"), N, got), "not for another space");
    ok(!questions_find(q, 1, STR("what"), N - 1, got), "nor of another dimension");
    ok(!questions_find(q, 1, STR("wha"), N, got), "nor another question");
    fill(v, 5);
    questions_keep(q, 1, STR("what"), v, N);
    ok(questions_find(q, 1, STR("what"), N, got) && got[0] == 5, "the newer vector counts");
    size_t one = questions_bytes(q);
    for (int i = 0; i < 100; i++) {
        char text[16];
        snprintf(text, sizeof text, "q%03d", i);
        questions_keep(q, 1, str_of(text), v, N);
        if (i % 2)
            ok(questions_find(q, 1, STR("what"), N, got) || i > 99, "what is used stays: %d", i);
    }
    ok(questions_bytes(q) <= 4000 && questions_bytes(q) > one, "its size is bounded");
    ok(!questions_find(q, 1, STR("q000"), N, got), "what was used longest ago goes");
    ok(questions_find(q, 1, STR("q099"), N, got), "the last one is there");
    char large[5000];
    memset(large, 'x', sizeof large);
    questions_keep(q, 1, str_from(large, sizeof large), v, N);
    ok(!questions_find(q, 1, str_from(large, sizeof large), N, got),
       "what is too large is not kept");
    ok(questions_find(q, 1, STR("q099"), N, got), "and pushes nothing out");
    questions_free(q);
    return tap_done();
}
