/* Tables that make no sense stop the process when it starts, not at the first call. What they
 * make of values is in api_test.c, that of numbers with a fraction here. */
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/api/api_private.h"
#include "tests/tap.h"

#define END                                                                                        \
    {                                                                                              \
        .name = NULL                                                                               \
    }
#define LIST(...)                                                                                  \
    (const struct api_field[])                                                                     \
    {                                                                                              \
        __VA_ARGS__, END                                                                           \
    }

static int nothing(struct task *t, struct api_call *c, struct json_writer *w)
{
    (void)t, (void)c, (void)w;
    return 0;
}

static bool stops(struct api_route r)
{
    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0) { /* its words are kept from the reader */
        int null = open("/dev/null", O_WRONLY);
        check(null >= 0 && dup2(null, 1) == 1 && dup2(null, 2) == 2);
        api_check_route(&r);
        _exit(0);
    }
    int status = 0;
    check(waitpid(pid, &status, 0) == pid);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static bool stops_with_body(const struct api_field *body)
{
    return stops((struct api_route){"POST", "/api/a", API_USER, nothing, "A", .body = body});
}

static bool stops_with_query(const struct api_field *query)
{
    return stops((struct api_route){"GET", "/api/a", API_USER, nothing, "A", .query = query});
}

static bool stops_with_reply(const struct api_field *reply)
{
    return stops((struct api_route){"GET", "/api/a", API_USER, nothing, "A", .reply = reply});
}

/* What is wrong with {"a": …}, of 0 to 2; "": nothing. */
static struct str number_problem(struct arena *a, const char *text)
{
    const struct api_field *fields = LIST({"a", API_REAL, .most = 2});
    const struct json *body;
    struct api_problem p;
    check(json_parse(a, str_of(text), &body, NULL) == 0);
    return api_check_body(a, fields, body, &p) ? str_of(p.message) : STR("");
}

static void test_numbers(void)
{
    struct arena a;
    arena_init(&a);
    is_str(number_problem(&a, "{\"a\":0.5}"), STR(""), "a number with a fraction");
    is_str(number_problem(&a, "{\"a\":2}"), STR(""), "and one without");
    ok(number_problem(&a, "{\"a\":2.01}").n > 0, "one that is too large");
    ok(number_problem(&a, "{\"a\":-1}").n > 0, "one that is too small");
    ok(number_problem(&a, "{\"a\":\"1\"}").n > 0, "a text");
    ok(stops_with_body(LIST({"a", API_REAL, .about = "x"})), "one without limit");
    arena_release(&a);
}

/* What is wrong with {"a": …}, of texts of 4 characters or arrays of 2; "": nothing. */
static struct str any_problem(struct arena *a, const char *text)
{
    const struct api_field *fields = LIST({"a", API_ANY, .most = 2, .item_most = 4});
    const struct json *body;
    struct api_problem p;
    check(json_parse(a, str_of(text), &body, NULL) == 0);
    return api_check_body(a, fields, body, &p) ? str_printf(a, "%s: %s", p.field, p.message)
                                               : STR("");
}

static void test_any(void)
{
    static const char *const good[] = {"{\"a\":null}", "{\"a\":1.5}",          "{\"a\":true}",
                                       "{\"a\":\"\"}", "{\"a\":[\"abcd\",1]}", "{\"a\":[]}"};
    struct arena a;
    arena_init(&a);
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        is_str(any_problem(&a, good[i]), STR(""), "%s", good[i]);
    is_str(any_problem(&a, "{}"), STR("a: is missing"), "none is missing");
    is_str(any_problem(&a, "{\"a\":\"abcde\"}"), STR("a: must have at most 4 characters"), "long");
    is_str(any_problem(&a, "{\"a\":[1,\"abcde\"]}"), STR("a[1]: must have at most 4 characters"),
           "an item that is too long");
    is_str(any_problem(&a, "{\"a\":[1,2,3]}"), STR("a: must have at most 2 items"), "many");
    is_str(any_problem(&a, "{\"a\":{}}"), STR("a: must be a text, a number, true, false or null"),
           "an object");
    is_str(any_problem(&a, "{\"a\":[[]]}"),
           STR("a[0]: must be a text, a number, true, false or null"), "arrays in arrays");
    arena_release(&a);
}

