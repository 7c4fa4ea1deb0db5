#include "tool/sim/sim_embeddings.h"

#include "base/err.h"
#include "tests/tap.h"

static struct arena arena;

static const struct json *parse(struct str text)
{
    const struct json *j = NULL;
    return json_parse(&arena, text, &j, NULL) ? NULL : j;
}

static struct sim_embeddings read(const char *text)
{
    struct sim_embeddings e = {.count = 0};
    const char *why = "";
    ok(sim_embeddings_read(parse(str_of(text)), &e, &why) == 0, "read: %.60s %s", text, why);
    return e;
}

static void test_read(void)
{
    struct sim_embeddings e = read("{\"model\": \"m\", \"input\": \"石墨烯\"}");
    ok(e.count == 1 && e.dimensions == 256 && !e.base64, "one text, 256 dimensions, numbers");
    is_int(e.tokens, 3, "its tokens");
    e = read("{\"model\": \"m-768\", \"input\": [\"four\", \"letters\"], \"dimensions\": null,"
             " \"encoding_format\": \"base64\", \"user\": \"u\"}");
    ok(e.count == 2 && e.dimensions == 768 && e.base64, "two, 768 by the model's name, base64");
    is_int(e.tokens, 3, "their tokens");
    e = read("{\"model\": \"m-768\", \"input\": [\"x\"], \"dimensions\": 5}");
    is_int((int64_t)e.dimensions, 5, "what the request says outranks the name");
}

static void is_wrong(struct str text, const char *part)
{
    struct sim_embeddings e;
    const char *why = "";
    int err = sim_embeddings_read(parse(text), &e, &why);
    ok(err == ERR_INVALID && strstr(why, part), "refused: %.*s (%s)",
       text.n < 60 ? (int)text.n : 60, text.p, why);
}

/* A request with count texts of n letters each. */
static struct str request(size_t count, size_t n, const char *more)
{
    struct buf b;
    buf_init(&b);
    buf_add_lit(&b, "{\"model\": \"m\", \"input\": [");
    for (size_t i = 0; i < count; i++) {
        buf_add_str(&b, i ? STR(",\"") : STR("\""));
        memset(buf_reserve(&b, n), 'x', n);
        buf_added(&b, n);
        buf_add_char(&b, '"');
    }
    buf_printf(&b, "]%s}", more);
    struct str out = str_dup(&arena, buf_str(&b));
    buf_release(&b);
    return out;
}

static void test_wrong(void)
{
    is_wrong(STR("[]"), "object");
    is_wrong(STR("{\"input\": \"x\"}"), "model");
    const char *inputs[] = {"", ", \"input\": null", ", \"input\": 7", ", \"input\": []",
                            ", \"input\": {}"};
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
        is_wrong(str_printf(&arena, "{\"model\": \"m\"%s}", inputs[i]), "input must be");
    is_wrong(STR("{\"model\": \"m\", \"input\": \"\"}"), "not empty");
    is_wrong(STR("{\"model\": \"m\", \"input\": [\"a\", \"\"]}"), "not empty");
    is_wrong(STR("{\"model\": \"m\", \"input\": [\"a\", 1]}"), "string");
    const char *options[] = {"\"dimensions\": 0", "\"dimensions\": 4097", "\"dimensions\": \"9\"",
                             "\"encoding_format\": \"hex\"", "\"encoding_format\": 1"};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        is_wrong(str_printf(&arena, "{\"model\": \"m\", \"input\": \"x\", %s}", options[i]),
                 "must be");
    struct sim_embeddings e;
    const char *why;
    ok(sim_embeddings_read(parse(request(2048, 1, "")), &e, &why) == 0, "2,048 texts are taken");
    is_wrong(request(2049, 1, ""), "2048");
    ok(sim_embeddings_read(parse(request(1, 32768, "")), &e, &why) == 0, "8,192 tokens, too");
    is_wrong(request(1, 32769, ""), "8192 tokens");
    is_wrong(request(2048, 1, ", \"dimensions\": 4096"), "too many strings");
}

/* --- replies --- */

#define COUNT 3
static const char three[] = "{\"model\": \"m\", \"input\": [\"water\", \"nickel\", \"mice\"],"
                            " \"dimensions\": 4%s}";

