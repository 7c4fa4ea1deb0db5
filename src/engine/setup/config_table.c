#include "engine/setup/config_table.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/un.h>

#include "engine/setup/address.h"
#include "engine/setup/endpoint.h"
#include "wire/http_client/http_proxy.h"
#include "wire/redis.h"
#include "wire/sql.h"

#define KB INT64_C(1024)
#define MB (1024 * KB)
#define GB (1024 * MB)

#define UNIX           "unix:"
#define UNIX_BYTES_MAX (sizeof((struct sockaddr_un *)NULL)->sun_path - 1)

static const char *listen_problem(struct arena *a, const char *text)
{
    struct sockaddr_storage address;
    socklen_t len;
    const char *path = config_unix_path(text);
    if (config_address(str_of(text), &address, &len))
        return NULL;
    if (path && strlen(path) > UNIX_BYTES_MAX)
        return arena_printf(a, "the path of a socket may have %zu bytes", UNIX_BYTES_MAX);
    if (path)
        return "after unix: an absolute path is expected, like unix:/run/millrace/http.sock";
    return "expected is an address and a port, like 127.0.0.1:8080 or [::1]:8080, or a socket, "
           "like unix:/run/millrace/http.sock";
}

static bool parse_mode(const char *text, mode_t *out)
{
    size_t n = strlen(text);
    if (n < 3 || n > 4 || strspn(text, "01234567") != n || (n == 4 && text[0] != '0'))
        return false;
    *out = (mode_t)strtoul(text, NULL, 8);
    return true;
}

static const char *mode_problem(struct arena *a, const char *text)
{
    (void)a;
    mode_t mode;
    return parse_mode(text, &mode) ? NULL : "expected are rights in octal, like 0660";
}

/* Not port 0, which would be another one for each node. */
static const char *metrics_listen_problem(struct arena *a, const char *text)
{
    (void)a;
    struct sockaddr_storage s;
    socklen_t len;
    bool right = config_address(str_of(text), &s, &len) &&
                 (s.ss_family == AF_INET    ? ((struct sockaddr_in *)&s)->sin_port != 0
                  : s.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&s)->sin6_port != 0
                                            : false);
    return right ? NULL : "expected is an address and a port, like 127.0.0.1:9464 or [::1]:9464";
}

static const char *program_problem(struct arena *a, const char *text)
{
    (void)a;
    return text[0] == '/' ? NULL : "expected is the absolute path of a program and its arguments";
}

static const char *vectors_store_problem(struct arena *a, const char *text)
{
    (void)a;
    bool known = strcmp(text, "embedded") == 0 || strcmp(text, "qdrant") == 0;
    return known ? NULL : "expected is embedded or qdrant";
}

#define AT(member) offsetof(struct config, member)
/* clang-format off */
#define TEXT(key, member, fallback, least, problem, meaning) \
    {key, SETTING_TEXT, AT(member), fallback, least, 0, problem, meaning}
#define URL(key, member, problem, meaning) \
    {key, SETTING_URL, AT(member), "", 0, 0, problem, meaning}
#define SECRET(key, member, meaning) \
    {key, SETTING_SECRET, AT(member), "", 0, 0, NULL, meaning}
#define NUMBER(key, member, fallback, least, most, meaning) \
    {key, SETTING_NUMBER, AT(member), fallback, least, most, NULL, meaning}
#define PARAMS(key, member, meaning) \
    {key, SETTING_JSON, AT(member), "", 0, 0, endpoint_params_problem, meaning}
#define HEADERS(key, member, meaning) \
    {key, SETTING_SECRET_JSON, AT(member), "", 0, 0, endpoint_headers_problem, meaning}
#define OTHER(key, kind, member, fallback, meaning) \
    {key, kind, AT(member), fallback, 0, 0, NULL, meaning}

