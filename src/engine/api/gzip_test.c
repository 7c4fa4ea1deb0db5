/* Which replies of the API are compressed. */
#include "engine/api/api.h"
#include "engine/setup/address.h"
#include "engine/setup/config.h"
#include "tests/tap.h"
#include "wire/http_server/http_harness.h"

static int many(struct task *t, struct api_call *c, struct json_writer *w)
{
    (void)t, (void)c;
    jw_put_array(w, "keys");
    for (int i = 0; i < 100; i++) {
        jw_object(w);
        jw_put_str(w, "key", STR("the ends of a key"));
        jw_end_object(w);
    }
    jw_end_array(w);
    return 0;
}

static int many_lines(struct task *t, struct api_call *c, struct json_writer *w)
{
    (void)w;
    char text[5000];
    memset(text, 'x', sizeof text);
    c->replied = true;
    return http_reply(t, c->x, 200, "text/csv", str_from(text, sizeof text));
}

static const struct api_field word_fields[] = {{"key", API_TEXT, .about = "a word"}, API_END};
static const struct api_field key_fields[] = {{"key", API_TEXT, .secret = true}, API_END};
static const struct api_field words_reply[] = {{"keys", API_OBJECTS, .fields = word_fields},
                                               API_END};
static const struct api_field keys_reply[] = {{"keys", API_OBJECTS, .fields = key_fields}, API_END};

static int events(struct task *t, struct api_call *c, struct json_writer *w)
{
    (void)w;
    c->replied = true;
    int err = sse_begin(t, c->x);
    return err ? err : sse_send(t, c->x, NULL, STR("1"));
}

static const struct api_route routes[] = {
    {"GET", "/api/words", API_PUBLIC, many, "Many words", .reply = words_reply},
    {"GET", "/api/keys", API_PUBLIC, many, "Many keys", .reply = keys_reply},
    {"GET", "/api/words.csv", API_PUBLIC, many_lines, "Many lines", .media = "text/csv"},
    {"GET", "/api/keys.csv", API_PUBLIC, many_lines, "Many keys", .media = "text/csv",
     .secret = true},
    {"GET", "/api/events", API_PUBLIC, events, "What happens", .media = "text/event-stream"},
    {.method = NULL},
};
/* Only where no token and no key is in the reply. */
static void compressed(struct task *t, void *arg)
{
    (void)arg;
    static const struct {
        const char *line;
        bool packed;
    } cases[] = {
        {"GET /api/words", true},     {"GET /api/keys", false},    {"GET /api/words.csv", true},
        {"GET /api/keys.csv", false}, {"GET /openapi.json", true}, {"GET /api/events", false},
    };
    static const struct api_application applications[] = {{"long", routes}};
    struct config config = {0};
    struct arena arena;
    struct site site;
    arena_init(&arena);
    struct node node = {.config = &config, .proxies = address_list_new(&arena, "")};
    struct api *api = api_new(&node, applications, 1);
    site_open(t, &site, (struct http_options){0}, NULL, 0, NULL);
    api_serve(api, site.server);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct reply r =
            ask(t, &site,
                str_printf(task_arena(t), "%s HTTP/1.1\r\nHost: h\r\nAccept-Encoding: gzip\r\n\r\n",
                           cases[i].line));
        ok(r.status == 200 && (reply_header(&r, "content-encoding").p != NULL) == cases[i].packed,
           "%s is %scompressed", cases[i].line, cases[i].packed ? "" : "not ");
    }
    site_close(t, &site);
    api_free(api);
    arena_release(&arena);
}

int main(void)
{
    tap_task(compressed, NULL, false);
    return tap_done();
}
