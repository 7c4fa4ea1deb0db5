/* members.h -- which nodes live, and what each reports about itself.
 *
 * Every node sends a heartbeat each MEMBER_BEAT_MS, by a script, on Redis' clock. A node without a
 * heartbeat for MEMBER_SILENT_MS is dead: its units go back, its workers count no more. A node that
 * was only slow can do no harm then, because units are leased (units.h).
 *
 * For MEMBER_SILENT_MS after a connection to Redis was made, silence means nothing: no node could
 * be heard before, if it was Redis that was away. That is so with the same generation, too: hence
 * the epoch of the connection.
 *
 * Clocks of machines need not agree: each heartbeat compares this machine's with Redis', and times
 * that machines compare (loop_wall_ms) are on Redis' clock from then on. A clock of a machine that
 * is set anew is wrong for one MEMBER_BEAT_MS; times that one node measures are monotonic. */
#ifndef ENGINE_CREW_MEMBERS_H
#define ENGINE_CREW_MEMBERS_H

#include "wire/redis.h"

#define MEMBER_BEAT_MS   500
#define MEMBER_SILENT_MS 4000
#define MEMBERS_MAX      256 /* further ones are ignored */
#define MEMBER_CLOCK_MS  100 /* clocks that differ by less agree */

struct member {
    uint64_t incarnation;
    bool takes; /* work; false: it drains */
    int64_t workers;
    int64_t latency_us, tokens; /* of an AI call, on average; 0: not known */
};

struct members {
    struct redis *redis;  /* borrowed */
    uint64_t incarnation; /* of this node */
    struct member list[MEMBERS_MAX];
    size_t count;     /* in the order of incarnations */
    uint64_t epoch;   /* of the connection to Redis */
    int64_t since_ms; /* of the epoch */
};

struct member_note { /* what a node reports with its heartbeat */
    struct member self;
    struct str id;     /* of the slot; a restarted node in the same slot reuses it (controls.h) */
    struct str name;   /* "host:pid" */
    struct str runs;   /* JSON: {"<uid>:<qid>": workers} */
    bool drained;      /* by an admin */
    struct str prompt; /* fingerprint of its instructions to the AI */
    bool service_open; /* the AI service does not work, as this node sees it; */
    int64_t service_since_ms;                /* since 1970, */
    struct str service_cause, service_words; /* because of this */
    struct str faults; /* JSON: how AI calls failed lately (ai/faults.h); p == NULL: not known */
    int64_t resident_bytes, late_us, tasks; /* load of the process */
};

/* Sends a heartbeat and reads the list of members. note NULL: this node leaves the list. */
MUST_CHECK int members_beat(struct task *t, struct members *m, const struct member_note *note);

/* The membership list is complete: an absent incarnation may be treated as dead. */
bool members_certain(const struct members *m, int64_t now_ms);
bool members_live(const struct members *m, uint64_t incarnation);

/* At least one node takes work. */
bool members_any_takes(const struct members *m);

/* How many of count workers of a run are this node's: spread evenly over all nodes that take work,
 * beginning with one that the hash of the run's name picks. */
int64_t members_share(const struct members *m, struct str run, int64_t count);
#endif
