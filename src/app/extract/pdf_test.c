#include "app/extract/pdf.h"

#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include "tests/pdf.h"
#include "tests/probe.h"
#include "tests/tap.h"
#include "wire/http_server.h"

static const struct pdf_options usual = {
    .command = "", .url = "", .seconds = 60, .memory_mb = 1024, .pages = 2000};

static int64_t pages, took_ms;
static struct str text;
static const char *reason;

static int read_with(struct task *t, const struct pdf_options *o, struct str file)
{
    int64_t began = loop_now_us(task_loop(t));
    text = STR("untouched");
    pages = -1;
    reason = "";
    int err = pdf_text(t, o, file, &text, &pages, &reason);
    check((err == ERR_INVALID) == (*reason != 0) &&
          (!*reason || pdf_reason(str_of(reason)) == reason));
    took_ms = (loop_now_us(task_loop(t)) - began) / 1000;
    if (err)
        check(str_eq(text, STR("untouched")) && pages == -1);
    check(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
    return err;
}

/* The word that belongs to a sentence. */
static const char *word_of(const char *sentence)
{
    static const char *const known[][2] = {
        {"not a PDF", PDF_NONE},      {"locked by a password", PDF_LOCKED},
        {"no text", PDF_NO_TEXT},     {"seconds", PDF_TIME},
        {"MB of memory", PDF_MEMORY}, {"MB of text", PDF_MUCH_TEXT},
        {"pages", PDF_PAGES},         {"cannot be read", PDF_DAMAGED},
        {"damaged", PDF_DAMAGED},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strstr(sentence, known[i][0]))
            return known[i][1];
    return "";
}

static bool fails(struct task *t, const struct pdf_options *o, struct str file, int want,
                  const char *sentence)
{
    int err = read_with(t, o, file);
    if (err == ERR_INVALID)
        is_str(str_of(reason), str_of(word_of(task_error(t))), "by a word: %s", reason);
    return ok(err == want && strstr(task_error(t), sentence), "%s, after %d ms: %s", err_name(err),
              (int)took_ms, err ? task_error(t) : "read");
}

/* --- good ones --- */

static void test_good(struct task *t, void *arg)
{
    (void)arg;
    struct pdf *p = pdf_pages(3, "Aspirin, 5.2 mg");
    struct str file = pdf_finish(p, "");
    is_int(read_with(t, &usual, file), 0, "a PDF is read: %s", task_error(t));
    is_int(pages, 3, "its pages are counted");
    is_str(text,
           STR("page 1: Aspirin, 5.2 mg\n\fpage 2: Aspirin, 5.2 mg\n\fpage 3: Aspirin, 5.2 mg\n\f"),
           "a form feed ends each");
    struct pdf_options few = usual;
    few.pages = 3;
    is_int(read_with(t, &few, file), 0, "as many pages as are allowed");
    few.pages = 2;
    fails(t, &few, file, ERR_INVALID, "more than 2 pages");
    pdf_free(p);
}

/* A font that every reader is expected to know: its tables are those of poppler-data. */
static void test_chinese(struct task *t, void *arg)
{
    (void)arg;
    struct pdf *p = pdf_new();
    pdf_object(p, "<< /Type /Catalog /Pages 2 0 R >>");
    pdf_object(p, "<< /Type /Pages /Count 1 /Kids [4 0 R] >>");
    pdf_object(p, "<< /Type /Font /Subtype /Type0 /BaseFont /STSong-Light "
                  "/Encoding /UniGB-UCS2-H /DescendantFonts [6 0 R] >>");
    pdf_page(p, STR("BT /F1 12 Tf 72 720 Td <4e2d6587> Tj ET"));
    pdf_object(p, "<< /Type /Font /Subtype /CIDFontType0 /BaseFont /STSong-Light /CIDSystemInfo "
                  "<< /Registry (Adobe) /Ordering (GB1) /Supplement 2 >> >>");
    is_int(read_with(t, &usual, pdf_finish(p, "")), 0, "Chinese: %s", task_error(t));
    is_str(text, STR("中文\n\f"), "is read");
    struct pdf_options o = usual; /* says what pdftotext says without them */
    o.command = "/usr/bin/perl -e "
                "print('x');warn(\"Missing\\x20language\\x20pack\\x20for\\x20'Adobe-GB1'\")";
    fails(t, &o, buf_str(&p->out), ERR_UNAVAILABLE, "install the package poppler-data");
    pdf_free(p);
}

static void test_scripts(struct task *t, void *arg)
{
    (void)arg;
    struct pdf *p = pdf_new();
    pdf_object(p, "<< /Type /Catalog /Pages 2 0 R /OpenAction << /S /JavaScript /JS 6 0 R >> "
                  "/Names << /EmbeddedFiles << /Names [(a.exe) 7 0 R] >> >> >>");
    pdf_object(p, "<< /Type /Pages /Count 1 /Kids [4 0 R] >>");
    pdf_object(p, "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>");
    pdf_page(p, STR("BT /F1 12 Tf 72 720 Td (visible) Tj ET"));
    pdf_stream(p, "", STR("app.launchURL('http://127.0.0.1/'); while (true) ;"));
    pdf_object(p, "<< /Type /Filespec /F (a.exe) /EF << /F 8 0 R >> >>");
    pdf_stream(p, "/Type /EmbeddedFile", STR("MZ attached"));
    is_int(read_with(t, &usual, pdf_finish(p, "")), 0, "scripts and attachments: %s",
           task_error(t));
    is_str(text, STR("visible\n\f"), "are left alone");
    pdf_free(p);
}

/* --- hostile ones --- */

/* So many megabytes of one line of content, compressed to a thousandth. */
static struct str bomb(struct buf *out, size_t megabytes, const char *line)
{
    z_stream z = {0};
    size_t n = strlen(line), have = 0;
    char *piece = malloc(1 << 20);
    check(piece && deflateInit(&z, 1) == Z_OK);
    while (have + n <= 1 << 20) {
        memcpy(piece + have, line, n);
        have += n;
    }
    for (size_t i = 0; i <= megabytes; i++) {
        z.next_in = (Bytef *)piece;
        z.avail_in = (uInt)have;
        do {
            z.next_out = (Bytef *)buf_reserve(out, 65536);
            z.avail_out = 65536;
            check(deflate(&z, i == megabytes ? Z_FINISH : Z_NO_FLUSH) != Z_STREAM_ERROR);
            buf_added(out, 65536 - z.avail_out);
        } while (z.avail_out == 0);
    }
    deflateEnd(&z);
    free(piece);
    return buf_str(out);
}

static struct pdf *bomb_file(size_t megabytes, const char *line)
{
    struct pdf *p = pdf_new();
    struct buf packed;
    buf_init(&packed);
    pdf_object(p, "<< /Type /Catalog /Pages 2 0 R >>");
    pdf_object(p, "<< /Type /Pages /Count 1 /Kids [4 0 R] >>");
    pdf_object(p, "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>");
    pdf_object(p, "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 5 0 R "
                  "/Resources << /Font << /F1 3 0 R >> >> >>");
    pdf_stream(p, "/Filter /FlateDecode", bomb(&packed, megabytes, line));
    buf_release(&packed);
    return p;
}

static void test_bombs(struct task *t, void *arg)
{
    (void)arg;
    struct pdf_options o = usual;
    o.memory_mb = 128;
    struct pdf *p = bomb_file(64, "BT /F1 12 Tf 72 720 Td (boom) Tj ET\n");
    struct str file = pdf_finish(p, "");
    ok(file.n < 1 << 20, "a bomb of %zu bytes", file.n);
    fails(t, &o, file, ERR_INVALID, "more than 128 MB of memory");
    pdf_free(p);

    o.seconds = 1;
    p = bomb_file(400, "q 1 0 0 1 0 0 cm Q\n");
    check(task_yield(t) == 0); /* the deadline begins now */
    fails(t, &o, pdf_finish(p, ""), ERR_INVALID, "takes more than 1 seconds");
    ok(took_ms < 3000, "it ends in time: %d ms", (int)took_ms);
    pdf_free(p);
}

static void test_many_pages(struct task *t, void *arg)
{
    (void)arg;
    struct pdf *p = pdf_pages(10000, "and on");
    fails(t, &usual, pdf_finish(p, ""), ERR_INVALID, "more than 2000 pages");
    pdf_free(p);
}

static void test_cycles(struct task *t, void *arg)
{
    (void)arg;
    struct pdf *p = pdf_new();
    pdf_object(p, "<< /Type /Catalog /Pages 2 0 R >>");
    pdf_object(p, "<< /Type /Pages /Count 1000000 /Kids [2 0 R 2 0 R 3 0 R] /Parent 2 0 R >>");
    pdf_object(p, "<< /Type /Pages /Count 1000000 /Kids [2 0 R 3 0 R] >>");
    struct pdf_options o = usual;
    o.seconds = 10;
    fails(t, &o, pdf_finish(p, ""), ERR_INVALID, "this PDF");
    pdf_free(p);

    p = pdf_new(); /* a form that draws itself, and a length that is itself */
    pdf_object(p, "<< /Type /Catalog /Pages 2 0 R >>");
    pdf_object(p, "<< /Type /Pages /Count 1 /Kids [4 0 R] >>");
    pdf_object(p, "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>");
    pdf_object(p, "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 5 0 R "
                  "/Resources << /XObject << /X 5 0 R >> >> >>");
    pdf_stream(p,
               "/Type /XObject /Subtype /Form /BBox [0 0 9 9] "
               "/Resources << /XObject << /X 5 0 R >> >>",
               STR("/X Do /X Do"));
    pdf_object(p, "<< /Length 6 0 R >>");
    fails(t, &o, pdf_finish(p, ""), ERR_INVALID, "this PDF");
    pdf_free(p);
}

static void test_damaged(struct task *t, void *arg)
{
    (void)arg;
    fails(t, &usual, STR(""), ERR_INVALID, "not a PDF");
    fails(t, &usual, STR("<html>no</html>"), ERR_INVALID, "not a PDF");
    fails(t, &usual, STR("%PDF-1.4\n"), ERR_INVALID, "this PDF cannot be read");
    struct pdf *p = pdf_pages(3, "whole");
    struct str file = pdf_finish(p, "");
    file.n /= 2; /* Poppler finds the objects that are there */
    int err = read_with(t, &usual, file);
    ok(err == ERR_INVALID || (err == 0 && pages < 3), "half of a file: %s",
       err ? task_error(t) : "read as far as it goes");
    pdf_free(p);

    p = pdf_new();
    pdf_object(p, "<< /Type /Catalog /Pages 2 0 R >>");
    pdf_object(p, "<< /Type /Pages /Count 2 /Kids [4 0 R 4 0 R] >>");
    pdf_object(p, "null");
    pdf_page(p, STR("0 0 m 100 100 l S"));
    fails(t, &usual, pdf_finish(p, ""), ERR_INVALID, "no text in this PDF");
    pdf_free(p);
}

static void test_noise(struct task *t, void *arg)
{
    (void)arg;
    size_t n = 50 << 20;
    char *noise = malloc(n);
    uint64_t x = 88172645463325252u;
    check(noise);
    for (size_t i = 0; i + 8 <= n; i += 8) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        memcpy(noise + i, &x, 8);
    }
    fails(t, &usual, str_from(noise, n), ERR_INVALID, "not a PDF");
    memcpy(noise, "%PDF-1.4\n", 9);
    fails(t, &usual, str_from(noise, n), ERR_INVALID, "this PDF cannot be read");
    free(noise);
}

