/* millrace pool: items into pools and out of them, and what is there. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/pool/import.h"
#include "tool/db/db.h"
#include "tool/menu.h"
#include "tool/opt.h"
#include "tool/progress.h"
#include "tool/tool.h"

#define STATEMENT_MS  (10 * 60 * 1000) /* an export of millions of items */
#define PIECE_MAX     (4 * POOL_PIECE_BYTES)
#define PROBLEMS_TOLD 10

static const char import_about[] =
    "Puts the texts of FILE into a group, while servers run: CSV, whose first row names a column\n"
    "\"text\" (or \"title\", \"content\"), or JSON lines: strings, or objects with such a member.\n"
    "TYPE is titles or contents, GROUP a number from 1 on; a group that is not there yet begins.\n"
    "A text that the group has already, used or not, is not stored again: so an import that was\n"
    "interrupted can be repeated.\n"
    "\n"
    "  millrace pool import titles 7 titles.csv\n"
    "  zcat more.jsonl.gz | millrace pool import contents 7 - --format jsonl";
static const char export_about[] = "Writes the items of a group that are used, with id, batch, "
                                   "text and time, to standard output.\n"
                                   "\n"
                                   "  millrace pool export titles 7 --format csv > used.csv";
static const char list_about[] =
    "Shows every group: items that are usable, in the list in Redis, handed out and not marked\n"
    "yet, used; how many are handed out in an hour at the present pace, and when it runs out.";
static const char drop_about[] =
    "Deletes the items of a group that are not used. Servers stop handing them out; the used ones\n"
    "stay, so that an import knows them.";

struct options {
    const struct command *command;
    const char *config, *format, *file;
    struct pool_id pool;
    int64_t batch;
    bool unused, yes;
    enum pool_format as;
};

/* --- import --- */

struct reading {
    int fd;
    struct buf piece;
    int64_t bytes; /* read so far */
    bool ended;
};

/* Up to a whole piece, after what the one before has left. */
static int read_more(struct reading *r)
{
    while (!r->ended && r->piece.len < POOL_PIECE_BYTES) {
        ssize_t n = read(r->fd, buf_reserve(&r->piece, POOL_PIECE_BYTES), POOL_PIECE_BYTES);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return ERR_IO;
        r->ended = n == 0;
        r->bytes += n;
        buf_added(&r->piece, (size_t)n);
    }
    return 0;
}

struct totals {
    int64_t imported, in_file, in_group, rejected;
};

static void add_up(struct totals *s, const struct pool_import *m)
{
    for (size_t i = 0; i < m->problem_count && s->rejected + (int64_t)i < PROBLEMS_TOLD; i++)
        fprintf(stderr, "line %lld: %.*s\n", (long long)m->problems[i].line,
                STR_ARG(m->problems[i].message));
    s->imported += m->imported;
    s->in_file += m->in_file;
    s->in_group += m->in_group;
    s->rejected += m->rejected;
}

static int import_all(struct task *t, struct db *d, struct reading *r, struct progress *bar,
                      struct pool_import *m, struct totals *sum)
{
    int err = 0;
    for (bool last = false; !last && !err;) {
        struct task_scope s = task_scope(t);
        err = read_more(r);
        if (err)
            err = task_fail(t, err, "%s", strerror(errno));
        last = r->ended;
        if (!err)
            err = pool_import(t, d->sql, m, buf_str(&r->piece), last);
        if (!err && m->read == 0 && !last && r->piece.len >= PIECE_MAX)
            err = task_fail(t, ERR_LIMIT, "line %lld has no end", (long long)m->place.line);
        if (!err) {
            buf_consume(&r->piece, m->read);
            add_up(sum, m);
            progress_show(bar, r->bytes, sum->imported);
        }
        task_scope_end(t, s);
    }
    return err;
}

static int tell(const struct options *o, const struct totals *s, int64_t batch, double seconds)
{
    printf("%lld items imported into %s/%lld as batch %lld, in %.1f s (%.0f/s)\n",
           (long long)s->imported, o->pool.type->name, (long long)o->pool.group, (long long)batch,
           seconds, (double)s->imported / (seconds > 0 ? seconds : 1e-6));
    if (s->in_file)
        printf("%lld duplicates within the file\n", (long long)s->in_file);
    if (s->in_group)
        printf("%lld duplicates of what the group has\n", (long long)s->in_group);
    if (s->rejected)
        printf("%lld rows rejected\n", (long long)s->rejected);
    return fflush(stdout) == 0 ? 0 : 1;
}

