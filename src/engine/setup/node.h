/* node.h -- what every part of a node shares: passed down, never global.
 *
 * One process, one thread, one loop. serve/node/process.c makes it and owns everything in it; all
 * others borrow. Background tasks belong to group, and end when it is cancelled. */
#ifndef ENGINE_SETUP_NODE_H
#define ENGINE_SETUP_NODE_H

#include <stdbool.h>
#include <stdint.h>

struct address_list;
struct ai;
struct ai_faults;
struct alerts;
struct api_tokens;
struct application;
struct archive;
struct attempts;
struct blocks;
struct cache;
struct catalog;
struct collections;
struct config;
struct controls;
struct documents;
struct downloads;
struct embedding;
struct extract;
struct group;
struct hooks;
struct http_client;
struct http_server;
struct jobs;
struct judge;
struct permits;
struct plan_templates;
struct plans;
struct pools;
struct papers;
struct posts;
struct ledger;
struct limits;
struct loop;
struct members;
struct metrics;
struct overview;
struct passwords;
struct redis;
struct runs;
struct searches;
struct sql_pool;
struct standing;
struct switches;
struct warm_progress;

struct node {
    struct loop *loop;
    struct group *group; /* background roles */
    const struct config *config;
    struct redis *redis;
    struct redis *redis_bulk; /* a connection for large values: downloads */
    struct redis *redis_wake; /* one for calls that block: jobs */
    struct sql_pool *sql;
    struct blocks *blocks;      /* papers in Redis */
    struct warm_progress *warm; /* how far Redis is filled */
    struct cache *cache;        /* rows of MySQL in Redis */
    struct ledger *ledger;
    struct catalog *catalog;
    struct limits *limits; /* of jobs that a user may start */
    struct jobs *jobs;     /* queues of work that is one document at a time */
    struct downloads *downloads;
    struct documents *documents; /* that users have uploaded */
    struct pools *pools;         /* items that are handed out once each */
    struct plan_templates *plan_templates;
    struct plans *plans;     /* that are made from them */
    struct extract *extract; /* fields out of documents */
    struct posts *posts;     /* texts of users, embedded */
    struct papers *papers;   /* those of the corpus, embedded */
    struct hooks *hooks;     /* webhooks of users */
    struct passwords *passwords;
    struct api_tokens *tokens;      /* of users' programs */
    struct attempts *attempts;      /* log-ins */
    struct attempts *registrations; /* the same, of new accounts */
    struct switches *switches;
    struct controls *controls;
    struct overview *overview;
    struct alerts *alerts;
    struct standing *standing;          /* why runs do not move */
    const struct address_list *proxies; /* trusted ones */
    struct http_server *http;
    struct http_client *client; /* calls to the AI and to webhooks */
    struct permits *permits;
    struct ai *ai;                        /* the chat service */
    struct ai_faults *faults;             /* how its calls fail */
    struct http_client *embedding_client; /* calls to the embedding service; may be client */
    struct http_client *vectors_client;   /* calls to Qdrant; NULL: vectors are in files */
    struct permits *embedding_permits;    /* these are NULL where there is no such service */
    struct ai *embedding_ai;
    struct ai_faults *embedding_faults;
    struct embedding *embedding;     /* texts as vectors */
    struct collections *collections; /* of texts that are found by meaning */
    struct searches *searches;       /* of posts and papers */
    struct judge *judge;
    const struct runs *runs;
    const struct archive *archive;
    const struct members *members;                 /* all nodes that live */
    const struct application *const *applications; /* that have runs; ends with NULL */
    struct metrics *metrics;
    int index;                /* slab of metrics; unique among the living nodes of this machine */
    bool simulated;           /* the AI is the built-in simulated one */
    bool simulated_embedding; /* the embedding service is */
    int place;            /* slot of the supervisor; a node restarted in the same slot reuses it */
    uint64_t incarnation; /* random: tells this process from all others, for leases */
    bool draining;        /* the node stops: no new work, no new requests */
    bool drained;         /* by an admin: no new work, but it serves; engine/watch/controls.h */
    const char *id;       /* of its slot; engine/watch/controls.h */
    int64_t resident_bytes, late_us; /* as last measured */
};
#endif
