#include "engine/setup/endpoint.h"

#include <stdlib.h>

#include "tests/tap.h"

static struct arena arena;

static void test_addresses(void)
{
    static const struct {
        const char *url, *called;
    } cases[] = {
        {"https://host/v1", "https://host/v1/chat/completions"},
        {"https://host", "https://host/chat/completions"},
        {"http://host:8000/v1//", "http://host:8000/v1/chat/completions"},
        {"https://host/v1/chat/completions", "https://host/v1/chat/completions"},
        {"https://host/v1/chat/completions/", "https://host/v1/chat/completions"},
        {"https://host/openai/deployments/x?api-version=2024-06-01",
         "https://host/openai/deployments/x/chat/completions?api-version=2024-06-01"},
        {"https://host/x/chat/completions?api-version=1&b=/",
         "https://host/x/chat/completions?api-version=1&b=/"},
        {"https://host?v=1", "https://host/chat/completions?v=1"},
        {"https://host/v1?", "https://host/v1/chat/completions?"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ok(!endpoint_url_problem(&arena, cases[i].url), "%s", cases[i].url);
        is_str(str_of(endpoint_url(&arena, cases[i].url, "/chat/completions")),
               str_of(cases[i].called), "is called at its address");
    }
}

static void test_base_addresses(void)
{
    ok(!endpoint_base_problem(&arena, "https://host:6333/below"), "an address without a query");
    is_str(str_of(endpoint_base_problem(&arena, "https://host?a=b")),
           STR("leave \"?\" and what follows it out: it would not be sent"), "one with it");
    is_str(str_of(endpoint_base_problem(&arena, "host:6333")),
           STR("expected is http://… or https://…"), "none");
    ok(endpoint_is_plain("http://qdrant.example:6333") && endpoint_is_plain("http://10.0.0.1") &&
           endpoint_is_plain("http://[2001:db8::1]:6333"),
       "what is sent to other machines can be read on the way");
    ok(!endpoint_is_plain("https://qdrant.example") &&
           !endpoint_is_plain("http://127.0.0.1:6333") && !endpoint_is_plain("http://[::1]:6333") &&
           !endpoint_is_plain("http://localhost"),
       "not over TLS, nor on this one");
    ok(!endpoint_plain_key_problem(&arena, "qd-12_34=") &&
           endpoint_plain_key_problem(&arena, "two words") &&
           endpoint_plain_key_problem(&arena, "line\nline") &&
           endpoint_plain_key_problem(&arena, "k\xC3\xBCy"),
       "a key is one word of ASCII");
}

static void test_wrong_addresses(void)
{
    static const struct {
        const char *url, *problem;
    } cases[] = {
        {"ftp://host/v1", "expected is http://… or https://…"},
        {"host/v1", "expected is http://… or https://…"},
        {"https:///v1", "expected is http://… or https://…"},
        {"https://user:pw@host/v1",
         "leave user and password before \"@\" out: they would not be sent"},
        {"https://user@host", "leave user and password before \"@\" out: they would not be sent"},
        {"https://host/v1#top", "leave \"#\" and what follows it out: it would not be sent"},
        {"https://host:99999/v1", "its host, port or path cannot be read"},
        {"https://ho st/v1", "its host, port or path cannot be read"},
        {"https://host/a b", "its host, port or path cannot be read"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        is_str(str_of(endpoint_url_problem(&arena, cases[i].url)), str_of(cases[i].problem), "%s",
               cases[i].url);
    ok(!endpoint_url_problem(&arena, "https://host/@me?a=@"), "an @ behind the host is no user");
}

static void test_headers(void)
{
    size_t count;
    struct str *lines =
        endpoint_headers(&arena, "{\"X-Team\": \"biology\", \"X-Empty\": \"\"}", &count);
    is_int((int64_t)count, 2, "two headers");
    is_str(lines[0], STR("X-Team: biology"), "one");
    is_str(lines[1], STR("X-Empty: "), "the other");
    endpoint_headers(&arena, "", &count);
    is_int((int64_t)count, 0, "none");
    static const char *const wrong[] = {"[]",
                                        "{\"a b\": \"x\"}",
                                        "{\"\": \"x\"}",
                                        "{\"a\": 1}",
                                        "{\"a\": \"x\\r\\nb: y\"}",
                                        "{\"content-length\": \"3\"}",
                                        "{\"Content-Type\": \"text/plain\"}"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ok(endpoint_headers_problem(&arena, wrong[i]), "%s is refused", wrong[i]);
    is_str(endpoint_key_line(&arena, "authorization", STR("k")), STR("authorization: Bearer k"),
           "a bearer token");
    is_str(endpoint_key_line(&arena, "api-key", STR("k")), STR("api-key: k"), "the key alone");
    ok(endpoint_key_header_problem(&arena, "Content-Length"), "a header of the client's own");
}

static void goes_through(const char *setting, const char *url, const char *proxy)
{
    const char *problem, *got = endpoint_proxy(&arena, setting, url, &problem);
    ok(!problem, "no problem");
    is_str(str_of(got ? got : "directly"), str_of(proxy), "%s, \"%s\"", url, setting);
}

static void test_proxy(void)
{
    goes_through("", "https://api.example/v1", "directly");
    goes_through("http://me:secret@P.example:3128", "https://api.example/v1",
                 "p.example:3128 (ai.proxy)");
    setenv("HTTPS_PROXY", "http://me:secret@q.example:3128", 1);
    goes_through("", "https://api.example/v1", "q.example:3128 (HTTPS_PROXY)");
    goes_through("", "http://api.example/v1", "directly");
    goes_through("none", "https://api.example/v1", "directly");
    setenv("HTTPS_PROXY", "http://me:secret@q.example", 1);
    const char *problem;
    ok(!endpoint_proxy(&arena, "", "https://api.example/v1", &problem), "one that is wrong");
    ok(problem && !strncmp(problem, "HTTPS_PROXY is not accepted: its port is missing", 48) &&
           !strstr(problem, "secret"),
       "is named, without its password: %s", problem);
    unsetenv("HTTPS_PROXY");
}

int main(void)
{
    arena_init(&arena);
    test_proxy();
    test_addresses();
    test_base_addresses();
    test_wrong_addresses();
    test_headers();
    arena_release(&arena);
    return tap_done();
}
