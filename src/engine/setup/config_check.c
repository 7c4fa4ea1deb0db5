/* What no setting alone can tell: files that must be there, and settings that contradict each
 * other. */
#include <errno.h>

#include "base/err.h"
#include "base/file.h"
#include "engine/setup/config.h"
#include "engine/setup/endpoint.h"
#include "wire/redis/redis_url.h"
#include "wire/sql/sql_url.h"

#define PEM_FILE_BYTES_MAX (64 * 1024 * 1024)

/* Files of TLS are read at the first call: without this every one of them would fail. */
static const char *pem_file_problem(struct arena *a, const char *path, const char *what)
{
    struct str text;
    int err = file_read(a, path, PEM_FILE_BYTES_MAX, &text);
    if (err == ERR_LIMIT)
        return arena_printf(a, "is larger than %d bytes", PEM_FILE_BYTES_MAX);
    if (err)
        return arena_printf(a, "cannot be read: %s", strerror(errno));
    bool found = str_find(text, STR("-----BEGIN ")) >= 0;
    return found ? NULL : arena_printf(a, "has no %s in it", what);
}

static const char *mysql_ca_file(struct arena *a, const struct config *c)
{
    struct sql_url url;
    bool named = *c->mysql_url && !sql_url_parse(a, c->mysql_url, &url) && url.ca_file;
    return named ? url.ca_file : "";
}

static const char *redis_ca_file(struct arena *a, const struct config *c)
{
    struct redis_url url;
    bool named = *c->redis_url && !redis_url_parse(a, c->redis_url, &url) && url.ca_file;
    return named ? url.ca_file : "";
}

static const char *files_problem(struct arena *a, const struct config *c)
{
    const struct {
        const char *key, *path, *what;
    } files[] = {{"ai.ca_file", c->ai_ca_file, "certificate"},
                 {"ai.cert_file", c->ai_cert_file, "certificate"},
                 {"ai.key_file", c->ai_key_file, "key"},
                 {"vectors.ca_file", c->vectors_ca_file, "certificate"},
                 {"alert.ca_file", c->alert_ca_file, "certificate"},
                 {"mysql.url", mysql_ca_file(a, c), "certificate"},
                 {"redis.url", redis_ca_file(a, c), "certificate"}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        if (!*files[i].path)
            continue;
        struct arena_mark mark = arena_mark(a);
        const char *problem = pem_file_problem(a, files[i].path, files[i].what);
        if (problem)
            return arena_printf(a, "%s: %s %s", files[i].key, files[i].path, problem);
        arena_reset(a, mark);
    }
    return *c->ai_key_file && !*c->ai_cert_file ? "ai.key_file: ai.cert_file is missing" : NULL;
}

/* A proxy of the environment that is wrong in a way that only matters if it is used. */
static const char *proxies_problem(struct arena *a, const struct config *c)
{
    const struct {
        const char *proxy, *url;
    } calls[] = {{c->ai_proxy, c->ai_url},
                 {c->ai_proxy, c->ai_embedding_url},
                 {"", config_uses_qdrant(c) ? c->vectors_url : ""},
                 {"", c->alert_webhook_url}};
    const char *problem = NULL;
    for (size_t i = 0; i < sizeof calls / sizeof *calls && !problem; i++)
        if (*calls[i].url)
            (void)endpoint_proxy(a, calls[i].proxy, calls[i].url, &problem);
    return problem;
}

/* A key in two headers of the same name: services take either. */
static const char *headers_problem(struct arena *a, const char *group, const char *headers,
                                   const char *key_header)
{
    size_t count;
    struct str *lines = endpoint_headers(a, headers, &count);
    for (size_t i = 0; i < count; i++)
        if (str_ieq(str_cut(&lines[i], ':'), str_of(key_header)))
            return arena_printf(a,
                                "%s.headers: %s is the header of the key; %s.key_header names it",
                                group, key_header, group);
    return NULL;
}

const char *config_problem(struct arena *a, const struct config *c)
{
    const char *problem = files_problem(a, c);
    if (!problem)
        problem = proxies_problem(a, c);
    if (!problem)
        problem = headers_problem(a, "ai", c->ai_headers, c->ai_key_header);
    if (!problem)
        problem =
            headers_problem(a, "ai.embedding", c->ai_embedding_headers, c->ai_embedding_key_header);
    if (!problem && config_uses_qdrant(c) && !*c->vectors_url)
        problem = "vectors.store: qdrant needs vectors.url, the address of the server";
    return problem;
}
