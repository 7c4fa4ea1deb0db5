/* keys.h -- the names of all Redis keys. No other file contains one.
 *
 * Each comment says what lives there and until when. A key has a native TTL only if MySQL can
 * rebuild it, or losing it costs no more than a repeat. Names are made in a, with a NUL behind. */
#ifndef ENGINE_STORE_KEYS_H
#define ENGINE_STORE_KEYS_H

#include "base/str.h"

/* --- the catalog: no TTL; engine/papers/catalog.c --- */

extern const struct str key_tags;     /* hash: tag -> type */
extern const struct str key_journals; /* hash: journal -> {"FullName", "DataRange", "UpdateDate"} */
extern const struct str key_prices;   /* hash: journal -> points */
extern const struct str key_catalog;  /* hash: "load" -> the load whose years it shows */
extern const struct str key_catalog_lock; /* string: token of its loader, 10 s */
struct str key_tag_journals(struct arena *a, struct str tag);     /* set: journals */
struct str key_year_numbers(struct arena *a, struct str journal); /* hash: year -> papers */
extern const struct str key_bare; /* hash: journal -> "2024 3 2025 0", papers without abstract */

/* --- blocks: 7 days, renewed by use, rebuilt from paperinfo; engine/papers/block.c --- */

struct str key_block(struct arena *a, struct str journal, int64_t year); /* hash: DOI -> paper */
/* string: token of its builder, 30 s */
struct str key_block_lock(struct arena *a, struct str journal, int64_t year);
/* hash: the same while it is built, 10 minutes */
struct str key_block_aside(struct arena *a, struct str journal, int64_t year, struct str token);

/* --- records, rebuilt from MySQL; engine/store/cache.c, engine/people/session.c --- */

extern const struct str key_expiry; /* sorted set: uid -> when it is swept, ms since 1970 */
/* string: generation of the Redis whose records are trusted */
extern const struct str key_cache_run;
struct str key_user_info(struct arena *a, int64_t uid);     /* hash; swept */
struct str key_user_sessions(struct arena *a, int64_t uid); /* set: sids; swept */
struct str key_session(struct arena *a, struct str sid);    /* hash; 7 days, renewed */
struct str key_history(struct arena *a, int64_t uid);       /* sorted set; swept */
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

extern const struct str key_attempts; /* sorted set: keys of the next kind -> last attempt, ms */
extern const struct str key_registrations; /* the same, of registrations */
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
extern const struct str key_billing;
extern const struct str key_audit_lock; /* string: token of the node that audits, 60 s */
extern const struct str key_audited;    /* string: when one was last completed, ms since 1970 */
/* string: cents that the last audit found to be off, and in how many places */
extern const struct str key_drift;

/* --- runs: no TTL until archived, then 7 days; engine/runs/units.c, engine/money/charge.c --- */

/* hash: state, reason, changed (version of the row), total_blocks, finished_blocks, papers,
 * finished, relevant, failed, cost; retry, fresh: see run_tell.lua, units_put.lua; owed: what the
 * row is owed, see runs/owed.h */
struct str key_query_status(struct arena *a, int64_t uid, struct str qid);
extern const struct str key_queue; /* sorted set: "<uid>:<qid>" -> when it was submitted, ms */
/* sorted set: "<uid>:<qid>" whose rows may be owed something -> when it was announced, ms */
extern const struct str key_owed;
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
extern const struct str key_archive_lock; /* string: token of the node that archives, 30 s */
/* list: up to 100 papers of a distillation, each "<DOI> <its block>"; 7 days, rebuilt from
 * distill_paper */
struct str key_chunk(struct arena *a, int64_t uid, struct str qid, int64_t n);
/* The name of a block, or of a slice of one with "#<slice>" behind it (slice.p == NULL: none), into
 * its parts. False: it is none. */
bool key_block_read(struct str name, struct str *journal, int64_t *year, struct str *slice);

/* --- nodes and workers: no TTL, kept true by every node; engine/crew/dispatcher.c, crew.c --- */

extern const struct str key_running;    /* hash: "<uid>:<qid>" -> workers it may have */
extern const struct str key_nodes;      /* sorted set: incarnation -> last heartbeat, ms */
extern const struct str key_nodes_info; /* hash: incarnation -> what it says of itself, as JSON */
/* hash: likewise, of nodes without a heartbeat; until reported (engine/watch/alerts.c) */
extern const struct str key_nodes_lost;
extern const struct str key_news;       /* stream: runs whose state was changed; the last 1,000 */
extern const struct str key_dispatched; /* string: generation of the Redis whose queue is whole */
extern const struct str key_dispatcher_lock; /* string: token of the node that dispatches, 3 s */
extern const struct str key_keeper_lock;     /* string: token of the node that tends runs, 10 s */
/* hash: "<qid>:<incarnation>" -> workers of that run on that node */
struct str key_workers(struct arena *a, int64_t uid);

/* --- downloads: losing one costs a repeat; app/download/downloads.c --- */

extern const struct str key_download_queue; /* list: "<uid>:<task>"; until taken */
extern const struct str key_download_taken; /* sorted set: the same -> end of its lease, ms */
/* sorted set: the user's that wait, and those whose files are held -> until when they count; 1 h */
struct str key_downloads_of(struct arena *a, int64_t uid);
struct str key_download_status(struct arena *a, int64_t uid, struct str task); /* hash; 1 h */
struct str key_download_piece(struct arena *a, int64_t uid, struct str task,
                              int64_t n); /* string of 1 MB; 5 minutes */

/* --- the keys of the AI service: no TTL, a limit must not be evicted; engine/ai/permits.c --- */

/* hash: run (generation), at, since, clean, big; see permits_lease.lua */
struct str key_permits(struct arena *a, const char *service);
extern const struct str key_key_errors; /* hash: number -> when, whether refused, what; the last */
struct str key_window(struct arena *a, int64_t api_id); /* hash: what was used, by slots; rest */
/* string: start of the period, s since 1970, and calls in it. period: "minute", "day", "month" */
struct str key_api_limit(struct arena *a, int64_t api_id, const char *period);

/* --- alerts: no TTL; engine/watch/alerts.c --- */

/* string: numbered note of the episodes that are not over, as JSON; so has table setting */
extern const struct str key_alerts;
extern const struct str key_alerts_lock; /* string: token of the node that watches, 10 s */
#endif
