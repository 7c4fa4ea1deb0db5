/* Files: types, conditions, compressed forms, ranges, and no way out of the root. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/tap.h"
#include "wire/http_server/http_harness.h"

#define LARGE_BYTES 400000
#define MTIME       1700000000 /* Tue, 14 Nov 2023 22:13:20 GMT */

static char root[64]; /* a fresh folder; "web" in it is what is served */

static void put(const char *name, const char *text, size_t n, int64_t mtime)
{
    char path[160];
    snprintf(path, sizeof(path), "%s/%s", root, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    check(fd >= 0 && write(fd, text, n) == (ssize_t)n);
    struct timespec times[2] = {{mtime, 0}, {mtime, 0}};
    check(futimens(fd, times) == 0);
    close(fd);
}

static void put_text(const char *name, const char *text)
{
    put(name, text, strlen(text), MTIME);
}

static void in_root(const char *name, char out[160])
{
    snprintf(out, 160, "%s/%s", root, name);
}

static void make_dir(const char *name)
{
    char path[160];
    in_root(name, path);
    check(mkdir(path, 0700) == 0);
}

static void make_link(const char *name, const char *target)
{
    char path[160];
    in_root(name, path);
    check(symlink(target, path) == 0);
}

static const struct {
    const char *name;
    bool hashed;
} assets[] = {
    {"assets/index-BfK1s2xZ.js", true},      {"assets/RunCharts-bs-lQyJW.css", true},
    {"assets/fonts/a-0_abcdef.woff2", true}, {"assets/some-document.js", false}, /* a word */
    {"assets/index-BfK1s2x.js", false},      {"assets/index-BfK1s2xZZ.js", false},
    {"assets/index.BfK1s2xZ.js", false},     {"assets/index-BfK1s2xZ", false},
    {"assets/index-BfK1.2xZ.js", false},     {"index-BfK1s2xZ.js", false}, /* not built by Vite */
};

static void make_files(void)
{
    snprintf(root, sizeof(root), "/tmp/http_files_test.XXXXXX");
    check(mkdtemp(root));
    make_dir("web");
    make_dir("web/docs");
    make_dir("web/assets");
    make_dir("web/assets/fonts");
    make_dir("web/empty");
    make_dir("web/.git");
    put_text("secret.txt", "secret");
    put_text("web/index.html", "<p>home");
    put_text("web/docs/index.html", "<p>docs");
    put_text("web/app.js", "plain script");
    put_text("web/app.js.br", "BROTLI");
    put_text("web/app.js.gz", "GZIPED"); /* as long as the other */
    put_text("web/only.css", "plain style");
    put_text("web/only.css.gz", "GZ");
    put("web/stale.js", "new script", 10, MTIME + 100);
    put_text("web/stale.js.br", "OLD");
    put_text("web/digits.txt", "0123456789");
    put_text("web/nothing.txt", "");
    for (size_t i = 0; i < sizeof(assets) / sizeof(assets[0]); i++) {
        char name[100];
        snprintf(name, sizeof(name), "web/%s", assets[i].name);
        put_text(name, "asset");
    }
    put_text("web/.hidden", "hidden");
    put_text("web/.git/config", "hidden");
    put_text("web/a b+c.txt", "spaced");
    make_link("web/out.txt", "../secret.txt");
    make_link("web/up", "..");
    make_link("web/inside.txt", "digits.txt");
    char path[160];
    in_root("web/fifo", path);
    check(mkfifo(path, 0600) == 0);
    char *large = malloc(LARGE_BYTES);
    check(large);
    for (size_t i = 0; i < LARGE_BYTES; i++)
        large[i] = (char)('a' + i / 7 % 26);
    put("web/large.bin", large, LARGE_BYTES, MTIME);
    free(large);
}

static void remove_files(void)
{
    char command[128];
    snprintf(command, sizeof(command), "rm -rf '%s'", root);
    check(system(command) == 0);
}

static int serve(struct task *t, struct http_exchange *x, void *ctx)
{
    return http_reply_file(t, x, ctx, http_param(x, "*"));
}

static int serve_long(struct task *t, struct http_exchange *x, void *ctx)
{
    http_set_header(x, "Cache-Control", STR("max-age=9"));
    return http_reply_file(t, x, ctx, STR("app.js"));
}

/* Like a caller that forgets to decode. */
static int serve_header(struct task *t, struct http_exchange *x, void *ctx)
{
    return http_reply_file(t, x, ctx, http_header(x, "x-path"));
}

static const struct http_route routes[] = {
    {"GET", "/*", serve, 0},
    {"GET", "/-/long", serve_long, 0},
    {"GET", "/-/header", serve_header, 0},
};

struct fixture {
    struct site site;
    struct http_files *files;
};

struct test {
    void (*fn)(struct task *t, struct fixture *f);
};

static void with_fixture(struct task *t, void *arg)
{
    const struct test *test = arg;
    struct fixture f;
    char path[160];
    in_root("web", path);
    f.files = http_files_new(path);
    check(f.files);
    site_open(t, &f.site, (struct http_options){.metrics = NULL}, routes, 3, f.files);
    test->fn(t, &f);
    site_close(t, &f.site);
    http_files_free(f.files);
}
#define RUN(fn) tap_task(with_fixture, &(struct test){fn}, false)

static struct reply get(struct task *t, struct fixture *f, const char *path, const char *headers)
{
    return ask(t, &f->site,
               str_printf(task_arena(t), "GET %s HTTP/1.1\r\nHost: h\r\n%s\r\n", path, headers));
}

/* valgrind has none; links are followed only with it. */
static bool have_openat2(void)
{
    struct open_how how = {.flags = O_RDONLY};
    long fd = syscall(SYS_openat2, AT_FDCWD, root, &how, sizeof(how));
    if (fd >= 0)
        close((int)fd);
    return fd >= 0;
}

static void plain(struct task *t, struct fixture *f)
{
    struct reply r = get(t, f, "/digits.txt", "");
    is_str(r.body, STR("0123456789"), "a file");
    is_str(reply_header(&r, "content-type"), STR("text/plain; charset=utf-8"), "its type");
    is_str(reply_header(&r, "last-modified"), STR("Tue, 14 Nov 2023 22:13:20 GMT"), "its time");
    is_str(reply_header(&r, "cache-control"), STR("no-cache"), "it is asked about again");
    is_str(reply_header(&r, "vary"), STR("Accept-Encoding"), "it may differ");
    ok(reply_header(&r, "etag").n > 4 && reply_header(&r, "accept-ranges").p, "it has a tag");
    r = get(t, f, "/", "");
    ok(str_eq(r.body, STR("<p>home")) && reply_header(&r, "content-security-policy").p, "home");
    is_str(reply_header(&r, "content-type"), STR("text/html; charset=utf-8"), "is a page");
    is_str(get(t, f, "/docs", "").body, STR("<p>docs"), "a folder is its index");
    is_str(get(t, f, "/docs/", "").body, STR("<p>docs"), "with a slash, too");
    is_str(get(t, f, "/a%20b+c.txt", "").body, STR("spaced"), "a name with a space");
    r = get(t, f, "/large.bin", "");
    ok(r.body.n == LARGE_BYTES && r.body.p[LARGE_BYTES - 1] == 'a' + (LARGE_BYTES - 1) / 7 % 26,
       "a large file");
    is_str(reply_header(&r, "content-type"), STR("application/octet-stream"), "of unknown type");
    r = get(t, f, "/nothing.txt", "");
    ok(r.status == 200 && r.body.n == 0, "an empty file");
    if (have_openat2())
        is_str(get(t, f, "/inside.txt", "").body, STR("0123456789"), "a link that stays inside");
    r = get(t, f, "/-/long", "");
    is_str(reply_header(&r, "cache-control"), STR("max-age=9"), "the handler may know better");
    ok(!http_files_new("/nonexistent"), "no folder, no files");

    struct client c;
    client_open(t, &f->site, &c);
    client_send(t, &c, STR("HEAD /large.bin HTTP/1.1\r\nHost: h\r\n\r\n"));
    r = client_reply_to_head(t, &c);
    is_str(reply_header(&r, "content-length"), STR("400000"), "HEAD");
    client_send(t, &c, STR("GET /digits.txt HTTP/1.1\r\nHost: h\r\n\r\n"));
    is_str(client_reply(t, &c).body, STR("0123456789"), "sends the head alone");
    client_close(&c);
}

static void nowhere(struct task *t, struct fixture *f)
{
    static const char *const paths[] = {"/none.txt",     "/empty",         "/empty/",
                                        "/.hidden",      "/.git/config",   "/docs/.hidden",
                                        "/out.txt",      "/up/secret.txt", "/digits.txt/",
                                        "/digits.txt/x", "//digits.txt",   "/docs//index.html",
                                        "/fifo",         "/%2Fetc/passwd", "/..%5Csecret.txt"};
    static const char *const raw[] = {"../secret.txt", "/etc/passwd", "docs/../../secret.txt", "..",
                                      "./digits.txt",  "docs/.",      "up/../digits.txt"};
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        struct reply r = get(t, f, paths[i], "");
        ok(r.status == 404 && reply_has(&r, "not_found"), "%s is not there", paths[i]);
    }
    for (size_t i = 0; i < sizeof(raw) / sizeof(raw[0]); i++) {
        char header[80];
        snprintf(header, sizeof(header), "X-Path: %s\r\n", raw[i]);
        is_int(get(t, f, "/-/header", header).status, 404, "%s is not there", raw[i]);
    }
    is_int(get(t, f, "/../secret.txt", "").status, 400, "the way up is no way at all");
    is_int(get(t, f, "/%2e%2e/secret.txt", "").status, 400, "in no spelling");
}