static struct str reply(enum sim_embed_fault fault, uint64_t dice, bool base64)
{
    const char *format = base64 ? ", \"encoding_format\": \"base64\"" : "";
    struct sim_embeddings e;
    const char *why;
    struct buf out;
    check(sim_embeddings_read(parse(str_printf(&arena, three, format)), &e, &why) == 0);
    buf_init(&out);
    sim_embeddings_write(&arena, &e, fault, dice, &out);
    struct str text = str_dup(&arena, buf_str(&out));
    buf_release(&out);
    return text;
}

struct seen {
    int entries, of[COUNT];  /* vectors of each input */
    int whole, nulls, zeros; /* whole: vectors of four numbers */
    bool ordered, right;     /* right: the vectors are those of sim_embed */
};

static bool is_right(const struct json *vector, int64_t index)
{
    static const char *const texts[COUNT] = {"water", "nickel", "mice"};
    float want[4];
    size_t i = 0;
    sim_embed(str_of(texts[index]), want, 4);
    json_each (n, vector) {
        double got = n->type == JSON_REAL ? n->d : 9;
        double off = got - (double)want[i++ % 4];
        if (off > 1e-7 || off < -1e-7)
            return false;
    }
    return i == 4;
}

static struct seen look(const struct json *data)
{
    struct seen s = {.ordered = true, .right = true};
    json_each (entry, data) {
        int64_t index = -1;
        const struct json *vector = json_get(entry, "embedding");
        check(json_int(json_get(entry, "index"), &index) && index >= 0 && index < COUNT);
        s.ordered = s.ordered && index == s.entries;
        s.of[index]++;
        s.entries++;
        s.whole += vector->count == 4;
        s.right = s.right && is_right(vector, index);
        int zeros = 0;
        json_each (n, vector) {
            s.nulls += n->type == JSON_NULL;
            zeros += n->type == JSON_REAL && n->d == 0;
        }
        s.zeros += zeros == 4;
    }
    return s;
}

static struct seen seen(enum sim_embed_fault fault, uint64_t dice)
{
    return look(json_get(parse(reply(fault, dice, false)), "data"));
}

static void test_reply(void)
{
    const struct json *j = parse(reply(EMBED_RIGHT, 0, false));
    struct seen s = look(json_get(j, "data"));
    int64_t tokens = 0;
    ok(s.entries == COUNT && s.whole == COUNT && s.ordered && s.right, "all vectors, in order");
    is_str(json_str(json_get(j, "model")), STR("m"), "the model");
    ok(json_int(json_get(json_get(j, "usage"), "total_tokens"), &tokens) && tokens == 5, "usage");
}

static void test_faults(void)
{
    for (uint64_t dice = 0; dice < COUNT; dice++) {
        is_int(seen(EMBED_LENGTH, dice).whole, COUNT - 1, "one is shorter");
        struct seen s = seen(EMBED_MISSING, dice);
        ok(s.entries == COUNT - 1 && s.of[dice] == 0, "one is missing");
        s = seen(EMBED_TWICE, dice);
        ok(s.entries == COUNT && s.of[dice] == 0, "one has the index of another one");
        is_int(seen(EMBED_NULL, dice).nulls, 1, "a number is null");
        is_int(seen(EMBED_ZERO, dice).zeros, 1, "one is nothing but zeros");
        s = seen(EMBED_ORDER, dice);
        ok(s.entries == COUNT && s.right && s.ordered == (dice == COUNT - 1), "another order");
        ok(!parse(reply(EMBED_NAN, dice, false)), "NaN is no JSON");
        ok(str_find(reply(EMBED_NAN, dice, true), STR("AAwH8=")) > 0 ||
               parse(reply(EMBED_NAN, dice, true)),
           "in base64 it is");
    }
}

static void test_kinds(void)
{
    uint32_t kinds = 0;
    struct str bad;
    ok(sim_embed_fault_kinds(STR("length, nan"), &kinds, &bad), "a list is read");
    is_int(kinds, 1 << EMBED_LENGTH | 1 << EMBED_NAN, "each name its bit");
    ok(sim_embed_fault_kinds(STR("all"), &kinds, &bad) && kinds == SIM_EMBED_FAULTS_ALL, "all");
    ok(!sim_embed_fault_kinds(STR("length,short"), &kinds, &bad), "no such kind");
    is_str(bad, STR("short"), "which is named");
    is_int(kinds, SIM_EMBED_FAULTS_ALL, "and nothing is changed");
}

int main(void)
{
    arena_init(&arena);
    test_read();
    test_wrong();
    test_reply();
    test_faults();
    test_kinds();
    arena_release(&arena);
    return tap_done();
}
