/* millrace db split: one exported file becomes the folders that db init reads. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "corpus/csv.h"
#include "loop/loop.h"
#include "tool/db/db.h"
#include "tool/db/split_name.h"
#include "tool/db/split_tree.h"
#include "tool/opt.h"
#include "tool/progress.h"

#define PROBLEMS_SHOWN 20
#define TABLE_FOLDER   "PaperAndTagInfo"
#define TABLE          TABLE_FOLDER "/InfoList.Paper.csv"

static const char about[] =
    "Cuts an exported .bib file of any size into a folder per journal, for \"millrace db init\":\n"
    "\n"
    "  OUT/Data/<Journal>/FILE                    its entries, byte for byte, and their @strings\n"
    "  OUT/Data/" SPLIT_UNSORTED "/FILE                   those without journal and booktitle\n"
    "  OUT/" TABLE "    a row per journal: set its price there\n"
    "\n"
    "Journals whose names differ in case only are one. Nothing that is there is replaced. Entries\n"
    "that cannot be read are named and left out.\n"
    "\n"
    "  millrace db split export.bib --out DIR\n"
    "  millrace db split export.bib --out DIR --journal Nature --journal Science\n"
    "  millrace db init --data DIR";

struct split {
    const char *path, *out;
    struct opt_texts only; /* journals; none: all */
    struct arena arena;
    struct split_tree tree;
    struct progress progress;
    int64_t bytes, entries, left, damaged;
    bool table; /* was written */
};

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
    (void)number;
    interrupted = 1;
}

static void report(void *arg, const struct bibtex_problem *p)
{
    struct split *s = arg;
    if (!p->dropped || ++s->damaged > PROBLEMS_SHOWN)
        return;
    fprintf(stderr, "%s:%llu: %s%s%.*s\n", s->path, (unsigned long long)p->line, p->reason,
            p->about.n ? ": " : "", STR_ARG(p->about));
}

/* --- reading --- */

static bool is_wanted(struct split *s, struct str name)
{
    struct str key = split_fold(&s->arena, name);
    for (size_t i = 0; i < s->only.count; i++) {
        struct str wanted = split_name(&s->arena, str_of(s->only.list[i]));
        if (str_eq(split_fold(&s->arena, wanted), key))
            return true;
    }
    return s->only.count == 0;
}

static int add(struct split *s, const struct bibtex_entry *e, const char **why)
{
    struct str name = STR("");
    if (e->journal.p)
        name = split_name(&s->arena, e->journal);
    if (!name.n && e->booktitle.p)
        name = split_name(&s->arena, e->booktitle);
    if (!name.n)
        name = STR(SPLIT_UNSORTED);
    s->bytes += (int64_t)e->raw.n;
    s->entries++;
    progress_show(&s->progress, s->bytes, s->entries);
    if (is_wanted(s, name))
        return split_tree_add(&s->tree, name, e, why);
    s->left++;
    return 0;
}

static int read_all(struct split *s, struct bibtex_file *f, const char **why)
{
    struct bibtex_entry e;
    int more, err = 0;
    while (!err && (more = bibtex_read(f, &e)) == 1) {
        struct arena_mark mark = arena_mark(&s->arena);
        err = add(s, &e, why);
        if (!err)
            arena_reset(&s->arena, mark);
        if (!err && interrupted) {
            *why = "interrupted: nothing was written";
            err = ERR_CANCELED;
        }
    }
    progress_end(&s->progress);
    if (!err && more < 0) {
        *why = arena_printf(&s->arena, "%s: %s", s->path, strerror(errno));
        err = more;
    }
    return err;
}

/* --- the table --- */

static void put_rows(struct split *s, struct csv_writer *w)
{
    static const char *const names[] = {"Name", "FullName", "DataRange", "UpdateDate", "Price"};
    size_t at = 0;
    struct str key;
    void *value;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        csv_add(w, str_of(names[i]));
    csv_end_row(w);
    while (map_next(s->tree.by_name, &at, &key, &value)) {
        const struct split_journal *j = value;
        csv_add(w, j->name);
        csv_add(w, j->name);
        csv_add(w, j->first_year ? str_printf(&s->arena, "%lld-%lld", (long long)j->first_year,
                                              (long long)j->last_year)
                                 : STR(""));
        csv_add(w, STR(""));
        csv_add_int(w, 1);
        csv_end_row(w);
    }
}

/* One that is there has been edited: it stays. */
static int write_table(struct split *s, const char **why)
{
    const char *path = arena_printf(&s->arena, "%s/" TABLE, s->out);
    struct buf text;
    if (mkdir(arena_printf(&s->arena, "%s/" TABLE_FOLDER, s->out), 0777) < 0 && errno != EEXIST) {
        *why = arena_printf(&s->arena, "%s: %s", path, strerror(errno));
        return ERR_IO;
    }
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0 && errno == EEXIST)
        return 0;
    buf_init(&text);
    put_rows(s, &(struct csv_writer){.out = &text});
    s->table = fd >= 0 && write(fd, buf_str(&text).p, text.len) == (ssize_t)text.len;
    if (fd >= 0 && close(fd) < 0)
        s->table = false;
    buf_release(&text);
    if (s->table)
        return 0;
    *why = arena_printf(&s->arena, "%s: %s", path, strerror(errno));
    return ERR_IO;
}

