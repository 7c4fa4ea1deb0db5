#include "engine/vectors/qdrant_reply.h"

#include <math.h>

#include "engine/vectors/qdrant_request.h"
#include "tests/tap.h"

static struct arena arena;

#define FINE(result)  "{\"usage\":null,\"time\":0.001,\"status\":\"ok\",\"result\":" result "}"
#define HITS(points)  FINE("{\"points\":[" points "]}")
#define PAYLOAD(more) "\"payload\":{\"owner\":\"7\",\"version\":\"9\"," more "}"
#define REST          "\"chunkIndex\":3,\"flags\":[0,31],\"journal\":5,\"year\":1999"
#define ID            "\"id\":\"00000000-0000-8000-8700-000000000003\""
#define HIT(score)    "{" ID ",\"version\":1,\"score\":" score "," PAYLOAD(REST) "}"

static void test_ids(void)
{
    char id[QDRANT_ID_BYTES];
    qdrant_id(7, 3, id);
    is_str(str_of(id), STR("00000000-0000-8000-8700-000000000003"), "an id");
    qdrant_id(0x0123456789ABCDEF, 0xFEDCBA98, id);
    is_str(str_of(id), STR("01234567-89ab-8cde-8f00-0000fedcba98"), "has all digits of both");
}

static void test_errors(void)
{
    is_str(qdrant_reply_error(&arena, STR("{\"status\":{\"error\":\"no\\u0000 \\nway\"}}")),
           STR("no   way"), "words of an error are one line");
    is_str(qdrant_reply_error(&arena, STR("<html>")), STR(""), "a page has none");
    is_str(qdrant_reply_error(&arena, STR(FINE("true"))), STR(""), "nor has a success");
    char longer[2000] = "{\"status\":{\"error\":\"", *at = longer + strlen(longer);
    for (int i = 0; i < 400; i++, at += 3)
        memcpy(at, "石", 3);
    memcpy(at, "\"}}", 4);
    struct str words = qdrant_reply_error(&arena, str_of(longer));
    ok(words.n == QDRANT_WORDS_MAX && str_utf8_valid(words), "long ones are cut");
}

static void test_changes(void)
{
    bool done = false, yes = false;
    uint64_t count = 0;
    const char *problem = "";
    is_int(qdrant_reply_change(&arena, STR(FINE("{\"operation_id\":1,\"status\":\"completed\"}")),
                               &done, &problem),
           0, "a change");
    ok(done, "is completed");
    is_int(qdrant_reply_change(&arena, STR(FINE("{\"status\":\"acknowledged\"}")), &done, &problem),
           0, "another one");
    ok(!done, "is queued");
    is_int(qdrant_reply_change(&arena, STR(FINE("true")), &done, &problem), ERR_PROTO, "%s",
           "one without a status");
    is_int(qdrant_reply_switch(&arena, STR(FINE("false")), &yes, &problem), 0, "a switch");
    ok(!yes, "is off");
    is_int(qdrant_reply_count(&arena, STR(FINE("{\"count\":12}")), &count, &problem), 0, "a count");
    is_int((int64_t)count, 12, "is read");
    static const char *const wrong[] = {"",
                                        "[",
                                        "null",
                                        "{\"status\":\"ok\"}",
                                        "{\"result\":true}",
                                        "{\"status\":\"error\",\"result\":true}",
                                        FINE("{\"count\":-1}"),
                                        FINE("{\"count\":1.5}"),
                                        FINE("[]")};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        problem = NULL;
        ok(qdrant_reply_count(&arena, str_of(wrong[i]), &count, &problem) == ERR_PROTO && problem,
           "no count: %s: %s", wrong[i], problem);
    }
}

#define CONFIG(vectors, more)                                                                      \
    FINE("{\"config\":{\"params\":{\"vectors\":" vectors "}" more "},\"payload_schema\":{"         \
         "\"owner\":{\"data_type\":\"keyword\"},\"flags\":{\"data_type\":\"integer\"},"            \
         "\"journal\":{\"data_type\":\"integer\"},\"year\":{\"data_type\":\"integer\"}}}")
#define COSINE "{\"size\":24,\"distance\":\"Cosine\"}"

