#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/map.h"
#include "corpus/csv.h"
#include "tool/progress.h"
#include "tool/sample/sample.h"
#include "tool/sample/sample_paper.h"

#define KEYS              8
#define PAPERS_PER_GLANCE 64 /* between two looks at the clock */
#define SPILL_BYTES       (256 * 1024)
#define UPDATE_DATE       "10/31/2025"

struct tree {
    const struct sample_options *options;
    struct progress *progress;
    struct sample_total *total;
};

/* --- the tables --- */

static void add_row(struct csv_writer *w, const char *const *cells)
{
    for (; *cells; cells++)
        csv_add(w, str_of(*cells));
    csv_end_row(w);
}

static void fill_papers(struct csv_writer *w, const struct sample_options *o)
{
    (void)o;
    add_row(w, SAMPLE_LIST("Name", "FullName", "DataRange", "UpdateDate", "Price"));
    for (int i = 0; i < sample_journal_count; i++) {
        const struct sample_journal *j = &sample_journals[i];
        char range[32];
        snprintf(range, sizeof range, "%d-%d", j->first_year, SAMPLE_LAST_YEAR);
        csv_add(w, str_of(j->name));
        csv_add(w, str_of(j->full_name));
        csv_add(w, str_of(range));
        csv_add(w, STR(UPDATE_DATE));
        csv_add_int(w, j->price);
        csv_end_row(w);
    }
}

static void add_tag(struct csv_writer *w, struct map *seen, const char *tag, const char *type)
{
    if (map_add(seen, str_of(tag)))
        add_row(w, SAMPLE_LIST(tag, type));
}

static void fill_tags(struct csv_writer *w, const struct sample_options *o)
{
    (void)o;
    struct map *seen = map_new();
    add_row(w, SAMPLE_LIST("Tag", "TagType"));
    for (int i = 0; i < sample_journal_count; i++)
        add_tag(w, seen, sample_journals[i].field->tag, "一级分类");
    for (int i = 0; i < sample_journal_count; i++) {
        const struct sample_field *f = sample_journals[i].field;
        for (int k = 0; k < f->topic_count; k++)
            add_tag(w, seen, f->topics[k].tag, "二级分类");
    }
    map_free(seen);
}

static void fill_paper_tags(struct csv_writer *w, const struct sample_options *o)
{
    (void)o;
    add_row(w, SAMPLE_LIST("Name", "Tag"));
    for (int i = 0; i < sample_journal_count; i++) {
        const struct sample_journal *j = &sample_journals[i];
        add_row(w, SAMPLE_LIST(j->name, j->field->tag));
        for (int k = 0; k < j->field->topic_count; k++)
            if (j->topics >> k & 1)
                add_row(w, SAMPLE_LIST(j->name, j->field->topics[k].tag));
    }
}

static void fill_keys(struct csv_writer *w, const struct sample_options *o)
{
    struct sample_random r = sample_random_stream((uint64_t)o->seed, UINT64_MAX);
    for (int i = 0; i < KEYS; i++) {
        unsigned long long high = sample_random_next(&r), low = sample_random_next(&r);
        buf_printf(w->out, "sk-sample-%016llx%016llx\n", high, low);
    }
}

static const struct table {
    const char *name;
    void (*fill)(struct csv_writer *w, const struct sample_options *o);
} tables[] = {
    {"PaperAndTagInfo/InfoList.Paper.csv", fill_papers},
    {"PaperAndTagInfo/InfoList.Tag.csv", fill_tags},
    {"PaperAndTagInfo/InfoList.PaperWithTag.csv", fill_paper_tags},
    {"APIKey/sample.txt", fill_keys},
};

#define TABLES (sizeof tables / sizeof *tables)

/* --- files --- */

static const char *path_of(const struct sample_options *o, const char *name)
{
    return arena_printf(o->arena, "%s/%s", o->dir, name);
}

static int make_dir(struct tree *t, const char *name)
{
    const char *path = path_of(t->options, name);
    if (mkdir(path, 0777) == 0 || errno == EEXIST)
        return 0;
    return sample_complain(path, strerror(errno));
}

/* A new file, written through a buffer. Errors are reported with the path. */
struct file {
    const char *path;
    int fd;
    struct buf buf; /* what is not written yet */
};