static int run_import(struct task *t, struct db *d)
{
    const struct options *o = d->arg;
    bool standard = strcmp(o->file, "-") == 0;
    struct reading r = {.fd = standard ? STDIN_FILENO : open(o->file, O_RDONLY | O_CLOEXEC)};
    struct stat st;
    if (r.fd < 0)
        return opt_error(o->command, OPT_FAILED, "%s: %s", o->file, strerror(errno));
    struct pool_import m = {.pool = o->pool, .format = o->as, .batch = o->batch};
    struct totals sum = {0};
    struct progress bar;
    int64_t size = fstat(r.fd, &st) == 0 && S_ISREG(st.st_mode) ? st.st_size : 0;
    buf_init(&r.piece);
    progress_init(&bar, task_loop(t), "pool import", "items", size);
    int err = import_all(t, d, &r, &bar, &m, &sum);
    progress_end(&bar);
    buf_release(&r.piece);
    if (!standard)
        close(r.fd);
    if (err == ERR_INVALID || err == ERR_LIMIT || err == ERR_IO)
        return opt_error(o->command, OPT_FAILED, "%s: %s", o->file, task_error(t));
    int status = err ? db_complain(t, d, err) : 0;
    if (err)
        fprintf(stderr, "%lld items were imported; repeat the command to import the rest\n",
                (long long)sum.imported);
    return err ? status : tell(o, &sum, m.batch, progress_seconds(&bar));
}

/* --- export --- */

static int write_out(struct task *t, struct str piece, void *arg)
{
    (void)arg;
    return fwrite(piece.p, 1, piece.n, stdout) == piece.n
               ? 0
               : task_fail(t, ERR_IO, "standard output: %s", strerror(errno));
}

static int run_export(struct task *t, struct db *d)
{
    const struct options *o = d->arg;
    int err = pool_export(t, d->sql, o->pool, o->as, !o->unused, write_out, NULL);
    if (err)
        return db_complain(t, d, err);
    return fflush(stdout) == 0 ? 0 : 1;
}

/* --- list, drop --- */

static struct pools *pools_of(struct db *d, struct group *g)
{
    return pools_new(&(struct pools_options){.redis = d->redis, .sql = d->sql, .group = g});
}

static const char *end_of(struct arena *a, const struct pool_level *l)
{
    if (l->minutes < 0)
        return "-";
    if (l->minutes < 120)
        return arena_printf(a, "%lld min", (long long)l->minutes);
    return arena_printf(a, "%lld h", (long long)l->minutes / 60);
}

static int run_list(struct task *t, struct db *d)
{
    struct group g;
    struct pool_levels levels;
    group_init(&g, task_loop(t));
    struct pools *p = pools_of(d, &g);
    int err = pools_count(t, p, &levels);
    pools_free(p);
    if (err)
        return db_complain(t, d, err);
    printf("%-10s %16s %10s %8s %8s %10s %9s %9s\n", "type", "group", "usable", "in list", "handed",
           "used", "per hour", "left");
    for (size_t i = 0; i < levels.count; i++) {
        const struct pool_level *l = &levels.list[i];
        printf("%-10.*s %16lld %10lld %8lld %8lld %10lld %9lld %9s\n", STR_ARG(l->type),
               (long long)l->group, (long long)l->usable, (long long)l->in_list,
               (long long)l->handed_out, (long long)l->used, (long long)l->per_hour,
               end_of(task_arena(t), l));
    }
    return fflush(stdout) == 0 ? 0 : 1;
}

static int run_drop(struct task *t, struct db *d)
{
    const struct options *o = d->arg;
    struct group g;
    int64_t dropped = 0;
    group_init(&g, task_loop(t));
    struct pools *p = pools_of(d, &g);
    int err = pool_drop(t, p, o->pool, &dropped);
    pools_free(p);
    if (err)
        return db_complain(t, d, err);
    printf("%lld items deleted\n", (long long)dropped);
    return fflush(stdout) == 0 ? 0 : 1;
}

/* --- command lines --- */

static const char *type_names(char *out, size_t size)
{
    size_t n = 0;
    for (size_t i = 0; i < pool_type_count && n < size; i++)
        n += (size_t)snprintf(out + n, size - n, "%s%s", i ? ", " : "", pool_types[i].name);
    return out;
}