static void test_encrypted(struct task *t, void *arg)
{
    (void)arg;
    struct pdf *p = pdf_pages(1, "secret");
    struct str file = pdf_finish(p, "/ID [(abcd) (abcd)] /Encrypt << /Filter /Standard /V 1 /R 2 "
                                    "/O (owner-owner-owner-owner-owner-12) "
                                    "/U (user--user--user--user--user--12) /P -4 >>");
    fails(t, &usual, file, ERR_INVALID, "locked by a password");
    pdf_free(p);
}

/* --- another program --- */

static char folder[] = "/tmp/millrace-pdf.XXXXXX";
static char probe[64];

static void fails_as(struct task *t, const char *command, int want, const char *sentence)
{
    struct pdf *p = pdf_pages(1, "x");
    struct pdf_options o = usual;
    o.command = command;
    o.seconds = 1;
    fails(t, &o, pdf_finish(p, ""), want, sentence);
    pdf_free(p);
}

/* A program that the document has taken over, in the place of pdftotext. */
static void test_taken_over(struct task *t, void *arg)
{
    (void)arg;
    const char *const tries[][2] = {
        {"tcp", "socket: Operation not permitted"},
        {"udp", "socket: Operation not permitted"},
        {"unix", "socket: Operation not permitted"},
        {"connect 80", "socket: Operation not permitted"},
        {"read /etc/passwd", "read: Permission denied"},
        {"list /tmp", "open: Permission denied"},
        {"write /tmp/x", "write: Operation not permitted"},
        {"fork", "fork: Operation not permitted"},
        {"outlive 1000", "fork: Operation not permitted"},
        {"ptrace", "ptrace: Operation not permitted"},
        {"signal 1", "kill: Operation not permitted"},
        {"uring", "io_uring_setup: Operation not permitted"},
        {"memory 2000", "malloc: Cannot allocate memory"},
        {"spin 1000", "takes more than 1 seconds"},
        {"abort", "crashed"},
        {"thread", "no text"}, /* that it may */
    };
    probe_compile(t, probe);
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++)
        fails_as(t, arena_printf(task_arena(t), "%s %s", probe, tries[i][0]), ERR_INVALID,
                 tries[i][1]);
    char *refused = arena_printf(task_arena(t), "%s read %s", probe, probe);
    fails_as(t, refused, ERR_INVALID, "no text"); /* itself */
}