const struct setting settings[] = {
    TEXT("listen", listen, "127.0.0.1:8080", 1, listen_problem,
         "address and port of the pages and the API, or unix:/path of a socket for a proxy"),
    TEXT("listen_mode", listen_mode, "0660", 1, mode_problem,
         "rights of a socket that listen names as unix:/path, in octal"),
    TEXT("metrics_listen", metrics_listen, "", 0, metrics_listen_problem,
         "address and port of /metrics alone; empty: it is with the pages and the API"),
    TEXT("data_dir", data_dir, DEFAULT_DATA_DIR, 1, NULL,
         "folder of the private stores, their sockets and passwords"),
    TEXT("web_dir", web_dir, DEFAULT_WEB_DIR, 1, NULL,
         "folder of the built pages"),
    TEXT("user", user, "", 0, NULL,
         "system user to run as when started by root; empty: stay root"),
    NUMBER("nodes", nodes, "0", 0, CONFIG_NODES_MAX,
           "processes that serve; 0: one per core"),
    NUMBER("drain_ms", drain_ms, "10000", 0, 600000,
           "how long a node that stops waits for requests under way"),
    OTHER("behind_tls", SETTING_SWITCH, behind_tls, "false",
          "a proxy in front terminates TLS: cookies are Secure, HSTS is sent"),
    TEXT("trusted_proxies", trusted_proxies, "", 0, address_list_problem,
         "addresses and networks whose X-Forwarded-For is trusted: 127.0.0.1, 10.0.0.0/8; "
         "unix for a proxy on a unix socket"),
    NUMBER("new_user.permission", new_user_permission, "1", 0, PERMISSION_MAX,
           "papers of a newly registered user that are judged at the same time"),
    NUMBER("new_user.balance_cents", new_user_balance_cents, "0", 0, 1000000000,
           "balance of a newly registered user, in cents"),
    NUMBER("new_user.hourly_max", new_user_hourly_max, "20", 1, 100000,
           "registrations that one address may try in an hour; a campus may share one address"),
    TEXT("contact", contact, "", 0, NULL,
         "whom users may ask for money or help, shown on the pages: Li Ming, li@uni.example"),
    NUMBER("login.address_max", login_address_max, "2000", 1, 1000000,
           "failed log-ins that one address may make in five minutes; a campus may share one"),
    OTHER("local_develop_mode", SETTING_SWITCH, local_develop_mode, "false",
          "for debugging on your own machine: persist_user_info takes effect"),
    OTHER("persist_user_info", SETTING_SWITCH, persist_user_info, "true",
          "false: the private Redis writes nothing to disk; only with local_develop_mode"),
    OTHER("log.level", SETTING_LOG_LEVEL, log_level, "info",
          "least important lines to log: debug, info, warn, error"),
    OTHER("log.format", SETTING_LOG_FORMAT, log_format, "text",
          "text for people or json for programs"),
    URL("mysql.url", mysql_url, sql_url_problem,
        "mysql://user:password@host/database, or host1,host2,...: the first that takes changes is "
        "used; empty: a private MariaDB in data_dir"),
    SECRET("mysql.password", mysql_password,
           "password for a mysql.url that carries none"),
    NUMBER("mysql.connections", mysql_connections, "6", 1, 64,
           "connections of each node to MySQL"),
    NUMBER("mysql.buffer_bytes", mysql_buffer_bytes, "0", 0, 1024 * GB,
           "buffer pool of the private MariaDB; 0: an eighth of the memory, at most 4 GB"),
    NUMBER("sample_papers", sample_papers, "3000", 0, 1000000,
           "papers made up and loaded at the first start, when the private MariaDB is empty; "
           "0: none"),
    OTHER("demo_accounts", SETTING_SWITCH, demo_accounts, "true",
          "the first start on private stores makes a user \"demo\" with 10,000.00 to spend and a "
          "super admin \"admin\", and shows their passwords once"),
    URL("redis.url", redis_url, redis_url_problem,
        "redis://user:password@host, or rediss:// for TLS; empty: a private Redis in data_dir"),
    SECRET("redis.password", redis_password,
           "password for a redis.url that carries none"),
    NUMBER("redis.max_bytes", redis_max_bytes, "0", 0, 1024 * GB,
           "memory of the private Redis; 0: 16 GB, at most 60 % of the memory"),
    OTHER("allow_unsafe_stores", SETTING_SWITCH, allow_unsafe_stores, "false",
          "true: start also on a Redis or MySQL whose settings lose what it has confirmed"),
    URL("ai.url", ai_url, endpoint_url_problem,
        "URL of an OpenAI-compatible service, with or without /chat/completions, and with its "
        "query if it needs one; empty: the built-in simulated AI"),
    TEXT("ai.key_header", ai_key_header, ENDPOINT_KEY_HEADER, 1, endpoint_key_header_problem,
         "header that carries the key: Authorization: Bearer KEY; any other name, like api-key, "
         "gets the key alone"),
    HEADERS("ai.headers", ai_headers,
            "more headers of each call, as a JSON object of names and values"),
    PARAMS("ai.params", ai_params,
           "members of the request's JSON body, as a JSON object: they replace those that millrace "
           "sends, and null removes one: "
           "{\"max_tokens\": null, \"max_completion_tokens\": 2000}"),
    TEXT("ai.ca_file", ai_ca_file, "", 0, NULL,
         "file of CA certificates for the AI service; empty: the system's"),
    TEXT("ai.cert_file", ai_cert_file, "", 0, NULL,
         "file of the certificate, and its chain, for an AI service that asks for one"),
    TEXT("ai.key_file", ai_key_file, "", 0, NULL,
         "file of its private key, without a password; empty: it is in ai.cert_file"),
    URL("ai.proxy", ai_proxy, http_proxy_problem,
        "proxy to the AI service, http://host:port or http://user:password@host:port; none: no "
        "proxy; empty: that of https_proxy and no_proxy in the environment"),
    TEXT("ai.model", ai_model, "default", 1, NULL,
         "model to ask for, by the name that the AI service gives it"),
    NUMBER("ai.temperature_milli", ai_temperature_milli, "0", 0, 2000,
           "temperature of the model, in thousandths"),
    NUMBER("ai.max_tokens", ai_max_tokens, "200", 1, 100000,
           "tokens that an answer may have; each call reserves them from the rate limit"),
    NUMBER("ai.timeout_ms", ai_timeout_ms, "60000", 100, 600000,
           "how long one call to the AI service may take"),
    NUMBER("ai.jobs_share", ai_jobs_share, "20", 1, 99,
           "percent of the rate that jobs (plans) have while screenings want it, too; those have "
           "the rest, and either has all while the other wants none"),
    TEXT("ai.prompt_file", ai_prompt_file, "", 0, NULL,
         "text file of instructions to the model, with {{question}} in it once; "
         "empty: the built-in ones"),
    URL("ai.embedding.url", ai_embedding_url, endpoint_url_problem,
        "URL of an OpenAI-compatible service for embeddings, with or without /embeddings; empty: "
        "no embeddings, or those of the simulated AI if ai.url is empty, too"),
    TEXT("ai.embedding.key_header", ai_embedding_key_header, ENDPOINT_KEY_HEADER, 1,
         endpoint_key_header_problem, "as ai.key_header"),
    HEADERS("ai.embedding.headers", ai_embedding_headers, "as ai.headers"),
    PARAMS("ai.embedding.params", ai_embedding_params, "as ai.params"),
    TEXT("ai.embedding.model", ai_embedding_model, "default", 1, NULL,
         "model for embeddings, by the name that the service gives it"),
    NUMBER("ai.embedding.dimensions", ai_embedding_dimensions, "0", 0, 8192,
           "numbers of a vector that the service is asked for, and must send; 0: as many as the "
           "model has"),
    NUMBER("ai.embedding.batch_max", ai_embedding_batch_max, "64", 1, 512,
           "texts in one call; some services take 10, 25 or 32"),
    NUMBER("ai.embedding.batch_tokens", ai_embedding_batch_tokens, "100000", 1000, 1000000,
           "tokens of all texts in one call, estimated on the high side"),
    TEXT("vectors.store", vectors_store, "embedded", 1, vectors_store_problem,
         "where vectors are searched: embedded, in files below data_dir, or qdrant, a server of "
         "its own for several machines; MySQL has them all in either case"),
    URL("vectors.url", vectors_url, endpoint_base_problem,
        "URL of the Qdrant server's REST API: https://qdrant.example:6333"),
    {"vectors.api_key", SETTING_SECRET, AT(vectors_api_key), "", 0, 0, endpoint_plain_key_problem,
     "key that the Qdrant server wants, one that may write; empty: none"},
    TEXT("vectors.ca_file", vectors_ca_file, "", 0, NULL,
         "file of CA certificates for the Qdrant server; empty: the system's"),
    NUMBER("vectors.timeout_ms", vectors_timeout_ms, "10000", 100, 600000,
           "how long one request to the Qdrant server may take"),
    {"alert.webhook_url", SETTING_SECRET, AT(alert_webhook_url), "", 0, 0, endpoint_url_problem,
     "URL that alerts are posted to, as JSON; empty: alerts are in the log only"},
    TEXT("alert.ca_file", alert_ca_file, "", 0, NULL,
         "file of CA certificates for alert.webhook_url; empty: the system's"),
    NUMBER("alert.billing_records", alert_billing_records, "10000", 1, 1000000000,
           "alert when more charges than this wait for MySQL for ten seconds"),
    NUMBER("alert.standing_ms", alert_standing_ms, "60000", 1, 86400000,
           "alert when runs stand still for so long for a cause that an operator can mend"),
    NUMBER("alert.queue_ms", alert_queue_ms, "600000", 1, 86400000,
           "alert when the oldest job of a queue has waited for so long"),
    NUMBER("limit.training_plan_minute", limit_training_plan.minute, "10", 0, 1000000,
           "training plans that a user may start in a minute; 0: any number"),
    NUMBER("limit.training_plan_day", limit_training_plan.day, "100", 0, 1000000,
           "the same in a day, UTC"),
    NUMBER("limit.training_plan_month", limit_training_plan.month, "1000", 0, 1000000,
           "the same in a month, UTC"),
    NUMBER("limit.nutrition_plan_minute", limit_nutrition_plan.minute, "10", 0, 1000000,
           "nutrition plans that a user may start in a minute; 0: any number"),
    NUMBER("limit.nutrition_plan_day", limit_nutrition_plan.day, "100", 0, 1000000,
           "the same in a day, UTC"),
    NUMBER("limit.nutrition_plan_month", limit_nutrition_plan.month, "1000", 0, 1000000,
           "the same in a month, UTC"),
    NUMBER("limit.extraction_minute", limit_extraction.minute, "20000", 0, 1000000000,
           "documents that a user may have extracted in a minute; 0: any number"),
    NUMBER("limit.extraction_day", limit_extraction.day, "200000", 0, 1000000000,
           "the same in a day, UTC"),
    NUMBER("limit.extraction_month", limit_extraction.month, "2000000", 0, 1000000000,
           "the same in a month, UTC"),
    NUMBER("limit.embedding_minute", limit_embedding.minute, "20", 0, 1000000,
           "posts that a user may have embedded by hand in a minute; 0: any number"),
    NUMBER("limit.embedding_day", limit_embedding.day, "500", 0, 1000000,
           "the same in a day, UTC"),
    NUMBER("limit.embedding_month", limit_embedding.month, "0", 0, 1000000,
           "the same in a month, UTC"),
    NUMBER("plan.training_cents", plan_training_cents, "100", 0, 100000000,
           "price of a training plan, in cents; paid when it is made"),
    NUMBER("plan.nutrition_cents", plan_nutrition_cents, "100", 0, 100000000,
           "price of a nutrition plan, in cents; paid when it is made"),
    NUMBER("plan.max_tokens", plan_max_tokens, "32000", 1000, 1000000,
           "tokens that a plan may have, twelve weeks of it; each call reserves them from the rate "
           "limit"),
    NUMBER("plan.concurrency", plan_concurrency, "4", 1, 1000,
           "plans that each node makes at the same time"),
    NUMBER("plan.deadline_ms", plan_deadline_ms, "900000", 1000, 86400000,
           "how long the making of a plan may take; longer, and it is tried again"),
    NUMBER("extract.document_cents", extract_document_cents, "10", 0, 100000000,
           "price of the extraction from one document, in cents; paid when it is done"),
    NUMBER("extract.concurrency", extract_concurrency, "10", 1, 10000,
           "documents about which each node asks the AI at the same time"),
    NUMBER("extract.lease_s", extract_lease_s, "1800", 1, 86400,
           "a document whose node has been silent for so long is taken by another one; shorter, "
           "and those of a node that was killed wait less"),
    NUMBER("extract.deadline_ms", extract_deadline_ms, "21600000", 1000, 86400000,
           "how long one try of a document may take, all of its parts; longer, and it is tried "
           "again"),
    NUMBER("extract.tries", extract_tries, "3", 0, 100,
           "how often a document is tried again after an error that may pass"),
    NUMBER("extract.part_tokens", extract_part_tokens, "24000", 500, 10000000,
           "a longer document is asked about in parts of so many tokens"),
    NUMBER("extract.max_tokens", extract_max_tokens, "8000", 100, 1000000,
           "tokens that an answer about a part may have; each call reserves them from the rate "
           "limit"),
    OTHER("extract.json_schema", SETTING_SWITCH, extract_json_schema, "false",
          "the service is sent a JSON schema of the answer (response_format); not all take one"),
    NUMBER("extract.document_mb", extract_document_mb, "50", 1, 200,
           "megabytes that an uploaded document may have; nginx has a limit of its own for it"),
    NUMBER("extract.user_mb", extract_user_mb, "2048", 1, 1048576,
           "megabytes that all documents of a user may have"),
    TEXT("extract.pdf_command", extract_pdf_command, "", 0, program_problem,
         "program that reads PDFs, and its arguments, separated by blanks: the file is its input, "
         "the text its output; it runs in a sandbox, without network, processes and files outside "
         "of /usr; empty: pdftotext"),
    URL("extract.pdf_url", extract_pdf_url, endpoint_url_problem,
        "URL of a service that reads PDFs instead: the file is posted to it, and it answers with "
        "text, Markdown, or JSON with \"text\" or \"markdown\"; empty: a program does"),
    NUMBER("extract.pdf_seconds", extract_pdf_seconds, "60", 1, 3600,
           "how long reading a PDF may take"),
    NUMBER("extract.pdf_memory_mb", extract_pdf_memory_mb, "1024", 64, 1024 * KB,
           "memory that the program may take for a PDF, in MB"),
    NUMBER("extract.pdf_pages", extract_pdf_pages, "2000", 1, 1000000,
           "pages that a PDF may have"),
    NUMBER("embedding.post_price", embedding_post_price, "0", 0, 1000000,
           "price of embedding a post, in points, for each new content; paid when it is done"),
    NUMBER("embedding.concurrency", embedding_concurrency, "2", 1, 1000,
           "posts that all nodes together embed at the same time"),
    NUMBER("embedding.papers_calls", embedding_papers_calls, "4", 1, 64,
           "calls to the embedding service, of ai.embedding.batch_max texts each, that a node has "
           "under way at once when papers are indexed"),
    NUMBER("embedding.content_chars", embedding_content_chars, "200000", 1, 400000,
           "characters that the content of a post may have"),
    NUMBER("embedding.posts_max", embedding_posts_max, "20000", 1, 10000000,
           "posts that a user may have"),
    NUMBER("embedding.queue_max", embedding_queue_max, "100000", 1, 10000000,
           "posts that may wait to be embedded: what would make them more is refused"),
    TEXT("webhook.allow", webhook_allow, "", 0, address_list_problem,
         "addresses and networks that webhooks of users may call besides public ones, like "
         "10.0.0.0/8; empty: none"),
    TEXT("webhook.ca_file", webhook_ca_file, "", 0, NULL,
         "file of CA certificates for webhooks of users; empty: the system's"),
    OTHER("pool.sessions", SETTING_SWITCH, pool_sessions, "true",
          "users who have logged in may take items out of pools; false: only API tokens may"),
    NUMBER("pool.list_bytes_max", pool_list_bytes_max, "1073741824", 1 * MB, 1024 * GB,
           "memory of Redis that the lists of all pools may take; what does not fit is handed out "
           "by MySQL, more slowly"),
    NUMBER("http.connections_max", http_connections_max, "10000", 1, 1000000,
           "connections that a node serves at once; more are answered 503"),
    NUMBER("http.body_bytes_max", http_body_bytes_max, "8388608", 1 * KB, 1 * GB,
           "largest request body, uploads excepted"),
};
/* clang-format on */

