#include "app/extract/pdf.h"

#include <signal.h>
#include <sys/wait.h>

#include "base/json.h"
#include "corpus/charset.h"
#include "engine/setup/config.h"
#include "loop/process.h"
#include "wire/http_client.h"

#define PDFTOTEXT     "/usr/bin/pdftotext"
#define HEAD_BYTES    1024 /* "%PDF-" may come after some junk; all readers look this far */
#define ERRORS_MAX    16384
#define WORDS_MAX     32
#define REPLY_MAX     (2 * PDF_TEXT_BYTES_MAX) /* JSON of a service: escapes */
#define QUOTED_MAX    160
#define GRACE_SECONDS 5 /* processor time is limited to more than the time on the clock */
#define MB            (1024 * 1024)

/* All that pdftotext reads: itself, libraries, fonts and tables of characters; and what the run
 * time of other languages wants. */
static const char *const readable[] = {
    "/usr",       "/lib",           "/lib32",    "/lib64",       "/bin", "/etc/ld.so.cache",
    "/etc/fonts", "/etc/localtime", "/dev/null", "/dev/urandom", NULL,
};

struct pdf_options pdf_options(const struct config *c)
{
    return (struct pdf_options){.command = c->extract_pdf_command,
                                .url = c->extract_pdf_url,
                                .seconds = c->extract_pdf_seconds,
                                .memory_mb = c->extract_pdf_memory_mb,
                                .pages = c->extract_pdf_pages};
}

bool pdf_is(struct str file)
{
    return str_find(str_from(file.p, file.n < HEAD_BYTES ? file.n : HEAD_BYTES), STR("%PDF-")) >= 0;
}

const char *pdf_reason(struct str word)
{
    static const char *const words[] = {PDF_NONE, PDF_LOCKED, PDF_DAMAGED,   PDF_PAGES,
                                        PDF_TIME, PDF_MEMORY, PDF_MUCH_TEXT, PDF_NO_TEXT};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (str_eq(word, str_of(words[i])))
            return words[i];
    return NULL;
}

/* --- what is wrong --- */

/* A PDF that is read. */
struct reading {
    const struct pdf_options *options;
    struct str file;
    const char *reason; /* of ERR_INVALID */
};

static int too_long(struct task *t, struct reading *r)
{
    r->reason = PDF_TIME;
    return task_fail(t, ERR_INVALID, "reading this PDF takes more than %lld seconds",
                     (long long)r->options->seconds);
}

static int too_large(struct task *t, struct reading *r)
{
    r->reason = PDF_MEMORY;
    return task_fail(t, ERR_INVALID, "reading this PDF takes more than %lld MB of memory",
                     (long long)r->options->memory_mb);
}

static int too_much_text(struct task *t, struct reading *r)
{
    r->reason = PDF_MUCH_TEXT;
    return task_fail(t, ERR_INVALID, "this PDF has more than %d MB of text",
                     PDF_TEXT_BYTES_MAX / MB);
}

/* The first line of what a program said, as far as it is printable: for a message. */
static const char *first_line(struct arena *a, struct str errors)
{
    struct str line = str_trim(str_cut(&errors, '\n'));
    line.n = str_utf8_prefix(str_from(line.p, line.n < QUOTED_MAX ? line.n : QUOTED_MAX));
    char *z = str_z(a, line);
    for (char *p = z; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7f)
            *p = ' ';
    return *z ? z : "it gave no reason";
}

static bool says(struct str errors, struct str words)
{
    return str_find(errors, words) >= 0;
}

static int cannot_be_read(struct task *t, struct reading *r, const char *line)
{
    r->reason = PDF_DAMAGED;
    return task_fail(t, ERR_INVALID, "this PDF cannot be read: %s", line);
}

static int ended_by_signal(struct task *t, struct reading *r, int signo)
{
    if (signo == SIGXCPU)
        return too_long(t, r);
    if (signo == SIGKILL)
        return task_fail(t, ERR_UNAVAILABLE,
                         "the program that reads PDFs was killed; is this machine out of memory?");
    r->reason = PDF_DAMAGED;
    return task_fail(t, ERR_INVALID, "this PDF is damaged: the program that reads it crashed (%s)",
                     strsignal(signo));
}

