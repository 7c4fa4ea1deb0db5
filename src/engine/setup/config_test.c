#include "engine/setup/config.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/un.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "engine/setup/config_table.h"
#include "tests/tap.h"

static struct arena arena;

static int parse(const char *text, char **env, struct config *c, const char **why)
{
    *why = NULL;
    return config_parse(&arena, "config.json", str_of(text), env, c, why);
}

static void refuses(const char *text, const char *message)
{
    struct config c = {.nodes = 77};
    const char *why;
    is_int(parse(text, NULL, &c, &why), ERR_INVALID, "%s is refused", text);
    is_str(str_of(why), str_of(message), "and why");
    is_int(c.nodes, 77, "and nothing was changed");
}

static void refuses_variable(const char *variable, const char *message)
{
    struct config c;
    const char *why = NULL;
    char *env[] = {"HOME=/root", (char *)(uintptr_t)variable, NULL};
    is_int(parse("{}", env, &c, &why), ERR_INVALID, "%s is refused", variable);
    is_str(str_of(why), str_of(message), "and why");
}

static void test_defaults(void)
{
    struct config c;
    const char *why;
    is_int(parse(NULL, NULL, &c, &why), 0, "no file and no environment");
    is_str(str_of(c.listen), STR("127.0.0.1:8080"), "default of a text");
    is_int(c.mysql_connections, 6, "default of a number");
    is_int(c.log_level, LOG_INFO, "default of a choice");
    ok(!c.behind_tls, "default of a switch");
    for (size_t i = 0; i < settings_count; i++)
        is_str(str_of(c.sources[i]), STR("default"), "source of %s", settings[i].key);
}

static void test_file(void)
{
    struct config c;
    const char *why;
    const char *text = "{\"listen\": \"[::1]:80\", \"nodes\": 4, \"behind_tls\": true,\n"
                       "\"log\": {\"level\": \"warn\", \"format\": \"json\"},\n"
                       "\"mysql\": {\"connections\": 64}, \"mysql.password\": \"b\\u00e9\"}";
    is_int(parse(text, NULL, &c, &why), 0, "a good file");
    is_str(str_of(c.listen), STR("[::1]:80"), "a text");
    is_int(c.nodes, 4, "a number");
    ok(c.behind_tls, "a switch");
    is_int(c.log_level, LOG_WARN, "a choice in a group");
    is_int(c.log_format, LOG_JSON, "another");
    is_int(c.mysql_connections, 64, "the largest allowed number");
    is_str(str_of(c.mysql_password), STR("b\xc3\xa9"),
           "a key with a point, a value with an escape");
    is_str(str_of(c.data_dir), STR("var"), "what is absent keeps its default");
}

/* An object of the file and the text of a variable mean the same. */
static void test_objects(void)
{
    struct config c;
    const char *why;
    char *env[] = {"MILLRACE_AI_HEADERS={\"X-Team\": \"a\"}", NULL};
    const char *text = "{\"ai\": {\"params\": {\"top_p\": 0.5, \"stop\": [\"x\", null], "
                       "\"max_tokens\": null, \"seed\": 7, \"o\": {\"b\": true}}}}";
    is_int(parse(text, env, &c, &why), 0, "objects");
    is_str(str_of(c.ai_params),
           STR("{\"top_p\":0.5,\"stop\":[\"x\",null],\"max_tokens\":null,\"seed\":7,"
               "\"o\":{\"b\":true}}"),
           "of the file");
    is_str(str_of(c.ai_headers), STR("{\"X-Team\": \"a\"}"), "of the environment");
}

/* --- what no setting alone can tell --- */

