/* block_private.h -- what the files of the blocks share. */
#ifndef ENGINE_PAPERS_BLOCK_PRIVATE_H
#define ENGINE_PAPERS_BLOCK_PRIVATE_H

#include "base/list.h"
#include "base/map.h"
#include "corpus/pack.h"
#include "engine/papers/block.h"
#include "engine/store/lock.h"
#include "loop/sync.h"

/* Of real entries, level 3 makes 36 % at 9 us each, 6 makes 34 % at 31 us, 9 makes 33 % at 55 us.
 * Redis is filled once, its memory is needed all the time: 6 takes 5 % off it, 9 hardly more. */
#define BLOCK_PACK_LEVEL 6
/* Limit of a build, and of waiting for another task's build. */
#define BLOCK_BUILD_MS_MAX (10 * 60 * 1000)
#define BLOCK_ASIDE_MS     BLOCK_BUILD_MS_MAX
#define BLOCK_KEEP_MS      3000 /* a builder renews its lock this often */
#define BLOCK_LEFT_MAX     256
/* Negative cache of dictionaries that MySQL lacks: this many numbers. */
#define BLOCK_UNKNOWN_MAX 32

struct block_unknown {
    uint32_t number; /* 0: free */
    int64_t until_ms;
};

struct block_dictionaries {
    struct pack *reading;     /* knows every dictionary met so far */
    uint32_t number;          /* of the one in use; 0: none */
    struct str bytes;         /* of the same; owned */
    uint64_t asked, answered; /* times MySQL was asked for the newest; the last answer used */
    struct list idle;         /* packers that no build uses now */
    size_t idle_count;
    bool fetching; /* a task reads a dictionary from MySQL; the others wait (singleflight) */
    struct waitq fetched;
    struct block_unknown unknown[BLOCK_UNKNOWN_MAX];
    size_t unknown_next;
};

struct blocks {
    struct redis *redis;
    struct sql_pool *sql;
    int64_t *hits, *misses, *built, *packed;
    /* Singleflight within the node: the set of keys of blocks that a task builds. Others that want
     * the same block wait for `ended`, so one task of a node asks Redis for the lock. */
    struct map *building;
    struct waitq ended; /* a build */
    /* Locks that cancelled tasks of this node could not release, at most BLOCK_LEFT_MAX: key ->
     * token, owned. The next task that wants one releases it instead of waiting for its expiry. */
    struct map *left;
    struct block_dictionaries dictionaries;
};

/* One block that is wanted. */
enum block_want {
    BLOCK_WHOLE, /* in any version: a reader wants papers now */
    BLOCK_FRESH, /* in the version of corpus_block */
    BLOCK_ANEW,  /* built now, whatever Redis has */
};

struct block_job {
    struct str journal;
    int64_t year;
    struct str key;
    enum block_want want;
    bool built; /* by this job, not by another task */
};

/* block.c */
int64_t block_ttl_ms(struct loop *l);
struct str block_header(struct arena *a, struct block_version v);
/* fields: of the hash, with the header. False: the block is not whole. */
bool block_header_read(struct str header, int64_t fields, struct block_version *out);
/* Whether the papers are the same; if so, both tell of the same block. */
bool block_same(struct block_version a, struct block_version b);
/* The row of corpus_block, with the last load that has ended; zeros when there is none. */
MUST_CHECK int block_read_version(struct task *t, struct blocks *b, struct str journal,
                                  int64_t year, struct block_version *out);
/* The header in Redis says what v does, if it is of the same papers. */
MUST_CHECK int block_confirm(struct task *t, struct blocks *b, struct str key,
                             struct block_version v);
/* redis_verdict for reads: a key of another type is no block, so the block is missing. */
MUST_CHECK int block_read_problem(struct task *t, const struct redis_reply *r);

struct block_packer;

/* block_build.c: reads, packs, fills the key aside and moves it into place. ERR_CONFLICT: the lock
 * was lost or the key aside is not whole, and nothing has changed. The caller removes the key
 * aside. ERR_NOT_FOUND: there are no papers, and no block any more. */
MUST_CHECK int block_build(struct task *t, struct blocks *b, const struct block_job *j,
                           const struct lock *l, struct block_version v);

/* Packs the paper of a row of paperinfo, in a. ERR_LIMIT: it is too large. ERR_PROTO: the JSON is
 * none of a paper. */
MUST_CHECK int block_pack(struct block_packer *p, struct arena *a, struct arena *scratch,
                          struct str doi, struct str json, struct str *packed);

/* block_dictionary.c. A packer is used by one thread at a time: every build has its own. */
struct block_packer {
    struct list link;
    struct pack *pack;
    uint32_t number; /* of its dictionary */
};
void block_dictionaries_init(struct block_dictionaries *d);
void block_dictionaries_release(struct block_dictionaries *d);
struct block_packer *block_packer_get(struct blocks *b);
void block_packer_put(struct blocks *b, struct block_packer *p);
#endif
