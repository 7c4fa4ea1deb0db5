/* block_private.h -- what the files of the blocks share. */
#ifndef ENGINE_PAPERS_BLOCK_PRIVATE_H
#define ENGINE_PAPERS_BLOCK_PRIVATE_H

#include "base/list.h"
#include "base/map.h"
#include "corpus/pack.h"
#include "engine/papers/block.h"
#include "engine/store/lock.h"
#include "loop/sync.h"

/* Of real entries, level 3 makes 36 % at 9 us each, 6 makes 34 % at 31 us, 9 makes 33 % at 55 us. Filling
 * Redis happens once, its memory is needed all the time: 6 takes 5 % off it, 9 hardly more. */
#define BLOCK_PACK_LEVEL 6
/* Nothing takes longer: a build, and waiting for somebody else's. */
#define BLOCK_BUILD_MS_MAX (10 * 60 * 1000)
#define BLOCK_ASIDE_MS     BLOCK_BUILD_MS_MAX
#define BLOCK_KEEP_MS      3000 /* a builder makes its lock last this often */
#define BLOCK_LEFT_MAX     256
/* Dictionaries that MySQL lacks are remembered for a while, this many of them. */
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
    struct list idle;         /* packers nobody uses now */
    size_t idle_count;
    bool fetching; /* some task asks MySQL for a number that was met */
    struct waitq fetched;
    struct block_unknown unknown[BLOCK_UNKNOWN_MAX];
    size_t unknown_next;
};

struct blocks {
    struct redis *redis;
    struct sql_pool *sql;
    int64_t *hits, *misses, *built, *packed;
    int64_t unseen; /* where no metrics were given */
    /* Keys of the blocks that a task of this node builds. The others wait here, so that for each
     * block one task of a node asks for the lock in Redis. */
    struct map *building;
    struct waitq ended; /* one of them */
    /* Locks that cancelled tasks of ours could not give back, at most BLOCK_LEFT_MAX: key ->
     * token, owned. The next of us who wants one need not wait until it expires. */
    struct map *left;
    struct block_dictionaries dictionaries;
};

/* One block that is wanted. */
enum block_want {
    BLOCK_WHOLE, /* in any version: whoever reads wants papers now */
    BLOCK_FRESH, /* in the version of corpus_block */
    BLOCK_ANEW,  /* built by us */
};

struct block_job {
    struct str journal;
    int64_t year;
    struct str key;
    enum block_want want;
    bool built; /* by us */
};

/* block.c */
int64_t block_ttl_ms(struct loop *l);
struct str block_header(struct arena *a, struct block_version v);
/* fields: of the hash, with the header. False: the block is not whole. */
bool block_header_read(struct str header, int64_t fields, struct block_version *out);
/* The words of an error reply within a batch; 0 for any other reply. */
MUST_CHECK int block_reply_problem(struct task *t, const struct redis_reply *r);
/* The same for reads, where a key of another type, which is no block, is a block that is missing. */
MUST_CHECK int block_read_problem(struct task *t, const struct redis_reply *r);

/* block_build.c: reads, packs, fills the key aside and moves it into place. ERR_CONFLICT: the lock
 * was lost or the key aside is not whole, and nothing has changed. What is aside is left to the
 * caller. ERR_NOT_FOUND: there are no papers, and no block any more. */
MUST_CHECK int block_build(struct task *t, struct blocks *b, const struct block_job *j,
                           const struct lock *l, struct block_version v);

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
