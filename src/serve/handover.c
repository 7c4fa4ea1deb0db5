#include "serve/handover.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/check.h"
#include "base/file.h"
#include "base/json.h"

#define VARIABLE       "MILLRACE_HANDOVER"
#define TEXT_BYTES_MAX (1 << 20)

static void write_json(const struct handover *h, struct buf *out)
{
    struct json_writer w;
    jw_init(&w, out);
    jw_object(&w);
    jw_put_str(&w, "listen", str_of(h->listen));
    jw_put_str(&w, "data_dir", str_of(h->data_dir));
    jw_put_int(&w, "listen_fd", h->listen_fd);
    jw_put_bool(&w, "listen_given", h->listen_given);
    jw_put_str(&w, "retired", str_of(h->retired ? h->retired : ""));
    jw_put_int(&w, "lock_fd", h->lock_fd);
    jw_put_int(&w, "metrics_fd", h->metrics_fd);
    jw_put_int(&w, "sim_pid", h->sim_pid);
    jw_put_int(&w, "sim_port", h->sim_port);
    jw_put_int(&w, "drain_ms", h->drain_ms);
    jw_key(&w, STR("nodes"));
    jw_array(&w);
    for (size_t i = 0; i < h->node_count; i++) {
        jw_object(&w);
        jw_put_int(&w, "pid", h->nodes[i].pid);
        jw_put_int(&w, "index", h->nodes[i].index);
        jw_put_bool(&w, "draining", h->nodes[i].draining);
        jw_end_object(&w);
    }
    jw_end_array(&w);
    jw_end_object(&w);
}

static int make_file(const struct handover *h)
{
    struct buf b;
    buf_init(&b);
    write_json(h, &b);
    int fd = memfd_create("millrace-handover", MFD_CLOEXEC);
    if (fd >= 0 && write(fd, buf_str(&b).p, b.len) != (ssize_t)b.len) {
        close(fd);
        fd = -1;
    }
    buf_release(&b);
    return fd;
}

static void keep_over_exec(int fd, bool keep)
{
    fcntl(fd, F_SETFD, keep ? 0 : FD_CLOEXEC);
}

void handover_exec(const struct handover *h, const char *path, char **argv)
{
    int fd = make_file(h);
    if (fd < 0)
        return;
    char number[16];
    snprintf(number, sizeof number, "%d", fd);
    setenv(VARIABLE, number, 1);

    handover_signals(SIG_BLOCK);
    syscall(SYS_close_range, 3u, ~0u, CLOSE_RANGE_CLOEXEC);
    const int kept[] = {h->listen_fd, h->lock_fd, h->metrics_fd, fd};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        keep_over_exec(kept[i], true);

    execv(path, argv);

    int error = errno;
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        keep_over_exec(kept[i], false);
    unsetenv(VARIABLE);
    close(fd);
    handover_signals(SIG_UNBLOCK);
    errno = error;
}

void handover_signals(int how)
{
    sigset_t ours;
    sigemptyset(&ours);
    sigaddset(&ours, SIGHUP);
    sigaddset(&ours, SIGINT);
    sigaddset(&ours, SIGTERM);
    sigprocmask(how, &ours, NULL);
}

/* --- the new program --- */

static int number(const struct json *j, const char *name)
{
    int64_t v;
    check(json_int(json_get(j, name), &v) && v >= 0 && v <= INT_MAX);
    return (int)v;
}

static int take_fd(const struct json *j, const char *name)
{
    int fd = number(j, name);
    keep_over_exec(fd, false);
    return fd;
}

static const char *text_of(struct arena *a, const struct json *j, const char *name)
{
    struct str s = json_str(json_get(j, name));
    check(s.p);
    return str_z(a, s);
}

/* Fields that older versions do not write. */
static void read_newer(struct arena *a, const struct json *j, struct handover *out)
{
    struct str retired = json_str(json_get(j, "retired"));
    out->retired = retired.p ? str_z(a, retired) : "";
    if (!json_bool(json_get(j, "listen_given"), &out->listen_given))
        out->listen_given = false;
}

bool handover_take(struct arena *a, struct handover *out)
{
    const char *value = getenv(VARIABLE);
    int64_t fd;
    if (!value)
        return false;
    const struct json *j;
    struct str text;
    check(str_to_i64(str_of(value), &fd) && fd > 2 && fd <= INT_MAX);
    check(file_read_fd(a, (int)fd, TEXT_BYTES_MAX, &text) == 0);
    check(json_parse(a, text, &j, NULL) == 0);
    close((int)fd);
    unsetenv(VARIABLE);

    *out = (struct handover){.listen = text_of(a, j, "listen"),
                             .data_dir = text_of(a, j, "data_dir"),
                             .listen_fd = take_fd(j, "listen_fd"),
                             .lock_fd = take_fd(j, "lock_fd"),
                             .metrics_fd = take_fd(j, "metrics_fd"),
                             .sim_pid = number(j, "sim_pid"),
                             .sim_port = number(j, "sim_port"),
                             .drain_ms = number(j, "drain_ms")};
    read_newer(a, j, out);
    json_each (n, json_get(j, "nodes")) {
        check(out->node_count < METRICS_NODES_MAX);
        struct handover_node *node = &out->nodes[out->node_count++];
        node->pid = number(n, "pid");
        node->index = number(n, "index");
        check(json_bool(json_get(n, "draining"), &node->draining));
    }
    return true;
}
