/* http_harness.h -- for tests: a server on a socket of its own, and clients that speak raw bytes.
 *
 * The socket is a local one: sent bytes have arrived at once, so that runs on virtual time are
 * deterministic. */
#ifndef WIRE_HTTP_HARNESS_H
#define WIRE_HTTP_HARNESS_H

#include "base/buf.h"
#include "loop/watch.h"
#include "wire/http_server.h"

struct site {
    struct http_server *server;
    struct group group;
    int fd;
    uint16_t port; /* 0: a local socket */
    int result;    /* of http_server_run; 1 while it runs */
    struct metrics *metrics;
};

/* options.limits.connections_max == 0 takes the default limits. */
void site_open(struct task *t, struct site *s, struct http_options options,
               const struct http_route *routes, size_t n, void *ctx);
void site_open_tcp(struct task *t, struct site *s, struct http_options options,
                   const struct http_route *routes, size_t n, void *ctx);
void site_close(struct task *t, struct site *s);
int64_t site_metric(const struct site *s, const char *name_and_labels);

struct client {
    struct watch watch;
    struct buf in;
};

struct reply {
    int status;      /* 0: the connection ended, -1: nothing came */
    struct str head; /* with the empty line */
    struct str body; /* without framing */
    bool cut;        /* the end came too early */
};

void client_open(struct task *t, struct site *s, struct client *c);
void client_close(struct client *c);
void client_send(struct task *t, struct client *c, struct str bytes);
/* The next reply. Its parts lie in the task's arena. */
struct reply client_reply(struct task *t, struct client *c);
struct reply client_reply_to_head(struct task *t, struct client *c); /* no body follows */
/* The next bytes: "" at the end, p == NULL when nothing comes for an hour. */
struct str client_read(struct task *t, struct client *c);
bool client_at_end(struct task *t, struct client *c); /* nothing more comes, and the end comes */

/* Connects, sends, reads one reply, closes. */
struct reply ask(struct task *t, struct site *s, struct str request);
/* p == NULL if there is none. */
struct str reply_header(const struct reply *r, const char *name);
bool reply_has(const struct reply *r, const char *text); /* in the body */
#endif