static void test_command(struct task *t, void *arg)
{
    (void)arg;
    struct pdf *p = pdf_pages(1, "x");
    struct str file = pdf_finish(p, "");
    struct pdf_options o = usual;
    o.command = "/usr/bin/tail  -n 1";
    is_int(read_with(t, &o, file), 0, "another program: %s", task_error(t));
    is_str(text, STR("%%EOF\n"), "gets the file and gives the text");
    is_int(pages, 1, "of a page, at least");
    o.command = "/usr/bin/printf a\\000b\\001c\\fd\\377\\f";
    is_int(read_with(t, &o, file), 0, "text with bytes of all kinds: %s", task_error(t));
    ok(str_utf8_valid(text) && str_starts(text, STR("a b c\fd")), "is cleaned: %.*s",
       STR_ARG(text));
    is_int(pages, 2, "its pages are counted");
    o.command = "/usr/bin/yes";
    fails(t, &o, file, ERR_INVALID, "more than 20 MB of text");
    o.command = "/usr/bin/sleep 100";
    o.seconds = 1;
    fails(t, &o, file, ERR_INVALID, "takes more than 1 seconds");
    o.seconds = 60;
    int64_t old = task_deadline(t, 100);
    is_int(read_with(t, &o, file), ERR_TIMEOUT, "the task's own deadline is not the document's");
    task_deadline_restore(t, old);
    fails_as(t, "/nonexistent/parser", ERR_UNAVAILABLE, "there is no program /nonexistent/parser");
    fails_as(t, "/etc/hostname", ERR_UNAVAILABLE, "cannot start /etc/hostname");
    fails_as(t, "/usr/bin/env no-such-program", ERR_UNAVAILABLE, "does not run");
    fails_as(t, "/usr/bin/ls /none", ERR_INVALID, "/usr/bin/ls: cannot access");
    pdf_free(p);
}