int main(void)
{
    test_numbers();
    test_any();
    const struct api_field *text = LIST({"a", API_TEXT, .most = 5});
    ok(!stops_with_body(text) && !stops_with_query(text) && !stops_with_reply(text), "a good one");
    ok(!stops_with_reply(LIST({"a", API_TEXT, .about = "x"}, {"b", API_TIME, .about = "y"})),
       "what we say needs no limits");
    ok(stops_with_body(LIST({"a", API_TEXT, .about = "x"})), "a text without limit");
    ok(stops_with_body(LIST({"a", API_TEXT, .least = 6, .most = 5})), "limits the wrong way round");
    ok(stops_with_body(LIST({"a", API_INT, .about = "x"})), "a number without limit");
    ok(stops_with_body(LIST({"a", API_TEXTS, .most = 5})), "texts without a limit of their own");
    ok(stops_with_body(LIST({"a", API_TIME, .about = "x"})), "a time in a request");
    ok(stops_with_body(LIST({"a", API_INTS, .about = "x"})), "numbers in a request");
    ok(stops_with_body(LIST({"a", API_OBJECT, .about = "x"})), "an object without fields");
    ok(stops_with_body(LIST({"a", API_ANY, .most = 5})), "any value without a limit of texts");
    const struct api_field *members =
        LIST({"a", API_MEMBERS, .fields = LIST({"b", API_INT, .about = "x"})});
    ok(stops_with_body(members) && !stops_with_reply(members), "members are for replies");
    ok(stops_with_body(LIST({"a", API_TEXT, .most = 5}, {"a", API_BOOL, .about = "x"})),
       "a field that is there twice");
    ok(stops_with_body(LIST({"a", API_OBJECT, .fields = LIST({"b", API_INT, .about = "x"})})),
       "something wrong further in");
    ok(!stops_with_reply(LIST({"a", API_TEXT, .bytes = sizeof(struct str)},
                              {"b", API_INTS, .bytes = 2 * sizeof(int64_t)})),
       "values that lie in a struct");
    ok(stops_with_reply(LIST({"a", API_INT, .bytes = sizeof(int)})), "a number of another size");
    ok(stops_with_reply(LIST({"a", API_TEXTS, .bytes = sizeof(struct str)})), "a list in a struct");
    ok(stops_with_body(LIST({"a", API_BOOL, .bytes = sizeof(bool)})), "a place in a request");
    ok(stops_with_query(LIST({"a", API_OBJECT, .fields = LIST({"b", API_BOOL, .about = "x"})})),
       "an object as a parameter");
    ok(stops_with_reply(LIST({"success", API_BOOL, .about = "x"})), "a member that is ours");
    ok(stops((struct api_route){"GET", "/api/a", API_USER, nothing, "A", .body = text}),
       "a body of GET");
    ok(stops((struct api_route){"POST", "/api/a", API_USER, nothing, "A", text, text, .status = 0}),
       "one name in the body and in the query");
    ok(stops((struct api_route){"GET", "/a", API_USER, nothing, "A", .status = 0}), "another path");
    ok(stops((struct api_route){"GET", "/api/admin/a", API_EITHER, nothing, "A", .status = 0}),
       "a route for both kinds where admins are alone");
    ok(stops((struct api_route){"POST", "/api/a", API_EITHER, nothing, "A", .status = 0}),
       "what admins may do, without a name for their log");
    ok(!stops((struct api_route){"POST", "/api/a", API_EITHER, nothing, "A", .audit = "a.b"}),
       "with a name");
    return tap_done();
}
