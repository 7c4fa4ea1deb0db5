/* backup.h -- a backup: a folder with MySQL as it was at one moment, and what Redis alone knows.
 *
 *   manifest.json       what is in it: struct backup, as JSON
 *   SHA256SUMS          of all other files, for sha256sum -c
 *   <table>.tsv.zst     the rows of a table, one per line (rows.h)
 *   redis.json          counters of AI keys with a cap; records of charges that are aside
 *
 * Files are written in partial/ and moved up when all of them have been read back; manifest.json
 * comes last, and a folder without it is no backup. Tables hold password hashes and keys of the AI
 * service: the folder is 0700, its files are 0600.
 *
 * The order, and why no charge is lost that was there before, and none counts twice:
 *
 *   1. `at` is read from the clock.
 *   2. Pauses and terminates that rows are owed (runs/owed.h) are settled, and the records of every
 *      user in sys:billing are synced. A charge made before `at` has put its record into Redis and
 *      its user into sys:billing in one step; after this step it is in MySQL.
 *   3. A transaction WITH CONSISTENT SNAPSHOT begins; all rows are read in it. A record is trimmed
 *      in Redis only after the commit that wrote it: so each charge made before `at` is in the
 *      snapshot, and with it, in the same commit, its verdict, balance and billed_seq (BIL-2,
 *      BIL-7). Of a later charge the snapshot has all of this, or nothing.
 *   4. redis.json is read. AI counters only grow, so reading late errs on the safe side; a record
 *      that went aside before the snapshot is there now.
 *
 * A restore begins with an empty Redis. No record exists beside the snapshot, so none is applied
 * twice; the next one gets the number billed_seq + 1; a balance is loaded from its row alone
 * (BIL-3), and runs go on from their rows (docs/restart.md). So do jobs: MySQL has the payment of
 * one before its row is completed (engine/jobs/pay.h), and the snapshot both, the payment alone, or
 * neither. Items of pools that were handed out before the snapshot are below the limit that it has
 * of their list, and count as used (app/pool/pools.h); those of later are handed out again. What
 * was in Redis alone and is not kept costs a repeat: failed papers of unfinished runs are asked
 * about again, free of charge, downloads are built again, counts of failed log-ins begin anew. */
#ifndef TOOL_BACKUP_BACKUP_H
#define TOOL_BACKUP_BACKUP_H

#include "base/sha256.h"
#include "loop/task.h"
#include "tool/progress.h"

#define BACKUP_FORMAT       1
#define BACKUP_MANIFEST     "manifest.json"
#define BACKUP_SUMS         "SHA256SUMS"
#define BACKUP_REDIS        "redis.json"
#define BACKUP_PARTIAL      "partial"
#define BACKUP_COLUMNS_MAX  256
#define BACKUP_TEXT_MAX     (64 * 1024 * 1024) /* of manifest.json and redis.json */
#define BACKUP_STATEMENT_MS (6 * 3600 * 1000)

struct backup_column {
    struct str name;
    bool blob; /* bytes; else text, also of numbers and times */
};

struct backup_file {
    struct str name;
    int64_t bytes;
    char sha256[SHA256_HEX_BYTES];
};

struct backup_table {
    struct str name;
    struct backup_column *columns;
    size_t column_count;
    int64_t rows;
    int64_t bytes; /* of the lines, before compression */
    int64_t next;  /* AUTO_INCREMENT; 0: none */
    struct backup_file file;
};

struct backup {
    struct str version; /* of the program */
    struct str at;      /* time_iso: everything before it is in the backup */
    int64_t at_ms;
    int64_t schema;              /* migrations */
    const struct str *checksums; /* of each of them */
    struct backup_table *tables;
    size_t table_count;
    struct backup_file redis;
};

/* manifest.json. Reading: ERR_INVALID with what is wrong; names are safe as parts of paths and
 * statements then, and the tables are this program's. */
struct str backup_manifest(struct arena *a, const struct backup *b);
MUST_CHECK int backup_manifest_read(struct task *t, struct str text, struct backup *out);
/* SHA256SUMS, given manifest.json. */
struct str backup_sums(struct arena *a, const struct backup *b, struct str manifest);

/* Reads the manifest in dir and compares the small files with it. Does not wait. ERR_INVALID: no
 * backup, or damaged; ERR_CONFLICT: of a newer millrace. The text names the file. */
MUST_CHECK int backup_open(struct task *t, const char *dir, struct backup *out);
/* Compares every table with the manifest: sum, size, lines and their columns. ERR_INVALID,
 * ERR_IO. */
MUST_CHECK int backup_verify(struct task *t, const char *dir, const struct backup *b,
                             struct progress *p);

/* "1.5 GB", in a. */
const char *backup_size(struct arena *a, int64_t bytes);

/* SIGINT and SIGTERM cancel the task: its waits end with ERR_CANCELED. */
void backup_take_signals(struct task *t);
#endif