static void without_program(struct task *t, void *arg)
{
    struct pdf *p = pdf_pages(1, "x");
    int err = read_with(t, &usual, pdf_finish(p, ""));
    pdf_free(p);
    *(int *)arg =
        err == ERR_UNAVAILABLE && strstr(task_error(t), "install the package poppler-utils");
}

#define NO_CHROOT 77

/* In an empty root folder. */
static void test_not_installed(void)
{
    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0) {
        int right = 0;
        if (geteuid() != 0 && unshare(CLONE_NEWUSER) != 0)
            _exit(NO_CHROOT);
        check(chroot(folder) == 0 && chdir("/") == 0);
        tap_task(without_program, &right, true);
        _exit(right ? 0 : 1);
    }
    int status;
    check(waitpid(pid, &status, 0) == pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == NO_CHROOT)
        printf("# not tried without pdftotext: neither root nor user namespaces\n");
    else
        is_int(status, 0, "without pdftotext the message names its package");
}

/* --- a service --- */

static int serve_text(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)ctx;
    struct str body;
    int err = http_body(t, x, &body);
    if (err)
        return err;
    bool right = pdf_is(body) && str_eq(http_header(x, "Content-Type"), STR("application/pdf"));
    return http_reply(t, x, right ? 200 : 400, "text/markdown", STR("# Title\n\ntext\f"));
}

static int serve_json(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)ctx;
    struct str which = http_param(x, "which");
    if (str_eq(which, STR("bad")))
        return http_reply(t, x, 200, "application/json", STR("{"));
    if (str_eq(which, STR("none")))
        return http_reply(t, x, 200, "application/json", STR("{\"pages\": 1}"));
    if (str_eq(which, STR("text")))
        return http_reply(t, x, 200, "application/json", STR("{\"text\": \"a\\u00e9\"}"));
    return http_reply(t, x, 200, "application/json; charset=utf-8",
                      STR("{\"pages\": 1, \"markdown\": \"# b\"}"));
}