const size_t settings_count = sizeof settings / sizeof *settings;
_Static_assert(sizeof settings / sizeof *settings <= CONFIG_SETTINGS_MAX,
               "sources[] holds them all");

const struct setting *setting_find(struct str key)
{
    for (size_t i = 0; i < settings_count; i++)
        if (str_eq(str_of(settings[i].key), key))
            return &settings[i];
    return NULL;
}

const char *setting_variable(struct arena *a, const struct setting *s)
{
    char *name = arena_printf(a, "MILLRACE_%s", s->key);
    for (char *p = name; *p; p++)
        *p = *p == '.' ? '_' : (char)toupper((unsigned char)*p);
    return name;
}

const struct setting *setting_of_variable(struct arena *a, struct str variable)
{
    for (size_t i = 0; i < settings_count; i++)
        if (str_eq(str_of(setting_variable(a, &settings[i])), variable))
            return &settings[i];
    return NULL;
}

bool setting_group_exists(struct str group)
{
    for (size_t i = 0; i < settings_count; i++) {
        struct str key = str_of(settings[i].key);
        if (key.n > group.n && str_starts(key, group) && key.p[group.n] == '.')
            return true;
    }
    return false;
}

/* --- addresses --- */

const char *config_unix_path(const char *listen)
{
    return str_starts(str_of(listen), STR(UNIX)) ? listen + sizeof UNIX - 1 : NULL;
}