/* Why a program failed. Both Poppler and the C++ library write what is looked for here. */
static int program_failed(struct task *t, struct reading *r, const struct process_end *e)
{
    if (says(e->errors, STR("Out of memory")) || says(e->errors, STR("bad_alloc")))
        return too_large(t, r);
    if (WIFSIGNALED(e->status))
        return ended_by_signal(t, r, WTERMSIG(e->status));
    const char *line = first_line(task_arena(t), e->errors);
    int code = WEXITSTATUS(e->status);
    if (code == 126 || code == 127)
        return task_fail(t, ERR_UNAVAILABLE, "the program that reads PDFs does not run: %s", line);
    if (!says(e->errors, STR("Incorrect password")))
        return cannot_be_read(t, r, line);
    r->reason = PDF_LOCKED;
    return task_fail(t, ERR_INVALID, "this PDF is locked by a password; save it without one");
}

/* --- by a program --- */

static void split_command(struct arena *a, const char *command, const char *words[WORDS_MAX + 1])
{
    size_t n = 0;
    for (struct str rest = str_of(command); rest.p && n < WORDS_MAX;) {
        struct str word = str_cut(&rest, ' ');
        if (word.n)
            words[n++] = str_z(a, word);
    }
    words[n] = NULL;
    check(n > 0); /* the setting is not blank */
}

static int no_program(struct task *t, const struct pdf_options *o, const char *program)
{
    if (*o->command)
        return task_fail(t, ERR_UNAVAILABLE, "extract.pdf_command: there is no program %s",
                         program);
    return task_fail(t, ERR_UNAVAILABLE,
                     "there is no program %s; install the package poppler-utils", program);
}

static int by_program(struct task *t, struct reading *r, struct str *text)
{
    const struct pdf_options *o = r->options;
    /* One page more than allowed shows that there are too many. */
    const char *last = arena_printf(task_arena(t), "%lld", (long long)o->pages + 1);
    const char *own[WORDS_MAX + 1];
    const char *const usual[] = {PDFTOTEXT, "-layout", "-enc", "UTF-8", "-l", last, "-", "-", NULL};
    if (*o->command)
        split_command(task_arena(t), o->command, own);
    struct sandbox box = {.layers = SANDBOX_ALL,
                          .memory_bytes = o->memory_mb * MB,
                          .cpu_seconds = o->seconds + GRACE_SECONDS,
                          .readable = readable,
                          .threads = *o->command};
    struct process p = {.argv = *o->command ? own : usual,
                        .input = r->file,
                        .output_max = PDF_TEXT_BYTES_MAX,
                        .errors_max = ERRORS_MAX,
                        .sandbox = &box};
    struct process_end end;
    int err = process_run(t, &p, &end);
    if (err == ERR_NOT_FOUND)
        return no_program(t, o, p.argv[0]);
    if (err == ERR_IO)
        return task_fail(t, ERR_UNAVAILABLE, "PDFs cannot be read: %s", task_error(t));
    if (err == ERR_LIMIT)
        return too_much_text(t, r);
    if (!err && end.status != 0)
        return program_failed(t, r, &end);
    /* Text is missing then, perhaps all of it. */
    if (!err && says(end.errors, STR("Missing language pack for 'Adobe-")))
        return task_fail(t, ERR_UNAVAILABLE,
                         "this PDF has Chinese, Japanese or Korean characters whose tables are not "
                         "installed; install the package poppler-data");
    if (!err)
        *text = end.output;
    return err;
}

/* --- by a service --- */

/* {"text": …} or {"markdown": …}; anything but JSON is the text itself. */
static int reply_text(struct task *t, const struct http_response *r, struct str *text)
{
    *text = r->body;
    if (!r->content_type.p || str_find(r->content_type, STR("json")) < 0)
        return 0;
    const struct json *reply;
    if (json_parse(task_arena(t), r->body, &reply, NULL))
        return task_fail(t, ERR_UNAVAILABLE, "extract.pdf_url: the reply is not valid JSON");
    *text = json_str(json_get(reply, "text"));
    if (!text->p)
        *text = json_str(json_get(reply, "markdown"));
    return text->p ? 0
                   : task_fail(t, ERR_UNAVAILABLE,
                               "extract.pdf_url: the reply has neither \"text\" nor \"markdown\"");
}

/* These are about what was sent; all others about the service or its address. */
static bool of_the_document(int status)
{
    return status == 400 || status == 413 || status == 415 || status == 422;
}

