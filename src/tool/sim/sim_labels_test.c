#include "tool/sim/sim_labels.h"

#include "tests/tap.h"

static struct arena arena;

static int label_of(const struct map *l, const char *doi)
{
    bool relevant;
    return sim_labels_get(&arena, l, str_of(doi), &relevant) ? relevant : -1;
}

static void test_lines(void)
{
    const char *why;
    struct map *l = sim_labels_read(&arena,
                                    STR("\xEF\xBB\xBF"
                                        "doi,relevant\r\n"
                                        "# by hand\n"
                                        "10.1/a,1\r\n"
                                        "\n"
                                        " 10.1/B , 0 \n"
                                        "\"10.1/c,d\",1\n"
                                        "\"10.1/\"\"e\",\"1\"\n"
                                        "10.1/last,0"),
                                    &why);
    if (!ok(l != NULL, "a file with all that may be in it"))
        return;
    is_int((int64_t)map_count(l), 5, "five labels");
    is_int(label_of(l, "10.1/a"), 1, "relevant");
    is_int(label_of(l, "10.1/b"), 0, "not relevant; case is ignored");
    is_int(label_of(l, "10.1/c,d"), 1, "a comma in quotes");
    is_int(label_of(l, "10.1/\"e"), 1, "a quote in quotes");
    is_int(label_of(l, "10.1/last"), 0, "the last line needs no end");
    is_int(label_of(l, "doi"), -1, "the heading is no label");
    map_free(l);
}

static void is_wrong(const char *text, const char *line)
{
    const char *why = "";
    struct map *l = sim_labels_read(&arena, str_of(text), &why);
    ok(!l && str_starts(str_of(why), str_of(line)), "refused: %s (%s)", line, why);
    map_free(l);
}

int main(void)
{
    arena_init(&arena);
    test_lines();
    is_wrong("10.1/a,1\n10.1/b\n", "line 2:");
    is_wrong("10.1/a,yes\n", "line 1:");
    is_wrong("\n\n,1\n", "line 3:");
    is_wrong("10.1/a,\n", "line 1:");
    arena_release(&arena);
    return tap_done();
}