static const char *problem_with(const char *variable, const char *value)
{
    struct config c;
    const char *why;
    char *env[] = {arena_printf(&arena, "%s=%s", variable, value),
                   "MILLRACE_AI_HEADERS={\"API-Key\": \"x\"}", NULL};
    check(parse(NULL, env, &c, &why) == 0);
    return config_problem(&arena, &c);
}

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    check(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

static void test_problems(void)
{
    char dir[] = "/tmp/mrconfXXXXXX";
    check(mkdtemp(dir));
    const char *path = arena_printf(&arena, "%s/ca.pem", dir);
    static const char *const variables[] = {"MILLRACE_AI_CA_FILE", "MILLRACE_ALERT_CA_FILE",
                                            "MILLRACE_AI_CERT_FILE", "MILLRACE_VECTORS_CA_FILE"};
    static const char *const keys[] = {"ai.ca_file", "alert.ca_file", "ai.cert_file",
                                       "vectors.ca_file"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        unlink(path);
        is_str(
            str_of(problem_with(variables[i], path)),
            str_printf(&arena, "%s: %s cannot be read: No such file or directory", keys[i], path),
            "no such file");
        is_str(str_of(problem_with(variables[i], dir)),
               str_printf(&arena, "%s: %s cannot be read: Is a directory", keys[i], dir),
               "a folder");
        write_file(path, "x");
        is_str(str_of(problem_with(variables[i], path)),
               str_printf(&arena, "%s: %s has no certificate in it", keys[i], path),
               "another file");
        write_file(path, "-----BEGIN CERTIFICATE-----\n");
        ok(!problem_with(variables[i], path), "certificates");
    }
    is_str(str_of(problem_with("MILLRACE_AI_KEY_FILE", path)),
           STR("ai.key_file: ai.cert_file is missing"), "a key without its certificate");
    unlink(path);
    ok(strstr(problem_with("MILLRACE_MYSQL_URL",
                           arena_printf(&arena, "mysql://u@h/d?tls=verify&ca=%s", path)),
              "mysql.url: /tmp/mrconf"),
       "the CA file of MySQL");
    ok(strstr(problem_with("MILLRACE_REDIS_URL", arena_printf(&arena, "rediss://h?ca=%s", path)),
              "redis.url: /tmp/mrconf"),
       "the CA file of Redis");
    rmdir(dir);
    is_str(str_of(problem_with("MILLRACE_AI_KEY_HEADER", "api-key")),
           STR("ai.headers: api-key is the header of the key; ai.key_header names it"),
           "the key's header twice");
    is_str(str_of(problem_with("MILLRACE_VECTORS_STORE", "qdrant")),
           STR("vectors.store: qdrant needs vectors.url, the address of the server"),
           "Qdrant without an address");
    ok(!problem_with("MILLRACE_NODES", "1"), "nothing is wrong");
}

/* A wrong proxy of the environment is a problem of those that it is for. */
static void test_environments_proxy(void)
{
    struct config c;
    const char *why;
    setenv("HTTPS_PROXY", "socks5://me:geheim@host:1", 1);
    char *url = "MILLRACE_AI_URL=https://api.example/v1";
    char *hook = "MILLRACE_ALERT_WEBHOOK_URL=https://hook.example/";
    char *here = "MILLRACE_AI_URL=https://127.0.0.1:1/v1";
    char *none = "MILLRACE_AI_PROXY=none";
    char *embedding = "MILLRACE_AI_EMBEDDING_URL=https://api.example/v1";
    const struct {
        char *env[3];
        bool wrong;
    } cases[] = {{{NULL}, false},
                 {{url}, true},
                 {{url, none}, false},
                 {{here}, false},
                 {{hook}, true},
                 {{hook, none}, true},
                 {{here, embedding}, true},
                 {{"MILLRACE_AI_URL=http://api.example"}, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check(parse(NULL, (char **)(uintptr_t)cases[i].env, &c, &why) == 0);
        const char *got = config_problem(&arena, &c);
        is_str(str_of(got ? got : ""),
               cases[i].wrong ? STR("HTTPS_PROXY is not accepted: only HTTP proxies can be used; "
                                    "expected is http://host:port or "
                                    "http://user:password@host:port")
                              : STR(""),
               "HTTPS_PROXY, with the settings of case %zu", i);
    }
    unsetenv("HTTPS_PROXY");
}

static void test_vectors(void)
{
    refuses("{\"vectors\": {\"store\": \"faiss\"}}",
            "config.json: \"vectors.store\" is \"faiss\"; expected is embedded or qdrant");
    refuses("{\"vectors\": {\"url\": \"qdrant:6333\"}}",
            "config.json: \"vectors.url\" is not accepted: expected is http://… or https://…");
    refuses("{\"vectors\": {\"api_key\": \"geheim geheim\"}}",
            "config.json: \"vectors.api_key\" is not accepted: expected is a key of printable "
            "ASCII characters, without blanks");
}

static void test_file_mistakes(void)
{
    refuses("{\"mysql\": {\"connections\": 500}}",
            "config.json: \"mysql.connections\" is 500; allowed are 1 to 64");
    refuses("{\"mysql\": {\"connections\": 0}}",
            "config.json: \"mysql.connections\" is 0; allowed are 1 to 64");
    refuses("{\"nodes\": \"4\"}",
            "config.json: \"nodes\" is a string; expected is a whole number from 0 to 32");
    refuses("{\"nodes\": 1.5}", "config.json: \"nodes\" is not whole or too large; expected is "
                                "a whole number from 0 to 32");
    refuses("{\"listen\": 8080}", "config.json: \"listen\" is a number; expected is a string");
    refuses("{\"listen\": \"8080\"}", "config.json: \"listen\" is \"8080\"; expected is an address "
                                      "and a port, like 127.0.0.1:8080 or [::1]:8080, or "
                                      "a socket, like unix:/run/millrace/http.sock");
    refuses("{\"listen\": \"unix:http.sock\"}",
            "config.json: \"listen\" is \"unix:http.sock\"; after unix: an absolute path is "
            "expected, like unix:/run/millrace/http.sock");
    refuses("{\"listen\": \"unix:/\"}",
            "config.json: \"listen\" is \"unix:/\"; after unix: an absolute path is expected, like "
            "unix:/run/millrace/http.sock");
    char path[109] = "/";
    memset(path + 1, 'a', sizeof path - 2);
    refuses(arena_printf(&arena, "{\"listen\": \"unix:%s\"}", path),
            arena_printf(&arena,
                         "config.json: \"listen\" is \"unix:%.75s…\"; the path of a socket may "
                         "have 107 bytes",
                         path));
    refuses("{\"listen_mode\": \"0668\"}", "config.json: \"listen_mode\" is \"0668\"; expected are "
                                           "rights in octal, like 0660");
    refuses("{\"listen_mode\": \"4660\"}", "config.json: \"listen_mode\" is \"4660\"; expected are "
                                           "rights in octal, like 0660");
    refuses("{\"data_dir\": \"\"}", "config.json: \"data_dir\" must not be empty");
    refuses("{\"data_dir\": \"a\\u0000b\"}",
            "config.json: \"data_dir\" has bytes that are not text");
    refuses("{\"behind_tls\": \"true\"}",
            "config.json: \"behind_tls\" is a string; allowed are true and false");
    refuses("{\"log\": {\"level\": \"loud\"}}",
            "config.json: \"log.level\" is \"loud\"; allowed are debug, info, warn, error");
    refuses("{\"log\": {\"format\": \"xml\"}}",
            "config.json: \"log.format\" is \"xml\"; allowed are text and json");
    refuses("{\"log\": \"warn\"}", "config.json: \"log\" is a string; expected is an object");
    refuses("{\"ai\": {\"url\": \"ftp://host\"}}",
            "config.json: \"ai.url\" is not accepted: expected is http://… or https://…");
    refuses("{\"ai\": {\"url\": \"https://me:geheim@host/v1\"}}",
            "config.json: \"ai.url\" is not accepted: leave user and password before \"@\" out: "
            "they would not be sent");
    refuses("{\"ai\": {\"proxy\": \"socks5://me:geheim@host:1\"}}",
            "config.json: \"ai.proxy\" is not accepted: only HTTP proxies can be used; expected is "
            "http://host:port or http://user:password@host:port");
    refuses("{\"ai\": {\"proxy\": \"http://me:geheim@host\"}}",
            "config.json: \"ai.proxy\" is not accepted: its port is missing; expected is "
            "http://host:port or http://user:password@host:port");
    refuses("{\"ai\": {\"params\": [1]}}",
            "config.json: \"ai.params\" is an array; expected is an object");
    refuses("{\"ai\": {\"params\": {\"messages\": []}}}",
            "config.json: \"ai.params\" is \"{\\\"messages\\\":[]}\"; \"messages\" and \"input\" "
            "are what is asked, and cannot be set");
    refuses("{\"ai\": {\"headers\": {\"X-Key\": \"geheim\\n\"}}}",
            "config.json: \"ai.headers\" is not accepted: the value of X-Key must be one line of "
            "text");
    refuses("{\"ai\": {\"embedding.headers\": \"nonsense\"}}",
            "config.json: \"ai.embedding.headers\" is not accepted: expected is a JSON object of "
            "names and values, like {\"X-Team\": \"biology\"}");
    refuses("{\"ai\": {\"key_header\": \"api key\"}}",
            "config.json: \"ai.key_header\" is \"api key\"; expected is the name of a header, like "
            "api-key");
    refuses("[]", "config.json: is an array; expected is an object");
    refuses("{\"mysql.url\": \"\", \"mysql\": {\"url\": \"\"}}",
            "config.json: \"mysql.url\" is there twice");
}

static void test_unknown_keys(void)
{
    refuses("{\"mysql\": {\"conections\": 5}}",
            "config.json: unknown key \"mysql.conections\"; did you mean \"mysql.connections\"?");
    refuses("{\"metrics_listen\": \"9464\"}",
            "config.json: \"metrics_listen\" is \"9464\"; expected is an address and a port, like "
            "127.0.0.1:9464 or [::1]:9464");
    refuses(
        "{\"metrics_listen\": \"127.0.0.1:0\"}",
        "config.json: \"metrics_listen\" is \"127.0.0.1:0\"; expected is an address and a port, "
        "like 127.0.0.1:9464 or [::1]:9464");
    refuses(
        "{\"metrics_listen\": \"[::1]:0\"}",
        "config.json: \"metrics_listen\" is \"[::1]:0\"; expected is an address and a port, like "
        "127.0.0.1:9464 or [::1]:9464");
    refuses("{\"lisen\": \"x\"}", "config.json: unknown key \"lisen\"; did you mean \"listen\"?");
    refuses("{\"mysq\": {}}", "config.json: unknown key \"mysq\"; did you mean \"mysql\"?");
    refuses("{\"colour\": 1}",
            "config.json: unknown key \"colour\"; \"millrace config\" shows all of them");
    refuses("{\"a\\nb\": 1}",
            "config.json: unknown key \"a\\nb\"; \"millrace config\" shows all of them");
    refuses("{\"mysql\": {\"mysql\": {\"url\": \"\"}}}",
            "config.json: unknown key \"mysql.mysql\"; did you mean \"mysql.url\"?");
}

static void test_wrong_json(void)
{
    struct config c;
    const char *why;
    is_int(parse("{\n  \"nodes\": 4,\n  \"listen\" \"x\"\n}", NULL, &c, &why), ERR_INVALID,
           "text that is no JSON");
    ok(strncmp(why, "config.json, line 3, column 12: ", 32) == 0, "line and column: %s", why);
    is_int(parse("", NULL, &c, &why), ERR_INVALID, "an empty file");
}

static void test_environment(void)
{
    struct config c;
    const char *why;
    char *env[] = {"MILLRACE_LISTEN=0.0.0.0:80",
                   "MILLRACE_MYSQL_CONNECTIONS=9",
                   "MILLRACE_BEHIND_TLS=true",
                   "MILLRACE_LOG_LEVEL=debug",
                   "MILLRACE_NODES=",
                   "MILLRACE_BIN=/usr/bin/millrace",
                   "LISTEN=x",
                   "junk",
                   NULL};
    is_int(parse("{\"mysql\": {\"connections\": 7}, \"nodes\": 3}", env, &c, &why), 0,
           "file and environment");
    is_int(c.mysql_connections, 9, "the environment wins");
    is_str(str_of(c.listen), STR("0.0.0.0:80"), "a text");
    ok(c.behind_tls, "a switch");
    is_int(c.log_level, LOG_DEBUG, "a choice");
    is_int(c.nodes, 3, "an empty variable counts as not set");
    refuses_variable("MILLRACE_MYSQL_CONNECTIONS=500",
                     "MILLRACE_MYSQL_CONNECTIONS is 500; allowed are 1 to 64");
    refuses_variable(
        "MILLRACE_MYSQL_CONNECTIONS=many",
        "MILLRACE_MYSQL_CONNECTIONS is \"many\"; expected is a whole number from 1 to 64");
    refuses_variable("MILLRACE_BEHIND_TLS=1",
                     "MILLRACE_BEHIND_TLS is \"1\"; allowed are true and false");
    refuses_variable(
        "MILLRACE_LISTEN=a\x1b[2J:1",
        "MILLRACE_LISTEN is \"a\\u001b[2J:1\"; expected is an address and a port, like "
        "127.0.0.1:8080 or [::1]:8080, or a socket, like unix:/run/millrace/http.sock");
    refuses_variable("MILLRACE_EXTRACT_PDF_COMMAND=cat -",
                     "MILLRACE_EXTRACT_PDF_COMMAND is \"cat -\"; expected is the absolute path of "
                     "a program and its arguments");
    refuses_variable("MILLRACE_USER=\xff", "MILLRACE_USER has bytes that are not text");
    refuses_variable("MILLRACE_LISTN=127.0.0.1:1",
                     "MILLRACE_LISTN is no variable of millrace; did you mean MILLRACE_LISTEN?");
}

/* Every key of the table can be set from the environment, and read back from config_write. */
static void test_every_key(void)
{
    for (size_t i = 0; i < settings_count; i++) {
        const struct setting *s = &settings[i];
        const char *value = s->kind == SETTING_NUMBER
                                ? arena_printf(&arena, "%lld", (long long)s->most)
                            : s->kind == SETTING_SWITCH                  ? "true"
                            : s->kind == SETTING_LOG_LEVEL               ? "error"
                            : s->kind == SETTING_LOG_FORMAT              ? "json"
                            : strcmp(s->key, "mysql.url") == 0           ? "mysql://u:p@host/db"
                            : strcmp(s->key, "redis.url") == 0           ? "redis://u:p@host:1"
                            : strcmp(s->key, "trusted_proxies") == 0     ? "10.0.0.0/8, ::1"
                            : strcmp(s->key, "webhook.allow") == 0       ? "10.0.0.0/8"
                            : strcmp(s->key, "ai.proxy") == 0            ? "http://u:p@host:1"
                            : strcmp(s->key, "listen_mode") == 0         ? "0600"
                            : strcmp(s->key, "vectors.store") == 0       ? "qdrant"
                            : strcmp(s->key, "extract.pdf_command") == 0 ? "/bin/cat -"
                            : s->kind == SETTING_JSON                    ? "{\"a\":[1,null]}"
                            : s->kind == SETTING_SECRET_JSON             ? "{\"a\":\"b\"}"
                            : strstr(s->key, "key_header")               ? "api-key"
                            : s->kind == SETTING_URL                     ? "https://host/v1"
                            : strcmp(s->key, "alert.webhook_url") == 0   ? "https://host/hook"
                                                                         : "127.0.0.1:1";
        const char *variable = setting_variable(&arena, s);
        char *env[] = {arena_printf(&arena, "%s=%s", variable, value), NULL};
        struct config c, again;
        const char *why = NULL;
        is_int(parse(NULL, env, &c, &why), 0, "%s: %s", variable, why ? why : "taken");
        is_str(str_of(c.sources[i]), str_of(variable), "source of %s", s->key);
        struct buf json;
        buf_init(&json);
        config_write(&c, &json);
        is_int(parse(str_z(&arena, buf_str(&json)), NULL, &again, &why), 0, "config_write: %s",
               why ? why : "read back");
        memset(c.sources, 0, sizeof c.sources);
        struct buf second;
        buf_init(&second);
        config_write(&again, &second);
        is_str(buf_str(&second), buf_str(&json), "and means the same");
        buf_release(&json);
        buf_release(&second);
    }
}

static void test_command_line(void)
{
    struct config c;
    const char *why;
    check(parse(NULL, NULL, &c, &why) == 0);
    is_int(config_set(&arena, &c, "nodes", "4", "--nodes", &why), 0, "--nodes 4");
    is_int(c.nodes, 4, "is taken");
    is_int(config_set(&arena, &c, "nodes", "400", "--nodes", &why), ERR_INVALID, "--nodes 400");
    is_str(str_of(why), STR("--nodes is 400; allowed are 0 to 32"), "and why");
}

static bool contains(const struct buf *b, const char *part)
{
    return str_find(buf_str(b), str_of(part)) >= 0;
}

static void test_show(void)
{
    struct config c;
    const char *why = NULL;
    char *env[] = {"MILLRACE_MYSQL_PASSWORD=geheim1",
                   "MILLRACE_MYSQL_URL=mysql://me:geheim2@host:8/db",
                   "MILLRACE_AI_HEADERS={\"X-Key\":\"geheim3\"}", "MILLRACE_NODES=3", NULL};
    check(parse("{\"drain_ms\": 5}", env, &c, &why) == 0);
    struct buf b;
    buf_init(&b);
    config_show(&c, &b);
    ok(!contains(&b, "geheim"), "no secret is shown");
    ok(contains(&b, "mysql://me:***@host:8/db"), "the rest of the URL is");
    ok(contains(&b, "MILLRACE_NODES"), "the variable that set a value");
    ok(contains(&b, "config.json"), "the file that set another");
    size_t lines = 0;
    for (size_t i = 0; i < b.len; i++)
        lines += buf_str(&b).p[i] == '\n';
    is_int((int64_t)lines, (int64_t)settings_count, "one line per setting");
    buf_clear(&b);
    config_document(&b);
    ok(contains(&b, "| `mysql.connections` | `MILLRACE_MYSQL_CONNECTIONS` | `6` | 1 to 64 |"),
       "the reference names key, variable, default and range");
    buf_release(&b);
}

static void test_masks(void)
{
    const char *const pairs[][2] = {
        {"redis://host", "redis://host"},
        {"redis://user@host", "redis://user@host"},
        {"redis://:secret@host/1", "redis://:***@host/1"},
        {"mysql://u:a:b@c@host/db", "mysql://u:***@host/db"},
        {"unix:/run/x.sock", "unix:/run/x.sock"},
        {"http://host/a:b@c", "http://host/a:b@c"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        is_str(str_of(config_mask_url(&arena, pairs[i][0])), str_of(pairs[i][1]), "%s",
               pairs[i][0]);
    struct config c;
    const char *why = NULL;
    char *env[] = {"MILLRACE_AI_URL=ftp://me:geheim@host", NULL};
    is_int(parse(NULL, env, &c, &why), ERR_INVALID, "a wrong URL");
    ok(!strstr(why, "geheim"), "its password is not in the message: %s", why);
    char *redis[] = {"MILLRACE_REDIS_URL=redas://me:geheim@host", NULL};
    is_int(parse(NULL, redis, &c, &why), ERR_INVALID, "a wrong Redis URL");
    ok(!strstr(why, "geheim"), "its password is not in the message: %s", why);
    char *proxy[] = {"MILLRACE_AI_PROXY=http://me:geheim@host:1", NULL};
    is_int(parse(NULL, proxy, &c, &why), 0, "a proxy");
    struct buf shown;
    buf_init(&shown);
    config_show(&c, &shown);
    ok(str_find(buf_str(&shown), STR("http://me:***@host:1 ")) > 0 &&
           str_find(buf_str(&shown), STR("geheim")) < 0,
       "its password is not shown");
    buf_release(&shown);
    char *mysql[] = {"MILLRACE_MYSQL_URL=mysql://me:geheim@host:999999/x", NULL};
    is_int(parse(NULL, mysql, &c, &why), ERR_INVALID, "a wrong MySQL URL");
    ok(!strstr(why, "geheim"), "its password is not in the message: %s", why);
}

static void test_addresses(void)
{
    struct sockaddr_storage s;
    socklen_t len;
    ok(config_address(STR("127.0.0.1:8080"), &s, &len), "IPv4");
    is_int(ntohs(((struct sockaddr_in *)&s)->sin_port), 8080, "its port");
    is_int(len, sizeof(struct sockaddr_in), "its length");
    ok(config_address(STR("[::]:1"), &s, &len) && s.ss_family == AF_INET6, "IPv6");
    ok(config_address(STR("localhost:0"), &s, &len), "localhost, any port");
    ok(config_address(STR("unix:/run/m.sock"), &s, &len) && s.ss_family == AF_UNIX, "a path");
    is_str(str_of(((struct sockaddr_un *)&s)->sun_path), STR("/run/m.sock"), "as it is");
    is_str(str_of(config_unix_path("unix:/run/m.sock")), STR("/run/m.sock"), "also by itself");
    ok(!config_unix_path("127.0.0.1:80"), "an address has none");
    is_int(config_mode("0660"), 0660, "rights");
    is_int(config_mode("600"), 0600, "with three digits");
    const char *const wrong[] = {
        "",           ":",           ":80",           "127.0.0.1",  "127.0.0.1:",
        "1.2.3:80",   "host:80",     "[::1]",         "[::1]80",    "::1:80",
        "[::1:80",    "[]:80",       "1.2.3.4:65536", "1.2.3.4:-1", "1.2.3.4:80 ",
        "1.2.3.4:8a", "[1.2.3.4]:1", "unix:",         "unix:/",     "unix:a",
        "unix:@a"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ok(!config_address(str_of(wrong[i]), &s, &len), "\"%s\" is no address", wrong[i]);
}

static void test_load(void)
{
    struct config c;
    const char *why = NULL;
    char dir[] = "/tmp/config_test.XXXXXX";
    check(mkdtemp(dir));
    const char *path = arena_printf(&arena, "%s/config.json", dir);
    is_int(config_load(&arena, path, true, NULL, &c, &why), 0, "a missing optional file");
    is_int(config_load(&arena, path, false, NULL, &c, &why), ERR_IO, "a missing file");
    ok(strstr(why, path) && strstr(why, "No such file"), "its name and why: %s", why);
    is_int(config_load(&arena, dir, true, NULL, &c, &why), ERR_IO, "a folder: %s", why);
    FILE *f = fopen(path, "w");
    check(f);
    for (int i = 0; i < 2000; i++)
        fputs("                                                            ", f);
    fputs("{\"nodes\": 2}", f);
    fclose(f);
    is_int(config_load(&arena, path, false, NULL, &c, &why), 0, "a file of several reads");
    is_int(c.nodes, 2, "is read to its end");
    check(truncate(path, CONFIG_FILE_BYTES_MAX + 10000) == 0);
    is_int(config_load(&arena, path, false, NULL, &c, &why), ERR_INVALID, "too large: %s", why);
    ok(strstr(why, "larger than 1048576 bytes"), "says so");
    unlink(path);
    rmdir(dir);
}

int main(void)
{
    arena_init(&arena);
    test_defaults();
    test_file();
    test_objects();
    test_problems();
    test_environments_proxy();
    test_vectors();
    test_file_mistakes();
    test_unknown_keys();
    test_wrong_json();
    test_environment();
    test_every_key();
    test_command_line();
    test_show();
    test_masks();
    test_addresses();
    test_load();
    arena_release(&arena);
    return tap_done();
}