static int reply_read(struct task *t, struct reading *r, const struct http_response *reply,
                      struct str *text)
{
    if (reply->status == 200)
        return reply_text(t, reply, text);
    const char *line = first_line(task_arena(t), reply->body);
    if (of_the_document(reply->status))
        return cannot_be_read(t, r, line);
    return task_fail(t, ERR_UNAVAILABLE, "extract.pdf_url: the service answers %d: %s",
                     reply->status, line);
}

static int by_service(struct task *t, struct reading *r, struct str *text)
{
    /* A client of its own: ai.ca_file and ai.proxy are about the AI service. */
    struct http_client *client = http_client_new(task_loop(t), &(struct http_client_options){0});
    const struct str type = STR("Content-Type: application/pdf");
    struct http_call call = {.method = "POST",
                             .url = r->options->url,
                             .headers = &type,
                             .header_count = 1,
                             .body = r->file,
                             .reply_bytes_max = REPLY_MAX};
    struct http_response reply;
    int err = http_call(t, client, &call, &reply);
    http_client_free(client);
    if (err == ERR_LIMIT)
        return too_much_text(t, r);
    if (err && err != ERR_CANCELED && err != ERR_TIMEOUT)
        return task_fail(t, ERR_UNAVAILABLE, "extract.pdf_url: %s", task_error(t));
    return err ? err : reply_read(t, r, &reply, text);
}

/* --- the text --- */

static int64_t count_pages(struct str text)
{
    int64_t feeds = 0;
    for (size_t i = 0; i < text.n; i++)
        feeds += text.p[i] == '\f';
    return feeds ? feeds : 1;
}

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_control(char c)
{
    return (unsigned char)c < ' ' && !is_blank(c);
}

/* Valid UTF-8, and no control characters but blanks. Copied only if it must change. */
static int clean(struct task *t, struct str raw, struct str *text)
{
    struct charset_text found;
    int err = charset_to_utf8(task_arena(t), raw, &found);
    if (err)
        return task_fail(t, ERR_UNAVAILABLE, "this machine cannot convert text from %s",
                         charset_name(found.charset));
    struct str s = found.utf8;
    size_t i = 0;
    while (i < s.n && !is_control(s.p[i]))
        i++;
    if (i < s.n) {
        char *z = str_z(task_arena(t), s);
        for (; i < s.n; i++)
            z[i] = is_control(z[i]) ? ' ' : z[i];
        s.p = z;
    }
    *text = s;
    return 0;
}

static int judge(struct task *t, struct reading *r, struct str raw, struct str *text,
                 int64_t *pages)
{
    int64_t found = count_pages(raw), most = r->options->pages;
    r->reason = PDF_PAGES;
    if (found > most)
        return task_fail(t, ERR_INVALID, "this PDF has more than %lld pages", (long long)most);
    if (raw.n > PDF_TEXT_BYTES_MAX)
        return too_much_text(t, r);
    r->reason = PDF_NO_TEXT;
    if (str_trim_if(raw, is_blank).n == 0)
        return task_fail(t, ERR_INVALID,
                         "there is no text in this PDF; scanned pages need text recognition first");
    int err = clean(t, raw, text);
    if (!err)
        *pages = found;
    return err;
}

static int read_pdf(struct task *t, struct reading *r, struct str *text, int64_t *pages)
{
    const struct pdf_options *o = r->options;
    struct str raw;
    if (!pdf_is(r->file))
        return task_fail(t, ERR_INVALID, "this is not a PDF");
    int64_t old = task_deadline(t, o->seconds * 1000);
    int err = *o->url ? by_service(t, r, &raw) : by_program(t, r, &raw);
    task_deadline_restore(t, old);
    if (err == ERR_TIMEOUT && task_time_left_ms(t) > 0) /* not the task's own deadline */
        return *o->url ? task_fail(t, ERR_UNAVAILABLE,
                                   "extract.pdf_url: the service has not answered for %lld seconds",
                                   (long long)o->seconds)
                       : too_long(t, r);
    return err ? err : judge(t, r, raw, text, pages);
}

int pdf_text(struct task *t, const struct pdf_options *o, struct str file, struct str *text,
             int64_t *pages, const char **reason)
{
    struct reading r = {.options = o, .file = file, .reason = PDF_NONE};
    int err = read_pdf(t, &r, text, pages);
    if (err == ERR_INVALID)
        *reason = r.reason;
    return err;
}
