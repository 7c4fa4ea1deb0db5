/* events.h -- the reply of a chat service while it comes in: server-sent events, in pieces that are
 * cut anywhere, or a body of another form, which is kept as it is. */
#ifndef ENGINE_AI_EVENTS_H
#define ENGINE_AI_EVENTS_H

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

struct ai_events {
    enum {
        EVENTS_UNKNOWN,
        EVENTS_YES,
        EVENTS_NO
    } form;                        /* what the first line that has text says */
    struct buf raw;                /* an unfinished line; or all of a body that is no events */
    struct buf content, reasoning; /* so far */
    struct buf whole;              /* an event that is a reply, or an error, by itself */
    struct arena arena;            /* of one event */
    char finish[32], fingerprint[64];
    int64_t tokens; /* 0: not told */
    size_t count;   /* of events that are JSON */
    bool done;      /* [DONE] was seen */
};

/* Whether the text of a body, trimmed, begins as events do. */
bool ai_events_are(struct str text);

void ai_events_init(struct ai_events *e);
void ai_events_release(struct ai_events *e);
/* Takes the next piece. ERR_LIMIT: a line, the text or a body has over AI_REPLY_BYTES_MAX. */
MUST_CHECK int ai_events_add(struct ai_events *e, struct str piece);
/* All has come, and it may end within a line. The events as one reply, in a; a body without events
 * as it came. An event that is no JSON makes the reply unreadable: a part of the text is lost. */
struct str ai_events_body(struct ai_events *e, struct arena *a);
/* After that: there are events, and neither they nor [DONE] say that the answer has ended. */
bool ai_events_cut(const struct ai_events *e);
#endif
