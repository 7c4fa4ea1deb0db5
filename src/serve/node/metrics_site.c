#include "serve/node/metrics_site.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "engine/setup/config.h"
#include "loop/backoff.h"

#define CONNECTIONS_MAX 64
#define BACKLOG         64
#define RETRY_MS        1000
#define RETRY_MS_MAX    30000

struct metrics_site {
    const char *address;
    struct http_server *http;
};

struct metrics_site *metrics_site_new(struct node_pages *p)
{
    struct node *n = p->node;
    if (!*n->config->metrics_listen)
        return NULL;
    struct metrics_site *m = check_memory(malloc(sizeof *m));
    struct http_options o = {.limits = http_limits_default}; /* scrapes are not counted */
    o.limits.connections_max = CONNECTIONS_MAX;
    *m = (struct metrics_site){n->config->metrics_listen, http_server_new(n->loop, &o)};
    node_routes_add_metrics(m->http, p);
    return m;
}

void metrics_site_free(struct metrics_site *m)
{
    if (!m)
        return;
    http_server_free(m->http);
    free(m);
}

static int open_socket(const char *text)
{
    struct sockaddr_storage address;
    socklen_t len;
    check(config_address(str_of(text), &address, &len));
    int fd = socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1;
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) == 0 &&
        bind(fd, (struct sockaddr *)&address, len) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    int failed = errno;
    close(fd);
    errno = failed;
    return -1;
}

void metrics_site_run(struct task *t, void *arg)
{
    struct metrics_site *m = arg;
    struct backoff b = {.ms = RETRY_MS, .ms_max = RETRY_MS_MAX};
    bool told = false;
    int err = 0, fd;
    while (!err && (fd = open_socket(m->address)) < 0) {
        if (!told)
            log_error("node",
                      "cannot listen at %s: %s; there are no metrics until it can be had, or "
                      "metrics_listen names another address",
                      m->address, strerror(errno));
        told = true;
        err = backoff_wait(t, &b);
    }
    if (err)
        return;
    if (told)
        log_info("node", "metrics are at %s now", m->address);
    err = http_server_run(t, m->http, fd);
    if (err != ERR_CANCELED)
        log_error("node", "metrics at %s have ended: %s", m->address, err_name(err));
    close(fd);
}