static int serve_status(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)ctx;
    int64_t status;
    check(str_to_i64(http_param(x, "status"), &status));
    return http_reply(t, x, (int)status, "text/plain", STR("because of this\nand that"));
}

static int serve_never(struct task *t, struct http_exchange *x, void *ctx)
{
    (void)ctx;
    (void)x;
    return task_sleep(t, 100000);
}

static const struct http_route routes[] = {
    {"POST", "/text", serve_text, 1 << 20},
    {"POST", "/json/:which", serve_json, 1 << 20},
    {"POST", "/status/:status", serve_status, 1 << 20},
    {"POST", "/never", serve_never, 1 << 20},
};

struct service {
    struct http_server *server;
    int fd, port;
};

static void serve(struct task *t, void *arg)
{
    struct service *s = arg;
    int err = http_server_run(t, s->server, s->fd);
    (void)err;
}

static void listen_on(struct service *s, struct loop *l)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof at;
    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    check(s->fd >= 0 && bind(s->fd, (struct sockaddr *)&at, len) == 0 && listen(s->fd, 10) == 0 &&
          getsockname(s->fd, (struct sockaddr *)&at, &len) == 0);
    s->port = ntohs(at.sin_port);
    s->server = http_server_new(l, &(struct http_options){.limits = http_limits_default});
    http_server_add(s->server, routes, sizeof routes / sizeof *routes, NULL);
}

static void ask(struct task *t, const struct service *s, const char *path, int want,
                struct str sentence)
{
    struct pdf *p = pdf_pages(1, "x");
    struct pdf_options o = usual;
    o.seconds = 2;
    o.url = arena_printf(task_arena(t), "http://127.0.0.1:%d%s", s->port, path);
    if (want) {
        fails(t, &o, pdf_finish(p, ""), want, sentence.p);
    } else {
        is_int(read_with(t, &o, pdf_finish(p, "")), 0, "%s: %s", path, task_error(t));
        is_str(text, sentence, "its text");
    }
    pdf_free(p);
}

static void test_service(struct task *t, void *arg)
{
    (void)arg;
    struct service s;
    struct group g;
    listen_on(&s, task_loop(t));
    group_init(&g, task_loop(t));
    check(task_go(&g, "service", serve, &s) == 0);
    ask(t, &s, "/text", 0, STR("# Title\n\ntext\f"));
    ask(t, &s, "/json/text", 0, STR("a\xc3\xa9"));
    ask(t, &s, "/json/markdown", 0, STR("# b"));
    ask(t, &s, "/json/none", ERR_UNAVAILABLE, STR("neither"));
    ask(t, &s, "/json/bad", ERR_UNAVAILABLE, STR("not valid JSON"));
    ask(t, &s, "/status/422", ERR_INVALID, STR("this PDF cannot be read: because of this"));
    ask(t, &s, "/status/503", ERR_UNAVAILABLE, STR("the service answers 503: because of this"));
    ask(t, &s, "/status/404", ERR_UNAVAILABLE, STR("the service answers 404"));
    ask(t, &s, "/never", ERR_UNAVAILABLE, STR("has not answered for 2 seconds"));
    group_cancel(&g);
    check(group_join(t, &g) == 0);
    http_server_free(s.server);
    close(s.fd);
    ask(t, &s, "/text", ERR_UNAVAILABLE, STR("extract.pdf_url: "));
}

int main(void)
{
    check(mkdtemp(folder) && chmod(folder, 0755) == 0);
    snprintf(probe, sizeof probe, "%s/probe", folder);
    setenv("no_proxy", "127.0.0.1", 1);
    test_not_installed();
    tap_task(test_good, NULL, true);
    tap_task(test_chinese, NULL, true);
    tap_task(test_scripts, NULL, true);
    tap_task(test_bombs, NULL, true);
    tap_task(test_many_pages, NULL, true);
    tap_task(test_cycles, NULL, true);
    tap_task(test_damaged, NULL, true);
    tap_task(test_noise, NULL, true);
    tap_task(test_encrypted, NULL, true);
    tap_task(test_taken_over, NULL, true);
    tap_task(test_command, NULL, true);
    tap_task(test_service, NULL, true);
    unlink(probe);
    rmdir(folder);
    return tap_done();
}
