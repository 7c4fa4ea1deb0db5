/* keys.h -- the names of all Redis keys. No other file contains one.
 *
 * Each comment says what lives there and until when. A key has a native TTL only if MySQL can
 * rebuild it, or losing it costs no more than a repeat. Names are made in a, with a NUL behind. */
#ifndef ENGINE_STORE_KEYS_H
#define ENGINE_STORE_KEYS_H

#include "base/str.h"

/* Whether Redis is a cluster: then each name has a hash tag. It is the uid of what a user has, the
 * queue of jobs, the group of a pool, the block, else "sys"; sessions have none yet. Set once,
 * before any key is made. On a single Redis names never change: it has data under them. */
void keys_on_cluster(bool on);
bool keys_are_on_cluster(void);

/* --- the catalog: no TTL; engine/papers/catalog.c --- */

extern struct str key_tags;         /* hash: tag -> type */
extern struct str key_journals;     /* hash: journal -> {"FullName", "DataRange", "UpdateDate"} */
extern struct str key_prices;       /* hash: journal -> points */
extern struct str key_catalog;      /* hash: "load" -> the load whose years it shows */
extern struct str key_catalog_lock; /* string: token of its loader, 10 s */
struct str key_tag_journals(struct arena *a, struct str tag);     /* set: journals */
struct str key_year_numbers(struct arena *a, struct str journal); /* hash: year -> papers */
extern struct str key_bare; /* hash: journal -> "2024 3 2025 0", papers without abstract */

/* --- blocks: 7 days, renewed by use, rebuilt from paperinfo; engine/papers/block.c --- */

struct str key_block(struct arena *a, struct str journal, int64_t year); /* hash: DOI -> paper */
/* The same on any Redis: what units are called, and results say of their papers. */
struct str key_block_name(struct arena *a, struct str journal, int64_t year);
/* string: token of its builder, 30 s */
struct str key_block_lock(struct arena *a, struct str journal, int64_t year);
/* hash: the same while it is built, 10 minutes */
struct str key_block_aside(struct arena *a, struct str journal, int64_t year, struct str token);

/* --- records, rebuilt from MySQL; engine/store/cache.c, engine/people/session.c --- */

extern struct str key_expiry; /* sorted set: uid -> when it is swept, ms since 1970 */
/* string: generation of the Redis whose records are trusted */
extern struct str key_cache_run;
struct str key_user_info(struct arena *a, int64_t uid);     /* hash; swept */
struct str key_user_sessions(struct arena *a, int64_t uid); /* set: sids; swept */
/* hash; 7 days, renewed. An API token is found by its hash, as a session is by its sid, and so its
 * name is of the same kind; 8 hours */
struct str key_session(struct arena *a, struct str sid);
struct str key_history(struct arena *a, int64_t uid); /* sorted set; swept */
/* string: runs that are not finished, with their ceilings; 2 s, and until one changes its state;
 * engine/runs/reserve.c */
struct str key_unfinished(struct arena *a, int64_t uid);
/* sorted set: event streams -> until when, ms; as long as the last lease */
struct str key_streams(struct arena *a, int64_t uid);
struct str key_admin_info(struct arena *a, int64_t uid);       /* hash; 8 hours */
struct str key_admin_sessions(struct arena *a, int64_t uid);   /* set: sids */
struct str key_admin_session(struct arena *a, struct str sid); /* hash; 12 hours */

/* --- failed log-ins, registrations: no TTL, a limit must not be evicted; swept by
 * engine/people/attempts.c --- */

extern struct str key_attempts;      /* sorted set: keys of the next kind -> last attempt, ms */
extern struct str key_registrations; /* the same, of registrations */
/* sorted set: attempts -> when, ms. realm: struct attempt; what: "pair", "name", "address"; and
 * "known": a string, for 30 days */
struct str key_attempts_of(struct arena *a, const char *realm, const char *what, struct str who);

/* --- money: no TTL, MySQL may not have it yet; engine/money/ledger.c --- */

struct str key_balance(struct arena *a, int64_t uid); /* string: cents; swept */
struct str key_ledger(struct arena *a, int64_t uid); /* hash: run (generation), seq, synced, move */
struct str key_billing_queue(struct arena *a, int64_t uid); /* list: records; until synced */
struct str key_deductions(struct arena *a, int64_t uid);    /* hash: request id -> seq; likewise */
struct str key_aside(struct arena *a, int64_t uid);         /* list: records that cannot be read */
/* sorted set: uids that may have records -> when the last was announced, ms since 1970 */
extern struct str key_billing;
extern struct str key_audit_lock; /* string: token of the node that audits, 60 s */
extern struct str key_audited;    /* string: when one was last completed, ms since 1970 */
/* string: cents that the last audit found to be off, and in how many places */
extern struct str key_drift;

