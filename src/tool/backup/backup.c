/* millrace backup: a consistent copy of everything, while runs go on. */
#include "tool/backup/backup.h"

#include <stdio.h>

#include "tool/backup/folder.h"
#include "tool/backup/take.h"
#include "tool/opt.h"
#include "tool/tool.h"

#define KEEP_MAX 100000

static const char about[] =
    "Writes a backup of everything into a new or empty folder, while runs go on: all tables of\n"
    "MySQL as they are at one moment, and what Redis alone knows. It is read back and compared\n"
    "before it counts as one. \"millrace restore DIR\" brings it back; charges that come after\n"
    "the backup are not in it.\n"
    "\n"
    "With --keep, DIR is the parent of several backups: a new one is DIR/millrace-<time>, and\n"
    "when it is whole the oldest ones are removed.\n"
    "\n"
    "  millrace backup /mnt/disk/before-the-update\n"
    "  millrace backup --keep 7 /var/backups/millrace\n"
    "\n"
    "A backup has password hashes and the keys of the AI service in it: only its owner may read\n"
    "it. config.json is not in it. Exit status: 0 only if the backup is whole.";

struct options {
    const char *dir, *config;
    int64_t keep; /* 0: not asked for */
};

static void tell(struct task *t, const struct folder *f, const struct backup *b, double seconds)
{
    int64_t rows = 0, bytes = 0, file_bytes = 0;
    for (size_t i = 0; i < b->table_count; i++) {
        rows += b->tables[i].rows;
        bytes += b->tables[i].bytes;
        file_bytes += b->tables[i].file.bytes;
    }
    printf("%s: %zu tables, %lld rows, %s (%s before compression), verified, in %.1f s\n", f->path,
           b->table_count, (long long)rows, backup_size(task_arena(t), file_bytes),
           backup_size(task_arena(t), bytes), seconds);
    printf("It has everything that happened before %.*s.\n", STR_ARG(b->at));
}

static int write_backup(struct task *t, struct db *d, struct folder *f, struct backup *b)
{
    struct progress p;
    struct backup seen;
    int err = backup_take(t, d, f->partial, b);
    progress_init(&p, task_loop(t), "backup: verifying", "rows", 0);
    if (!err)
        err = backup_open(t, f->partial, &seen);
    if (!err)
        err = backup_verify(t, f->partial, &seen, &p);
    return err ? err : folder_commit(t, f, b);
}

static int prune(struct task *t, struct folder *f, int64_t keep)
{
    int64_t removed = 0;
    int err = folder_prune(t, f, keep, &removed);
    if (!err && removed)
        printf("%lld older backup%s removed.\n", (long long)removed, removed == 1 ? "" : "s");
    return err;
}

static int run(struct task *t, struct db *d)
{
    const struct options *o = d->arg;
    struct folder f;
    struct backup b = {.table_count = 0};
    struct progress whole;
    progress_init(&whole, task_loop(t), "backup", "rows", 0);
    backup_take_signals(t);
    int err = folder_open(t, o->dir, o->keep > 0, &f);
    if (err)
        return db_complain(t, d, err);
    err = write_backup(t, d, &f, &b);
    if (err == ERR_CANCELED)
        err = task_fail(t, err, "interrupted: there is no backup, and nothing is left of it");
    if (err)
        folder_discard(t, &f, &b);
    else
        tell(t, &f, &b, progress_seconds(&whole));
    if (!err && o->keep)
        err = prune(t, &f, o->keep);
    folder_close(&f);
    if (err)
        return db_complain(t, d, err);
    return fflush(stdout) == 0 ? 0 : 1;
}

int backup_main(int argc, char **argv)
{
    struct options o = {.keep = 0};
    const struct opt opts[] = {
        {"keep", "N", "make DIR/millrace-<time>, and keep the newest N", .number = &o.keep,
         .least = 1, .most = KEEP_MAX},
        OPT_CONFIG(&o.config),
    };
    struct command c = {"backup", "DIR", about, opts, sizeof opts / sizeof *opts};
    int status = opt_parse(&c, argc, argv);
    if (status >= 0)
        return status;
    o.dir = argv[1];
    return db_run(o.config, DB_BOTH, BACKUP_STATEMENT_MS, run, &o);
}
