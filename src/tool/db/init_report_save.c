#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/json.h"
#include "tool/db/init_report.h"

/* --- as JSON --- */

static void put_counts(struct json_writer *w, struct init_counts *c)
{
    for (size_t i = 0; i < INIT_COUNTS; i++) {
        jw_key(w, str_of(init_count_names[i]));
        jw_int(w, *init_count(c, i));
    }
}

static void put_totals(struct json_writer *w, const struct init_report *r)
{
    const struct init_totals *s = &r->totals;
    struct init_counts sum = init_report_sum(r);
    jw_key(w, STR("papers"));
    jw_object(w);
    put_counts(w, &sum);
    jw_end_object(w);
    jw_key(w, STR("files"));
    jw_object(w);
    jw_put_int(w, "read", s->files_read);
    jw_put_int(w, "unchanged", s->files_unchanged);
    jw_put_int(w, "failed", s->files_failed);
    jw_end_object(w);
    jw_key(w, STR("keys"));
    jw_object(w);
    jw_put_int(w, "found", s->keys_found);
    jw_put_int(w, "new", s->keys_new);
    jw_end_object(w);
    jw_key(w, STR("catalog"));
    jw_object(w);
    jw_put_int(w, "journals", s->journals_found);
    jw_put_int(w, "journals_changed", s->journals_changed);
    jw_put_int(w, "tags", s->tags);
    jw_put_int(w, "tags_changed", s->tags_changed);
    jw_put_int(w, "pairs", s->pairs);
    jw_put_int(w, "pairs_changed", s->pairs_changed);
    jw_end_object(w);
    jw_put_int(w, "load", s->load);
    jw_put_int(w, "papers_left", s->papers_left);
    jw_put_int(w, "files_unknown", s->files_unknown);
    jw_put_int(w, "papers_kept", s->papers_kept);
    jw_put_int(w, "papers_withdrawn", s->papers_withdrawn);
    jw_put_bool(w, "prune_skipped", s->prune_skipped);
    jw_put_int(w, "blocks_changed", s->blocks_changed);
    jw_put_int(w, "dictionary", s->dictionary);
    jw_key(w, STR("seconds"));
    jw_real(w, s->seconds);
}

static void put_journals(struct json_writer *w, struct arena *a, const struct init_report *r)
{
    size_t n;
    struct init_journal **v = init_report_journals(a, r, &n);
    jw_key(w, STR("journals"));
    jw_array(w);
    for (size_t i = 0; i < n; i++) {
        jw_object(w);
        jw_put_str(w, "name", v[i]->name);
        put_counts(w, &v[i]->counts);
        jw_end_object(w);
    }
    jw_end_array(w);
}

static void put_reasons(struct json_writer *w, struct arena *a, const struct init_report *r)
{
    size_t n;
    const struct init_reason **v = init_report_reasons(a, r, &n);
    jw_key(w, STR("reasons"));
    jw_object(w);
    for (size_t i = 0; i < n; i++) {
        jw_key(w, str_of(v[i]->text));
        jw_int(w, v[i]->lost + v[i]->noted);
    }
    jw_end_object(w);
}

static void put_problems(struct json_writer *w, const struct init_report *r)
{
    jw_key(w, STR("problems"));
    jw_array(w);
    for (size_t i = 0; i < r->problem_count; i++) {
        const struct init_problem *p = &r->problems[i];
        jw_object(w);
        jw_put_str(w, "file", p->path);
        jw_put_int(w, "line", p->line);
        jw_put_str(w, "reason", str_of(p->reason));
        jw_put_str(w, "about", p->about);
        jw_put_bool(w, "lost", p->lost);
        jw_end_object(w);
    }
    jw_end_array(w);
    jw_put_int(w, "problems_left_out", r->left_out);
}

static void write_json(struct buf *out, struct arena *a, const struct init_report *r)
{
    struct json_writer w;
    jw_init(&w, out);
    jw_object(&w);
    put_totals(&w, r);
    put_journals(&w, a, r);
    put_reasons(&w, a, r);
    put_problems(&w, r);
    jw_end_object(&w);
    buf_add_char(out, '\n');
}

/* --- into a file --- */

/* Closes fd in any case. */
static int write_and_close(int fd, struct str s)
{
    int why = 0;
    while (s.n && !why) {
        ssize_t n = write(fd, s.p, s.n);
        if (n < 0 && errno != EINTR)
            why = errno;
        if (n > 0)
            s = str_from(s.p + n, s.n - (size_t)n);
    }
    if (close(fd) < 0 && !why)
        why = errno;
    errno = why;
    return why ? ERR_IO : 0;
}

static int replace(struct arena *a, const char *path, struct str text)
{
    char *fresh = arena_printf(a, "%s.XXXXXX", path);
    int fd = mkostemp(fresh, O_CLOEXEC);
    if (fd < 0)
        return ERR_IO;
    int err = write_and_close(fd, text);
    if (!err && (chmod(fresh, 0644) < 0 || rename(fresh, path) < 0))
        err = ERR_IO;
    if (err) {
        int why = errno;
        unlink(fresh);
        errno = why;
    }
    return err;
}

static int save(struct arena *a, const char *path, struct str text)
{
    struct stat st;
    if (stat(path, &st) < 0 || S_ISREG(st.st_mode))
        return replace(a, path, text);
    int fd = open(path, O_WRONLY | O_CLOEXEC); /* devices such as /dev/stdout are not replaced */
    return fd < 0 ? ERR_IO : write_and_close(fd, text);
}

int init_report_save(const struct init_report *r, const char *path)
{
    struct arena a;
    struct buf text;
    arena_init(&a);
    buf_init(&text);
    write_json(&text, &a, r);
    int err = save(&a, path, buf_str(&text));
    int why = errno;
    buf_release(&text);
    arena_release(&a);
    errno = why;
    return err;
}