/* --- runs: no TTL until archived, then 7 days; engine/runs/units.c, engine/money/charge.c --- */

/* hash: state, reason, changed (version of the row), total_blocks, finished_blocks, papers,
 * finished, relevant, failed, cost; retry, fresh: see run_tell.lua, units_put.lua; owed: what the
 * row is owed, see runs/owed.h */
struct str key_query_status(struct arena *a, int64_t uid, struct str qid);
extern struct str key_queue; /* sorted set: "<uid>:<qid>" -> when it was submitted, ms */
/* sorted set: "<uid>:<qid>" whose rows may be owed something -> when it was announced, ms */
extern struct str key_owed;
/* hash: question, search_params, created, started, ended, original, simulated */
struct str key_query_info(struct arena *a, int64_t uid, struct str qid);
struct str key_pause_signal(struct arena *a, int64_t uid, struct str qid);     /* string: "1" */
struct str key_terminate_signal(struct arena *a, int64_t uid, struct str qid); /* likewise */
struct str key_pending(struct arena *a, int64_t uid, struct str qid);          /* list: units */
struct str key_inflight(struct arena *a, int64_t uid, struct str qid); /* hash: unit -> lease */
/* hash: unit -> "<asks in vain> <papers that were open then>", of those that were given back */
struct str key_vain(struct arena *a, int64_t uid, struct str qid);
/* hash: DOI -> JSON {"ai_result": ..., "block_key": "meta:..."} */
struct str key_result(struct arena *a, int64_t uid, struct str qid);
struct str key_failed(struct arena *a, int64_t uid, struct str qid);   /* set: DOIs that failed */
struct str key_progress(struct arena *a, int64_t uid, struct str qid); /* string: papers finished */
/* list: DOIs of key_result in the order they came; each once */
struct str key_arrivals(struct arena *a, int64_t uid, struct str qid);
/* list: the relevant ones of them, in the order in which that was found; each once */
struct str key_relevant(struct arena *a, int64_t uid, struct str qid);
extern struct str key_archive_lock; /* string: token of the node that archives, 30 s */
/* list: up to 100 papers of a run that names its papers (chosen/frozen.h), each "<DOI> <its
 * block>"; 7 days, rebuilt from distill_paper */
struct str key_chunk(struct arena *a, int64_t uid, struct str qid, int64_t n);
/* The name of a block, or of a slice of one with "#<slice>" behind it (slice.p == NULL: none), into
 * its parts. False: it is none. */
bool key_block_read(struct str name, struct str *journal, int64_t *year, struct str *slice);

/* --- nodes and workers: no TTL, kept true by every node; engine/crew/dispatcher.c, crew.c --- */

extern struct str key_running;    /* hash: "<uid>:<qid>" -> workers it may have */
extern struct str key_nodes;      /* sorted set: incarnation -> last heartbeat, ms */
extern struct str key_nodes_info; /* hash: incarnation -> what it says of itself, as JSON */
/* hash: likewise, of nodes without a heartbeat; until reported (engine/watch/alerts.c) */
extern struct str key_nodes_lost;
extern struct str key_news;            /* stream: runs whose state was changed; the last 1,000 */
extern struct str key_dispatched;      /* string: generation of the Redis whose queue is whole */
extern struct str key_dispatcher_lock; /* string: token of the node that dispatches, 3 s */
extern struct str key_keeper_lock;     /* string: token of the node that tends runs, 10 s */
/* hash: "<qid>:<incarnation>" -> workers of that run on that node; "jobs:<incarnation>" -> jobs
 * that call the AI; notes: see workers_claim.lua */
struct str key_workers(struct arena *a, int64_t uid);

/* --- downloads: losing one costs a repeat; app/download/downloads.c --- */

/* sorted set: "<task>:<bytes>", the user's files that are held -> until when, ms; 5 minutes */
struct str key_downloads_of(struct arena *a, int64_t uid);
struct str key_download_status(struct arena *a, int64_t uid, struct str task); /* hash; 1 h */
struct str key_download_piece(struct arena *a, int64_t uid, struct str task,
                              int64_t n); /* string of 1 MB; 5 minutes */

/* --- searches: losing one costs a repeat; app/embed/search/pages.c --- */

/* string: the order of its hits, for the following pages; 10 minutes. uid 0: of an admin */
struct str key_search(struct arena *a, int64_t uid, struct str id);

/* --- jobs: no TTL, until done; rebuilt from rows; engine/jobs/ --- */

struct str key_jobs(struct arena *a, const char *queue); /* sorted set: ids by priority, order */
/* "leases", "delays": sorted sets, ids -> their ends, ms. "info": hash, id -> see jobs_push.lua.
 * "users": hash, uid -> jobs. "held": sorted set, held jobs -> uid; "probes": sorted set, uid ->
 * when one of them is tried again. "state": hash: run (generation), seen, paused, done, failed.
 * "aside": sorted set, ids of jobs whose row cannot be written -> since when, ms. "wake": stream of
 * one entry, a new one whenever jobs wait where none did */