/* --- the report --- */

static int by_count(const void *a, const void *b)
{
    const struct split_journal *x = *(const struct split_journal *const *)a,
                               *y = *(const struct split_journal *const *)b;
    if (x->entries != y->entries)
        return x->entries < y->entries ? 1 : -1;
    return str_compare(x->name, y->name);
}

static void tell(struct split *s)
{
    size_t at = 0, n = 0, count = map_count(s->tree.by_name);
    const struct split_journal **all =
        ARENA_ARRAY(&s->arena, const struct split_journal *, count + 1);
    struct str key;
    void *j;
    while (map_next(s->tree.by_name, &at, &key, &j))
        all[n++] = j;
    qsort(all, n, sizeof *all, by_count);
    for (size_t i = 0; i < n; i++)
        printf("%8lld  %.*s%s\n", (long long)all[i]->entries, STR_ARG(all[i]->name),
               str_eq(all[i]->name, STR(SPLIT_UNSORTED)) ? "  (neither journal nor booktitle)"
                                                         : "");
    printf("%lld entries read, %lld into %zu folders of %s/Data", (long long)s->entries,
           (long long)(s->entries - s->left), n, s->out);
    if (s->left)
        printf(", %lld of other journals left out", (long long)s->left);
    printf("; %lld could not be read\n", (long long)s->damaged);
    if (!s->table)
        printf("%s/" TABLE " was there already and is unchanged\n", s->out);
}

/* --- all of it --- */

static int check_file(struct split *s, const char **why)
{
    struct stat st;
    unsigned char head[2] = {0};
    int fd = open(s->path, O_RDONLY | O_CLOEXEC);
    bool fine = fd >= 0 && fstat(fd, &st) == 0 && read(fd, head, sizeof head) >= 0;
    if (!fine)
        *why = arena_printf(&s->arena, "%s: %s", s->path, strerror(errno));
    if (fd >= 0)
        close(fd);
    if (!fine)
        return ERR_IO;
    if (!S_ISREG(st.st_mode)) { /* it is opened twice */
        *why = arena_printf(&s->arena, "%s: is not a file", s->path);
        return ERR_INVALID;
    }
    s->progress.total = st.st_size;
    if (head[0] + head[1] != 0xFF + 0xFE || (head[0] != 0xFF && head[0] != 0xFE))
        return 0;
    *why = arena_printf(&s->arena, "%s: is UTF-16; convert it first: iconv -f UTF-16 -t UTF-8",
                        s->path);
    return ERR_INVALID;
}

static int split(struct split *s, const char *name, const char **why)
{
    struct bibtex_file *f = NULL;
    int err = check_file(s, why);
    if (err)
        return err;
    err = split_tree_open(&s->tree, &s->arena, s->out, name, why);
    if (!err && bibtex_open(&f, s->path, report, s)) {
        *why = arena_printf(&s->arena, "%s: %s", s->path, strerror(errno));
        err = ERR_IO;
    }
    if (!err)
        err = read_all(s, f, why);
    if (!err && s->entries == s->left) {
        *why = arena_printf(&s->arena, "%s: has no such entries", s->path);
        err = ERR_INVALID;
    }
    if (!err)
        err = split_tree_commit(&s->tree, why);
    if (!err)
        err = write_table(s, why);
    if (!err)
        tell(s);
    bibtex_close(f);
    split_tree_close(&s->tree);
    return err;
}

/* "export.bib" of "/path/export.bib"; db init reads names that end so. */
static const char *file_name(struct split *s)
{
    struct str path = str_of(s->path);
    const char *slash = strrchr(s->path, '/');
    struct str name = slash ? str_of(slash + 1) : path;
    bool bib = name.n > 4 && str_ieq(str_from(name.p + name.n - 4, 4), STR(".bib"));
    return arena_printf(&s->arena, "%.*s%s", STR_ARG(name), bib ? "" : ".bib");
}

int db_split_main(int argc, char **argv)
{
    struct split s = {.out = NULL};
    const struct opt opts[] = {
        {"out", "DIR", "where to", .text = &s.out, .needed = true},
        {"journal", "NAME", "only this one; may be given several times", .texts = &s.only},
    };
    struct command c = {"db split", "FILE", about, opts, sizeof opts / sizeof *opts};
    int status = opt_parse(&c, argc, argv);
    if (status >= 0)
        return status;
    const char *why = "";
    struct loop *l = loop_new(NULL); /* for its clock */
    s.path = argv[1];
    arena_init(&s.arena);
    progress_init(&s.progress, l, "db split", "entries", 0);
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    int err = split(&s, file_name(&s), &why);
    if (err)
        opt_error(&c, OPT_FAILED, "%s", why);
    arena_release(&s.arena);
    loop_free(l);
    return err || fflush(stdout) != 0 ? 1 : 0;
}