mode_t config_mode(const char *listen_mode)
{
    mode_t mode;
    check(parse_mode(listen_mode, &mode));
    return mode;
}

static bool parse_unix(struct str path, struct sockaddr_un *out, socklen_t *len)
{
    if (!str_starts(path, STR("/")) || path.n < 2 || path.n > UNIX_BYTES_MAX ||
        memchr(path.p, '\0', path.n))
        return false;
    out->sun_family = AF_UNIX;
    memcpy(out->sun_path, path.p, path.n);
    *len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + path.n + 1);
    return true;
}

static bool parse_port(struct str s, in_port_t *out)
{
    int64_t port;
    if (s.n == 0 || s.n > 5 || !str_to_i64(s, &port) || port < 0 || port > 65535)
        return false;
    *out = htons((uint16_t)port);
    return true;
}

static bool parse_ip(int family, struct str host, void *out)
{
    char text[INET6_ADDRSTRLEN];
    if (host.n >= sizeof text || memchr(host.p, '\0', host.n))
        return false;
    memcpy(text, host.p, host.n);
    text[host.n] = '\0';
    return inet_pton(family, text, out) == 1;
}

bool config_address(struct str listen, struct sockaddr_storage *out, socklen_t *len)
{
    struct str port = listen, host;
    *out = (struct sockaddr_storage){0};
    if (str_starts(listen, STR(UNIX)))
        return parse_unix(str_skip(listen, sizeof UNIX - 1), (struct sockaddr_un *)out, len);
    if (!str_starts(listen, STR("["))) {
        struct sockaddr_in *v4 = (struct sockaddr_in *)out;
        host = str_cut(&port, ':');
        v4->sin_family = AF_INET;
        *len = sizeof *v4;
        return port.p &&
               parse_ip(AF_INET, str_eq(host, STR("localhost")) ? STR("127.0.0.1") : host,
                        &v4->sin_addr) &&
               parse_port(port, &v4->sin_port);
    }
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)out;
    host = str_skip(str_cut(&port, ']'), 1);
    v6->sin6_family = AF_INET6;
    *len = sizeof *v6;
    return port.p && str_starts(port, STR(":")) && parse_ip(AF_INET6, host, &v6->sin6_addr) &&
           parse_port(str_skip(port, 1), &v6->sin6_port);
}