struct str key_jobs_part(struct arena *a, const char *queue, const char *part);
extern struct str key_jobs_paid_lock; /* string: of the one that looks at payments, 30 s */
extern struct str key_jobs_lock;      /* string: token of the node that refills them, 10 s */
extern struct str key_jobs_soon_lock; /* likewise, of queues that are filled soon, 10 s */

/* --- limits of users: no TTL, a limit must not be evicted; engine/jobs/limits.c --- */

/* hash: "<kind>:<period>" -> start of the period, s since 1970, and jobs in it */
struct str key_user_limits(struct arena *a, int64_t uid);

/* --- pools: app/pool/pools.h --- */

/* list: items, {"id", "text"}; until taken, the rest rebuilt from MySQL */
struct str key_pool(struct arena *a, const char *type, int64_t group);
/* string: token of the node that fills the list, 60 s */
struct str key_pool_filling(struct arena *a, const char *type, int64_t group);
/* hash: generation, list (its name), first, limit, marked, asks, pushed, pushed_bytes; rebuilt from
 * MySQL: see pool_pop.lua, pool_begin.lua */
struct str key_pool_state(struct arena *a, const char *type, int64_t group);
/* string: ids of the items that a request was given; 10 minutes */
struct str key_pool_request(struct arena *a, const char *type, int64_t group, int64_t uid,
                            struct str request);
/* hash: bytes that all lists take, as last added up; low: groups that run out, as JSON */
extern struct str key_pools;
extern struct str key_pools_lock; /* string: token of the node that keeps pools full, 10 s */

/* --- prompt templates: 30 days, rebuilt from prompt_template; app/plan/template.h --- */

/* hash: id, name, category, subcategory, template, variables (JSON), is_default, version; of one
 * that was deleted: version */
struct str key_template(struct arena *a, struct str category, int64_t id);
struct str key_template_default(struct arena *a, struct str category); /* string: an id */
extern struct str key_template_categories;                             /* set: categories */

/* --- plans, rebuilt from MySQL; app/plan/plans.h --- */

struct str key_training_plan(struct arena *a, struct str id);  /* hash; no TTL */
struct str key_nutrition_plan(struct arena *a, struct str id); /* hash; 30 days */
/* string: id of the active plan; no TTL */
struct str key_training_active(struct arena *a, int64_t uid);
struct str key_nutrition_active(struct arena *a, int64_t uid);
struct str key_training_day(struct arena *a, struct str id, struct str date); /* hash; 7 days */
/* hash, a day of the active plan; 7 days */
struct str key_nutrition_day(struct arena *a, int64_t uid, struct str date);
/* hash: run (generation), version of the user's plans that counts; no TTL: it is a fence */
struct str key_plans(struct arena *a, int64_t uid);
struct str key_generation_task(struct arena *a, struct str id); /* hash: how far; 24 hours */
struct str key_pending_tasks(struct arena *a, int64_t uid);     /* set: ids; swept by a role */
extern struct str key_documents_lock;   /* string: token of the node that sweeps documents, 10 s */
extern struct str key_plans_lock;       /* string: token of the node that sweeps plans, 10 s */
extern struct str key_extract_lock;     /* string: token of the node that closes tasks, 30 s */
extern struct str key_post_tags_lock;   /* likewise, that tells points of changed posts, 30 s */
extern struct str key_post_space_lock;  /* likewise, that has posts embedded again, 30 s */
extern struct str key_paper_space_lock; /* likewise, of papers, 30 s */
extern struct str key_paper_news_lock;  /* likewise, that queues what a load has changed, 60 s */
extern struct str key_hooks_lock;       /* string: token of the node that calls webhooks, 30 s */
extern struct str key_plans_warm_lock;  /* likewise, of the node that loads them, 30 s */
extern struct str key_plans_warmed;     /* string: generation and day that they were loaded for */

/* --- the keys of the AI service: no TTL, a limit must not be evicted; engine/ai/permits.c --- */

/* hash: run (generation), at, since, clean, big; see permits_lease.lua */
struct str key_permits(struct arena *a, const char *service);
extern struct str key_key_errors; /* hash: number -> when, whether refused, what; the last */
struct str key_window(struct arena *a, int64_t api_id); /* hash: what was used, by slots; rest */
/* string: start of the period, s since 1970, and calls in it. period: "minute", "day", "month" */
struct str key_api_limit(struct arena *a, int64_t api_id, const char *period);

/* --- alerts: no TTL; engine/watch/alerts.c --- */

/* string: numbered note of the episodes that are not over, as JSON; so has table setting */
extern struct str key_alerts;
extern struct str key_alerts_lock; /* string: token of the node that watches, 10 s */
#endif
