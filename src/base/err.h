/* err.h -- errors that are not programming errors: negative codes; zero is success.
 *
 * One list for every room. wire/http turns each into an HTTP status, and its
 * name is what API clients see as error.code, so names never change. */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include <stdbool.h>

enum err {
    ERR_CANCELED = -1,    /* the task was cancelled */
    ERR_TIMEOUT = -2,     /* the task's deadline passed */
    ERR_IO = -3,          /* the operating system refused; errno text is in the message */
    ERR_CLOSED = -4,      /* the peer closed the connection */
    ERR_PROTO = -5,       /* the peer broke the protocol */
    ERR_LIMIT = -6,       /* larger than a named limit */
    ERR_BUSY = -7,        /* a bounded queue is full; try again later */
    ERR_UNAVAILABLE = -8, /* a store or service is down; nothing was done */
    ERR_UNCERTAIN = -9,   /* sent, then the connection was lost: it may have been done */
    ERR_INVALID = -10,    /* the caller's input is wrong */
    ERR_NOT_FOUND = -11,
    ERR_EXISTS = -12,
    ERR_CONFLICT = -13, /* not in this state, or a stale version */
    ERR_UNAUTHENTICATED = -14,
    ERR_FORBIDDEN = -15,
    ERR_FUNDS = -16,   /* the balance is too low */
    ERR_RATE = -17,    /* too many requests from this caller */
    ERR_REFUSED = -18, /* the peer understood and said no; its text is in the message */
    ERR_INTERNAL = -19,
    ERR_SCOPE = -20, /* the caller's API token is not for this */
    ERR_LAST = ERR_SCOPE,
};

/* "timeout", "not_found" …; "ok" for 0. Never NULL. */
const char *err_name(int err);

/* Transient: a repeat can succeed. */
static inline bool err_may_pass(int err)
{
    return err == ERR_UNAVAILABLE || err == ERR_UNCERTAIN || err == ERR_TIMEOUT || err == ERR_BUSY;
}

/* A store is away or the task is cancelled: a loop over a list need not try the next item. */
static inline bool err_is_outage(int err)
{
    return err == ERR_UNAVAILABLE || err == ERR_UNCERTAIN || err == ERR_TIMEOUT ||
           err == ERR_CANCELED;
}
#endif