/* -1: it goes on. */
static int take_pool(struct options *o, char **operands)
{
    char names[256];
    o->pool.type = pool_type_find(str_of(operands[0]));
    if (!o->pool.type)
        return opt_error(o->command, OPT_WRONG, "there is no type \"%s\"; there are %s",
                         operands[0], type_names(names, sizeof names));
    if (!str_to_i64(str_of(operands[1]), &o->pool.group) || o->pool.group < 1 ||
        o->pool.group > POOL_GROUP_MAX)
        return opt_error(o->command, OPT_WRONG, "a group is a number from 1 to %lld",
                         (long long)POOL_GROUP_MAX);
    return -1;
}

/* By what is said, or by the name of the file. */
static int take_format(struct options *o)
{
    struct str said = str_of(o->format), file = str_of(o->file);
    if (said.p ? str_eq(said, STR("csv")) : file.p && str_ends(file, STR(".csv")))
        o->as = POOL_CSV;
    else if (said.p ? str_eq(said, STR("jsonl"))
                    : !file.p || str_ends(file, STR(".jsonl")) || str_ends(file, STR(".ndjson")))
        o->as = POOL_JSONL;
    else if (said.p)
        return opt_error(o->command, OPT_WRONG, "--format wants csv or jsonl");
    else
        return opt_error(o->command, OPT_WRONG, "say --format csv or --format jsonl");
    return -1;
}

#define FORMAT(o)                                                                                  \
    {                                                                                              \
        "format", "csv|jsonl", "default: by the name of the file, else jsonl", .text = &(o).format \
    }

static int import_main(int argc, char **argv)
{
    struct options o = {.config = NULL};
    const struct opt opts[] = {
        FORMAT(o),
        {"batch", "N", "batch of the items, of which the largest goes first; default: the next",
         .number = &o.batch, .least = 1, .most = POOL_BATCH_MAX},
        OPT_CONFIG(&o.config),
    };
    struct command c = {"pool import", "TYPE GROUP FILE", import_about, opts, 3};
    o.command = &c;
    int status = opt_parse(&c, argc, argv);
    if (status < 0)
        status = take_pool(&o, argv + 1);
    if (status < 0) {
        o.file = argv[3];
        status = take_format(&o);
    }
    return status >= 0 ? status : db_run(o.config, DB_MYSQL, STATEMENT_MS, run_import, &o);
}

static int export_main(int argc, char **argv)
{
    struct options o = {.config = NULL};
    const struct opt opts[] = {
        FORMAT(o),
        {"unused", NULL, "those that are not used instead", .flag = &o.unused},
        OPT_CONFIG(&o.config),
    };
    struct command c = {"pool export", "TYPE GROUP", export_about, opts, 3};
    o.command = &c;
    int status = opt_parse(&c, argc, argv);
    if (status < 0)
        status = take_pool(&o, argv + 1);
    if (status < 0)
        status = take_format(&o);
    return status >= 0 ? status : db_run(o.config, DB_MYSQL, STATEMENT_MS, run_export, &o);
}

static int list_main(int argc, char **argv)
{
    struct options o = {.config = NULL};
    const struct opt opts[] = {OPT_CONFIG(&o.config)};
    struct command c = {"pool list", NULL, list_about, opts, 1};
    int status = opt_parse(&c, argc, argv);
    return status >= 0 ? status : db_run(o.config, DB_BOTH, STATEMENT_MS, run_list, &o);
}

static int drop_main(int argc, char **argv)
{
    struct options o = {.config = NULL};
    const struct opt opts[] = {
        {"yes", NULL, "do it: what is deleted cannot be brought back", .flag = &o.yes},
        OPT_CONFIG(&o.config),
    };
    struct command c = {"pool drop", "TYPE GROUP", drop_about, opts, 2};
    o.command = &c;
    int status = opt_parse(&c, argc, argv);
    if (status < 0)
        status = take_pool(&o, argv + 1);
    if (status < 0 && !o.yes)
        status = opt_error(&c, OPT_WRONG, "nothing was deleted: say --yes to delete them for good");
    return status >= 0 ? status : db_run(o.config, DB_BOTH, STATEMENT_MS, run_drop, &o);
}

static const struct menu_item items[] = {
    {"import", import_main, "put the texts of a file into a group"},
    {"export", export_main, "write the items of a group that are used"},
    {"list", list_main, "show how full the groups are"},
    {"drop", drop_main, "delete the items of a group that are not used"},
};

int pool_main(int argc, char **argv)
{
    return menu_run(&(struct menu){"millrace pool", items, sizeof items / sizeof *items}, argc,
                    argv);
}