static void conditions(struct task *t, struct fixture *f)
{
    struct reply r = get(t, f, "/digits.txt", "");
    struct str etag = reply_header(&r, "etag");
    char header[160];
    snprintf(header, sizeof(header), "If-None-Match: \"x\", W/%.*s\r\n", STR_ARG(etag));
    r = get(t, f, "/digits.txt", header);
    ok(r.status == 304 && r.body.n == 0, "the tag is known");
    ok(str_eq(reply_header(&r, "etag"), etag) && reply_header(&r, "vary").p &&
           !reply_header(&r, "content-length").p,
       "304 repeats what caches need, and no length");
    is_int(get(t, f, "/digits.txt", "If-None-Match: \"x\"\r\n").status, 200, "another tag");
    is_int(get(t, f, "/digits.txt", "If-None-Match: *\r\n").status, 304, "any tag");
    is_int(get(t, f, "/digits.txt", "If-Modified-Since: Tue, 14 Nov 2023 22:13:20 GMT\r\n").status,
           304, "not modified since");
    is_int(get(t, f, "/digits.txt", "If-Modified-Since: Tue, 14 Nov 2023 22:13:19 GMT\r\n").status,
           200, "modified since");
    is_int(get(t, f, "/digits.txt", "If-Modified-Since: yesterday\r\n").status, 200, "no date");
    is_int(get(t, f, "/digits.txt",
               "If-None-Match: \"x\"\r\nIf-Modified-Since: Tue, 14 Nov 2023 22:13:20 GMT\r\n")
               .status,
           200, "a tag goes before a date");
    put("web/digits.txt", "0123456789", 10, MTIME + 5);
    snprintf(header, sizeof(header), "If-None-Match: %.*s\r\n", STR_ARG(etag));
    is_int(get(t, f, "/digits.txt", header).status, 200, "the file was written again");
    put_text("web/digits.txt", "0123456789");
}

