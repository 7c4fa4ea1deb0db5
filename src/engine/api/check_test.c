/* Tables that make no sense stop the process when it starts, not at the first call. What they
 * make of values is in api_test.c. */
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

int main(void)
{
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
    return tap_done();
}