static void test_info(void)
{
    struct qdrant_info info;
    const char *problem = "";
    struct str text = STR(CONFIG(COSINE, ",\"metadata\":{\"model\":\"m\"}"));
    is_int(qdrant_reply_info(&arena, text, &info, &problem), 0, "a collection");
    ok(info.dimension == 24 && info.indexed && str_eq(info.model, STR("m")), "is one of ours");
    is_int(qdrant_reply_info(&arena, STR(CONFIG(COSINE, "")), &info, &problem), 0,
           "without a model");
    ok(info.dimension == 24 && !info.model.p, "it may be");
    is_int(qdrant_reply_info(&arena,
                             STR(FINE("{\"config\":{\"params\":{\"vectors\":" COSINE
                                      "}},\"payload_schema\":{}}")),
                             &info, &problem),
           0, "without indexes");
    ok(!info.indexed, "which is noticed");
    static const char *const others[] = {
        CONFIG("{\"size\":24,\"distance\":\"Euclid\"}", ""), CONFIG("{\"text\":" COSINE "}", ""),
        CONFIG("{\"size\":0,\"distance\":\"Cosine\"}", ""),
        CONFIG("{\"size\":5000,\"distance\":\"Cosine\"}", ""), CONFIG("{}", "")};
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        ok(qdrant_reply_info(&arena, str_of(others[i]), &info, &problem) == 0 && !info.dimension,
           "vectors of another kind: case %zu", i);
    is_int(qdrant_reply_info(&arena, STR(FINE("{\"config\":[]}")), &info, &problem), ERR_PROTO,
           "no collection");
}

static void test_hits(void)
{
    struct point_hit hits[3];
    size_t count = 0;
    const char *problem = "";
    struct str text = STR(HITS(HIT("0.5")));
    is_int(qdrant_reply_hits(&arena, text, 3, hits, &count, &problem), 0, "a hit");
    const struct point *p = &hits[0].point;
    ok(count == 1 && p->owner == 7 && p->version == 9 && p->part == 3 &&
           p->tags.flags == (1u | 1u << 31) && p->tags.journal == 5 && p->tags.year == 1999 &&
           fabsf(hits[0].score - 0.5f) < 1e-6f,
       "has all that was stored");
    text = STR(HITS("{\"id\":\"ffffffff-ffff-8fff-8f00-000000000000\",\"score\":1,\"payload\":{"
                    "\"owner\":\"18446744073709551615\",\"version\":\"18446744073709551615\","
                    "\"chunkIndex\":0,\"flags\":[],\"journal\":0,\"year\":0}}," HIT("0.25")));
    is_int(qdrant_reply_hits(&arena, text, 3, hits, &count, &problem), 0, "two of them");
    ok(count == 2 && hits[0].point.owner == UINT64_MAX && hits[0].point.version == UINT64_MAX,
       "no digit is lost");
    text = STR(HITS(HIT("0.25") "," HIT("0.5")));
    is_int(qdrant_reply_hits(&arena, text, 3, hits, &count, &problem), 0, "one of them twice");
    ok(count == 1 && fabsf(hits[0].score - 0.5f) < 1e-6f, "counts once, with its best score");
}

static void test_strange_hits(void)
{
    struct point_hit hits[3];
    size_t count;
    const char *problem = "";
    static const char *const others[] = {
        "{\"id\":7,\"score\":0.5," PAYLOAD(REST) "}",
        "{\"id\":\"00000000-0000-8000-8700-000000000004\",\"score\":0.5," PAYLOAD(REST) "}",
        "{" ID ",\"score\":0.5}",
        "{" ID ",\"score\":0.5,\"payload\":{\"title\":\"x\"}}",
        "{" ID
        ",\"score\":0.5," PAYLOAD("\"chunkIndex\":-3,\"flags\":[],\"journal\":5,\"year\":1") "}",
        "{" ID
        ",\"score\":0.5," PAYLOAD("\"chunkIndex\":3,\"flags\":[32],\"journal\":5,\"year\":1") "}",
        "{" ID
        ",\"score\":0.5," PAYLOAD("\"chunkIndex\":3,\"flags\":1,\"journal\":5,\"year\":1") "}",
        "{" ID
        ",\"score\":0.5," PAYLOAD("\"chunkIndex\":3,\"flags\":[],\"journal\":65536,\"year\":1") "}",
    };
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
        struct str text = str_printf(&arena, HITS("%s," HIT("0.1")), others[i]);
        ok(qdrant_reply_hits(&arena, text, 3, hits, &count, &problem) == 0 && count == 1 &&
               hits[0].score < 0.2f,
           "a point of another program is passed over: case %zu", i);
    }
    static const char *const wrong[] = {
        FINE("[]"),          FINE("{\"points\":{}}"),
        HITS(HIT("null")),   HITS(HIT("\"0.5\"")),
        HITS(HIT("1e300")),  HITS(HIT("-2")),
        HITS("1"),           HITS(HIT("0.1") "," HIT("0.2") "," HIT("0.3") "," HIT("0")),
        HITS(HIT("0.1")) "x"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        problem = NULL;
        ok(qdrant_reply_hits(&arena, str_of(wrong[i]), 3, hits, &count, &problem) == ERR_PROTO &&
               problem,
           "a wrong reply, case %zu: %s", i, problem);
    }
}

int main(void)
{
    arena_init(&arena);
    test_ids();
    test_errors();
    test_changes();
    test_info();
    test_hits();
    test_strange_hits();
    arena_release(&arena);
    return tap_done();
}