static void compressed(struct task *t, struct fixture *f)
{
    struct reply p = get(t, f, "/app.js", "");
    is_str(p.body, STR("plain script"), "not asked for");
    struct reply r = get(t, f, "/app.js", "Accept-Encoding: gzip, br\r\n");
    is_str(r.body, STR("BROTLI"), "brotli goes first");
    is_str(reply_header(&r, "content-encoding"), STR("br"), "and is named");
    is_str(reply_header(&r, "content-type"), STR("text/javascript; charset=utf-8"),
           "the type is that of the script");
    is_str(reply_header(&r, "vary"), STR("Accept-Encoding"), "caches are warned");
    ok(!str_eq(reply_header(&r, "etag"), reply_header(&p, "etag")), "it has a tag of its own");
    is_str(get(t, f, "/app.js", "Accept-Encoding: gzip\r\n").body, STR("GZIPED"), "gzip");
    struct reply g = get(t, f, "/app.js", "Accept-Encoding: gzip\r\n");
    ok(!str_eq(reply_header(&r, "etag"), reply_header(&g, "etag")), "and a tag of its own again");
    is_str(get(t, f, "/only.css", "Accept-Encoding: br, gzip\r\n").body, STR("GZ"),
           "what there is");
    is_str(get(t, f, "/stale.js", "Accept-Encoding: br\r\n").body, STR("new script"),
           "an old compressed form is passed over");
    is_str(get(t, f, "/app.js", "Accept-Encoding: br;q=0\r\n").body, STR("plain script"),
           "refused");
    static const struct {
        const char *accepted, *body;
    } cases[] = {
        {"br;q=0.5, gzip;q=1", "GZIPED"},
        {"br;q=0.5\r\nAccept-Encoding: gzip;q=0.6", "GZIPED"},
        {"gzip;q=0.5, br;q=0.6", "BROTLI"},
        {"identity, gzip;q=0.5", "plain script"},
        {"identity;q=0.5, gzip;q=0.5", "GZIPED"},
        {"identity;q=0, gzip;q=0.1", "GZIPED"},
        {"identity;q=0", "plain script"},
        {"*", "BROTLI"},
        {"*;q=0", "plain script"},
        {"*;q=0.5, br;q=0.4", "GZIPED"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        is_str(get(t, f, "/app.js",
                   arena_printf(task_arena(t), "Accept-Encoding: %s\r\n", cases[i].accepted))
                   .body,
               str_of(cases[i].body), "%s", cases[i].accepted);
    char header[160];
    snprintf(header, sizeof(header), "Accept-Encoding: br\r\nIf-None-Match: %.*s\r\n",
             STR_ARG(reply_header(&r, "etag")));
    is_int(get(t, f, "/app.js", header).status, 304, "its tag is known");
}

static void lasting(struct task *t, struct fixture *f)
{
    for (size_t i = 0; i < sizeof(assets) / sizeof(assets[0]); i++) {
        struct reply r = get(t, f, arena_printf(task_arena(t), "/%s", assets[i].name), "");
        is_str(reply_header(&r, "cache-control"),
               assets[i].hashed ? STR("public, max-age=31536000, immutable") : STR("no-cache"),
               "%s", assets[i].name);
        ok(r.status == 200 && reply_header(&r, "etag").p, "with a tag");
    }
    struct reply r = get(t, f, "/", "");
    is_str(reply_header(&r, "cache-control"), STR("no-cache"), "a page is revalidated");
}

static void ranges(struct task *t, struct fixture *f)
{
    struct reply r = get(t, f, "/digits.txt", "Range: bytes=2-4\r\n");
    ok(r.status == 206 && str_eq(r.body, STR("234")), "a part");
    is_str(reply_header(&r, "content-range"), STR("bytes 2-4/10"), "which");
    is_str(get(t, f, "/digits.txt", "Range: bytes=-2\r\n").body, STR("89"), "the last two");
    r = get(t, f, "/digits.txt", "Range: bytes=10-\r\n");
    ok(r.status == 416 && str_eq(reply_header(&r, "content-range"), STR("bytes */10")), "beyond");
    r = get(t, f, "/digits.txt", "Range: bytes=0-1,3-4\r\n");
    ok(r.status == 200 && r.body.n == 10, "two parts are the whole");
    r = get(t, f, "/large.bin", "Range: bytes=100-300099\r\n");
    ok(r.status == 206 && r.body.n == 300000 && r.body.p[0] == 'a' + 100 / 7 % 26, "a large part");
    r = get(t, f, "/digits.txt", "Range: bytes=2-4\r\nIf-Range: Tue, 14 Nov 2023 22:13:20 GMT\r\n");
    is_int(r.status, 206, "the file is still the same");
    r = get(t, f, "/digits.txt", "Range: bytes=2-4\r\nIf-Range: \"x\"\r\n");
    is_int(r.status, 200, "it is another one");
}

/* Makes openat2 fail in this process, as on old kernels. */
static void forbid_openat2(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};
    check(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    check(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

static void step_by_step(struct task *t, struct fixture *f)
{
    static const char *const closed[] = {"/out.txt", "/up/secret.txt", "/inside.txt", "/.hidden",
                                         "/none/x",  "/digits.txt/x",  "/fifo"};
    is_str(get(t, f, "/digits.txt", "").body, STR("0123456789"), "a file without openat2");
    is_str(get(t, f, "/docs/index.html", "").body, STR("<p>docs"), "one in a folder");
    is_str(get(t, f, "/docs", "").body, STR("<p>docs"), "the folder");
    for (size_t i = 0; i < sizeof(closed) / sizeof(closed[0]); i++)
        is_int(get(t, f, closed[i], "").status, 404, "%s is not there", closed[i]);
}

int main(void)
{
    make_files();
    RUN(plain);
    RUN(nowhere);
    RUN(conditions);
    RUN(compressed);
    RUN(lasting);
    RUN(ranges);
    forbid_openat2();
    RUN(step_by_step);
    remove_files();
    return tap_done();
}