/* The file must not exist: nothing is ever overwritten. */
static int open_file(struct tree *t, struct file *f, const char *name)
{
    *f = (struct file){.path = path_of(t->options, name)};
    f->fd = open(f->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    buf_init(&f->buf);
    return f->fd < 0 ? sample_complain(f->path, strerror(errno)) : 0;
}

static int write_out(struct tree *t, struct file *f)
{
    while (f->buf.len) {
        struct str s = buf_str(&f->buf);
        ssize_t n = write(f->fd, s.p, s.n);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return sample_complain(f->path, strerror(errno));
        t->total->bytes += n;
        buf_consume(&f->buf, (size_t)n);
    }
    return 0;
}

/* After an error the rest is not written. Returns err or what went wrong here. */
static int close_file(struct tree *t, struct file *f, int err)
{
    if (!err)
        err = write_out(t, f);
    if (close(f->fd) < 0 && !err)
        err = sample_complain(f->path, strerror(errno));
    buf_release(&f->buf);
    t->total->files++;
    return err;
}

static int write_table(struct tree *t, const struct table *table)
{
    struct file f;
    int err = open_file(t, &f, table->name);
    if (err)
        return err;
    table->fill(&(struct csv_writer){.out = &f.buf}, t->options);
    return close_file(t, &f, 0);
}

/* --- papers --- */

static const char *bib_name(const struct sample_options *o, const struct sample_journal *j,
                            int year)
{
    return arena_printf(o->arena, "Data/%s/%s-%d.bib", j->name, j->name, year);
}

static int fill_bib(struct tree *t, struct file *f, const struct sample_journal *j, int year,
                    int64_t count)
{
    uint64_t number = (uint64_t)(j - sample_journals) * 10000 + (uint64_t)year;
    struct sample_random r = sample_random_stream((uint64_t)t->options->seed, number);
    for (int64_t i = 1; i <= count; i++) {
        sample_paper(&f->buf, &r, j, year, i);
        int err = f->buf.len < SPILL_BYTES ? 0 : write_out(t, f);
        if (err)
            return err;
        int64_t papers = ++t->total->papers;
        if (papers % PAPERS_PER_GLANCE == 0)
            progress_show(t->progress, papers, papers);
    }
    return 0;
}

static int write_bib(struct tree *t, const struct sample_journal *j, int year, int64_t count)
{
    struct file f;
    int err = open_file(t, &f, bib_name(t->options, j, year));
    if (err)
        return err;
    err = fill_bib(t, &f, j, year, count);
    return close_file(t, &f, err);
}

/* Journals grow over the years. */
static int64_t share(const struct sample_journal *j, int year)
{
    return j->weight * (int64_t)(10 + year - SAMPLE_FIRST_YEAR);
}

static int64_t all_shares(void)
{
    int64_t sum = 0;
    for (int i = 0; i < sample_journal_count; i++)
        for (int y = sample_journals[i].first_year; y <= SAMPLE_LAST_YEAR; y++)
            sum += share(&sample_journals[i], y);
    return sum;
}

/* Each file gets the rounded total up to and including its share, minus the papers written before:
 * the rounded counts add up. */
static int write_journal(struct tree *t, const struct sample_journal *j, int64_t *shares,
                         int64_t of)
{
    struct arena *a = t->options->arena;
    struct arena_mark mark = arena_mark(a);
    int err = make_dir(t, arena_printf(a, "Data/%s", j->name));
    for (int year = j->first_year; !err && year <= SAMPLE_LAST_YEAR; year++) {
        *shares += share(j, year);
        int64_t count = t->options->papers * *shares / of - t->total->papers;
        if (count > 0)
            err = write_bib(t, j, year, count);
    }
    arena_reset(a, mark);
    t->total->journals++;
    return err;
}

static int write_journals(struct tree *t)
{
    int64_t shares = 0, of = all_shares();
    int err = make_dir(t, "Data");
    for (int i = 0; !err && i < sample_journal_count; i++)
        err = write_journal(t, &sample_journals[i], &shares, of);
    return err;
}

static int write_tables(struct tree *t)
{
    int err = make_dir(t, "PaperAndTagInfo");
    if (!err)
        err = make_dir(t, "APIKey");
    for (size_t i = 0; !err && i < TABLES; i++)
        err = write_table(t, &tables[i]);
    return err;
}

int sample_tree_write(const struct sample_options *o, struct progress *p,
                      struct sample_total *total)
{
    *total = (struct sample_total){.papers = 0};
    struct tree t = {.options = o, .progress = p, .total = total};
    int err = write_tables(&t);
    return err ? err : write_journals(&t);
}

/* --- removal --- */

static int remove_file(const struct sample_options *o, const char *name)
{
    const char *path = path_of(o, name);
    if (unlink(path) == 0 || errno == ENOENT || errno == ENOTDIR)
        return 0;
    return sample_complain(path, strerror(errno));
}

int sample_tree_remove(const struct sample_options *o)
{
    int err = 0;
    for (size_t i = 0; !err && i < TABLES; i++)
        err = remove_file(o, tables[i].name);
    for (int i = 0; !err && i < sample_journal_count; i++)
        for (int y = SAMPLE_FIRST_YEAR; !err && y <= SAMPLE_LAST_YEAR; y++)
            err = remove_file(o, bib_name(o, &sample_journals[i], y));
    return err;
}
