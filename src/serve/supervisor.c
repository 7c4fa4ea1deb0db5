#include "serve/supervisor.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "engine/judge/judge.h"
#include "engine/setup/address.h"
#include "engine/setup/endpoint.h"
#include "serve/datadir.h"
#include "serve/listener.h"
#include "serve/machine.h"
#include "serve/provision.h"
#include "serve/supervisor_private.h"

#define LISTEN_RETRY_MS  2000
#define MIGRATE_AGAIN_MS 30000
#define STORES_CHECK_MS  2000 /* for each store to tell its settings */
#define STORES_AGAIN_MS  2000 /* before one that was away is asked again */
#define FAILURES_MAX     5 /* in a row, of nodes before any has served, and of the simulated AI */

/* --- before the loop --- */

static const char *program_path(struct arena *a)
{
    char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path);
    check(n > 0 && n < (ssize_t)sizeof path);
    struct str s = str_from(path, (size_t)n);
    if (str_ends(s, STR(" (deleted)"))) /* replaced since the start */
        s.n -= sizeof " (deleted)" - 1;
    return str_z(a, s);
}

static int make_metrics_page(void)
{
    int fd = memfd_create("millrace-metrics", MFD_CLOEXEC);
    check(fd >= 0 && ftruncate(fd, (off_t)metrics_bytes(METRICS_NODES_MAX)) == 0);
    return fd;
}

/* A newer program may have pages of another size. */
static int same_metrics_page(int fd)
{
    struct stat st;
    if (fstat(fd, &st) == 0 && (size_t)st.st_size == metrics_bytes(METRICS_NODES_MAX))
        return fd;
    close(fd);
    return make_metrics_page();
}

static int fail(struct supervisor *s, int err, const char *why)
{
    s->problem = arena_strdup(&s->arena, why);
    return err;
}

/* A socket that a service manager passes goes before the setting. */
static int open_listener(struct task *t, struct supervisor *s)
{
    int err = listener_given(t, &s->listen_fd);
    s->listen_given = !err && s->listen_fd >= 0;
    if (err || s->listen_given)
        return err;
    err = listener_open(t, s->config.listen, LISTEN_RETRY_MS, &s->listen_fd);
    return err ? err : supervisor_admit(t, s, &s->config);
}

int supervisor_admit(struct task *t, const struct supervisor *s, const struct config *c)
{
    return listener_admit(t, c->listen, config_mode(c->listen_mode), s->user.uid, s->user.gid);
}

/* What needs root comes first; nothing has been started if it fails. */
static int settle(struct task *t, struct supervisor *s)
{
    struct arena *a = &s->arena;
    int err = system_user_find(a, s->config.user, &s->user, &s->problem);
    if (!err)
        err = datadir_open(a, s->config.data_dir, s->user.uid, s->user.gid, &s->dir, &s->problem);
    if (err)
        return err;
    err = open_listener(t, s);
    if (err)
        return fail(s, err, task_error(t));
    s->metrics_fd = make_metrics_page();
    err = system_user_become(a, &s->user, &s->problem);
    if (!err && access(s->dir.path, R_OK | W_OK | X_OK) < 0)
        err = fail(s, ERR_IO,
                   arena_printf(a, "%s: user \"%s\" cannot write there: %s", s->dir.path,
                                s->user.name, strerror(errno)));
    return err;
}

/* After exec: the process has all of it already. */
static int settle_again(struct supervisor *s)
{
    s->dir = (struct datadir){s->before.data_dir, s->before.lock_fd};
    s->listen_fd = s->before.listen_fd;
    s->listen_given = s->before.listen_given;
    listener_remove(s->before.retired);
    s->metrics_fd = same_metrics_page(s->before.metrics_fd);
    return system_user_find(&s->arena, s->config.user, &s->user, &s->problem);
}

/* Only the proxy knows the clients of a socket at a path. */
static void warn_about_proxy(struct supervisor *s)
{
    struct arena *a = &s->arena;
    struct address_list *trusted = address_list_new(a, s->config.trusted_proxies);
    struct str client = address_of_client(a, trusted, STR("unix"), STR("192.0.2.1"));
    if (config_unix_path(listener_url(a, s->listen_fd)) && str_eq(client, STR("unix")))
        log_warn("serve",
                 "trusted_proxies does not name \"unix\": addresses that the proxy forwards "
                 "are ignored, and limits per address do not apply");
}

static void warn_about_vectors(const struct config *c)
{
    if (config_uses_qdrant(c) && *c->vectors_api_key && endpoint_is_plain(c->vectors_url))
        log_warn("serve", "vectors.url is http:// to another machine: vectors.api_key can be read "
                          "on the way; use https://");
}

static void warn_about_machine(const struct supervisor *s)
{
    machine_raise_file_limit();
    machine_check_mappings(s->config.http_connections_max);
    if (!config_persists(&s->config) && !*s->config.redis_url)
        log_warn("serve", "local_develop_mode without persist_user_info: what the private Redis "
                          "holds is lost when it ends");
    if (geteuid() == 0 && !s->reloaded)
        log_warn("serve", "running as root, private stores included; the setting \"user\" names a "
                          "system user to run as instead");
}

/* --- signals --- */

static void on_stop(void *arg)
{
    struct supervisor *s = arg;
    if (s->shared.stops++ > 0)
        log_warn("serve", "told to stop again: killing the nodes%s",
                 s->shared.stops > 2 ? " and the stores" : "");
    s->shared.hurry = s->shared.stops - 1;
    supervision_wake(&s->shared);
}

static void on_reload(void *arg)
{
    struct supervisor *s = arg;
    /* The same signal is sent when the terminal it was started from is closed. */
    if (s->terminal_fd >= 0 && tcgetpgrp(s->terminal_fd) < 0) {
        on_stop(s);
        return;
    }
    s->reload = true;
    supervision_wake(&s->shared);
}

static void take_signals(struct supervisor *s)
{
    signal(SIGPIPE, SIG_IGN);
    loop_on_signal(s->shared.loop, SIGTERM, on_stop, s);
    loop_on_signal(s->shared.loop, SIGINT, on_stop, s);
    loop_on_signal(s->shared.loop, SIGHUP, on_reload, s);
    handover_signals(SIG_UNBLOCK);
}

/* --- stores --- */

static void prepare_store(struct supervisor *s, struct store *store, const struct store_kind *kind)
{
    *store = (struct store){.kind = kind,
                            .config = &s->config,
                            .data_dir = s->dir.path,
                            .user = &s->user,
                            .nodes = (size_t)s->nodes,
                            .shared = &s->shared,
                            .was_ready = s->reloaded};
}

static bool is_settled(const struct store *store)
{
    return store->state != STORE_STARTING && store->state != STORE_DOWN;
}

/* Returns when both are ready, one has failed, or the supervisor has to stop. */
static int start_stores(struct task *t, struct supervisor *s)
{
    if (!*s->config.redis_url && store_go(&s->redis, &s->stores))
        return ERR_LIMIT;
    if (!*s->config.mysql_url && store_go(&s->mariadb, &s->stores))
        return ERR_LIMIT;
    while (!s->shared.stops && s->redis.state != STORE_FAILED && s->mariadb.state != STORE_FAILED &&
           !(is_settled(&s->redis) && is_settled(&s->mariadb)))
        supervision_wait(t, &s->shared, TIME_NEVER);
    const struct store *failed = s->redis.state == STORE_FAILED     ? &s->redis
                                 : s->mariadb.state == STORE_FAILED ? &s->mariadb
                                                                    : NULL;
    if (failed)
        return fail(s, ERR_IO, failed->problem);
    return s->shared.stops ? ERR_CANCELED : 0;
}

/* Stops stores that run although these settings do not use them: left by a supervisor that was
 * killed, or in use before a reload. The nodes of that time must have ended. */
static void clear_stores(struct task *t, struct supervisor *s)
{
    if (*s->config.redis_url)
        store_clear(t, &s->redis);
    if (*s->config.mysql_url)
        store_clear(t, &s->mariadb);
}

/* --- their settings --- */

static int refuse(struct task *t, const struct config *c, const struct store_findings *f)
{
    for (size_t i = 0; i < f->unread_count; i++)
        log_warn("serve", "%s", f->unread[i]);
    bool refused = f->unsafe_count && !c->allow_unsafe_stores;
    for (size_t i = refused; i < f->unsafe_count; i++) /* the first is in the error */
        log_line(refused ? LOG_ERROR : LOG_WARN, "serve", "%s", f->unsafe[i]);
    if (!refused)
        return 0;
    return task_fail(t, ERR_REFUSED,
                     "%s; or insist with --allow-unsafe-stores, and lose money in a crash",
                     f->unsafe[0]);
}

int supervisor_check_stores(struct task *t, const struct config *c, struct store_report *r)
{
    bool redis = r->redis_known, mysql = r->mysql_known;
    store_check(t, c, STORES_CHECK_MS, r);
    if (r->cluster)
        return task_fail(t, ERR_REFUSED, STORE_CLUSTER_WORDS);
    int err = !redis && r->redis_known ? refuse(t, c, &r->redis) : 0;
    int last = !mysql && r->mysql_known ? refuse(t, c, &r->mysql) : 0;
    return err ? err : last;
}

static bool is_checked(const struct supervisor *s)
{
    return s->checked.redis_known && s->checked.mysql_known;
}

/* Stores that were away at the start. */
static void check_later(struct task *t, void *arg)
{
    struct supervisor *s = arg;
    while (!is_checked(s) && !s->shared.stops && !s->unsafe) {
        supervision_pause(t, &s->shared, STORES_AGAIN_MS, &s->fleet.stop);
        struct task_scope scope = task_scope(t);
        if (!s->fleet.stop && supervisor_check_stores(t, &s->config, &s->checked)) {
            s->unsafe = true;
            s->problem = arena_strdup(&s->arena, task_error(t));
            supervision_wake(&s->shared);
        }
        task_scope_end(t, scope);
    }
}

/* After a reload the old nodes serve on the same stores, and the settings were checked before. */
static int check_stores(struct task *t, struct supervisor *s)
{
    if (s->reloaded)
        return 0;
    struct task_scope scope = task_scope(t);
    int err = supervisor_check_stores(t, &s->config, &s->checked);
    if (err)
        fail(s, err, task_error(t));
    task_scope_end(t, scope);
    return err || is_checked(s) ? err : task_go(&s->checks, "stores", check_later, s);
}

/* --- their content --- */

/* The settings for children, who must not see later changes of the file on disk. */
static int make_config_file(const struct config *c)
{
    struct buf b;
    buf_init(&b);
    config_write(c, &b);
    int fd = memfd_create("millrace-config", MFD_CLOEXEC);
    check(fd >= 0 && write(fd, buf_str(&b).p, b.len) == (ssize_t)b.len);
    buf_release(&b);
    return fd;
}

/* After a reload the old nodes serve until new ones do, so a migration that fails is retried;
 * SIGHUP meanwhile loads another program. */
static int migrate(struct task *t, struct supervisor *s, struct provision *p)
{
    for (;;) {
        int err = provision_migrate(t, p);
        if (!err || s->shared.stops)
            return err;
        if (!s->reloaded)
            return fail(s, err, "the private MariaDB could not be migrated; see the lines above");
        log_error("serve", "not migrated: no new nodes, %d old ones go on; the next try is in %d s",
                  fleet_old(&s->fleet), MIGRATE_AGAIN_MS / 1000);
        int64_t until = loop_now_ms(s->shared.loop) + MIGRATE_AGAIN_MS;
        while (!s->shared.stops && !s->reload && loop_now_ms(s->shared.loop) < until)
            supervision_wait(t, &s->shared, until);
        if (s->shared.stops)
            return ERR_CANCELED;
        if (s->reload) {
            s->reload = false;
            supervisor_reload(t, s);
        }
    }
}

/* A configured MySQL is filled by operators only. */
static int fill_stores(struct task *t, struct supervisor *s)
{
    if (*s->config.mysql_url)
        return 0;
    struct provision p = {.shared = &s->shared,
                          .data_dir = s->dir.path,
                          .config = &s->config,
                          .settings_fd = make_config_file(&s->config)};
    int err = migrate(t, s, &p);
    if (!err && !s->reloaded)
        err = provision_sample(t, &p);
    s->sample_papers = p.sample_papers;
    close(p.settings_fd);
    return err;
}

/* --- the simulated AI and the nodes --- */

/* Adopts what this process had before exec. */
static int take_over(struct supervisor *s)
{
    s->sim = (struct simulator){.shared = &s->shared, .port = s->before.sim_port};
    s->fleet = (struct fleet){.shared = &s->shared,
                              .listen_fd = s->listen_fd,
                              .metrics_fd = s->metrics_fd,
                              .config_fd = -1,
                              .drain_ms = s->config.drain_ms,
                              .old_drain_ms = s->before.drain_ms,
                              .wanted = s->nodes};
    for (size_t i = 0; i < s->before.node_count; i++)
        fleet_adopt(&s->fleet, s->before.nodes[i].pid, s->before.nodes[i].index,
                    s->before.nodes[i].draining);
    int err = fleet_go_old(&s->fleet, &s->fleet_group);
    if (!err && s->before.sim_pid)
        err = simulator_go(&s->sim, &s->sims, s->before.sim_pid);
    return err;
}

/* One that runs but is no longer configured ends with the old nodes, which use it: see attend. */
static int start_simulator(struct task *t, struct supervisor *s)
{
    if (*s->config.ai_url)
        return 0;
    if (!s->before.sim_pid && simulator_go(&s->sim, &s->sims, 0))
        return ERR_LIMIT;
    while (!s->sim.port && !s->shared.stops && (s->reloaded || s->sim.failures < FAILURES_MAX))
        supervision_wait(t, &s->shared, TIME_NEVER);
    if (!s->sim.port && !s->shared.stops)
        return fail(s, ERR_IO, "the simulated AI cannot be started");
    s->config.ai_url = arena_printf(&s->arena, "http://127.0.0.1:%d/v1", s->sim.port);
    if (!*s->config.ai_embedding_url)
        s->config.ai_embedding_url = s->config.ai_url;
    s->simulated = true;
    return s->shared.stops ? ERR_CANCELED : 0;
}

static int start_nodes(struct supervisor *s)
{
    s->config.nodes = s->nodes;
    s->fleet.simulated = s->simulated;
    s->fleet.config_fd = make_config_file(&s->config);
    return fleet_go(&s->fleet, &s->fleet_group);
}

/* --- running --- */

/* The old nodes have ended: stops what only they used. */
static void tidy_up(struct task *t, struct supervisor *s)
{
    if (!s->simulated) {
        s->sim.stop = true;
        supervision_wake(&s->shared);
    }
    clear_stores(t, s);
    if (s->reloaded)
        log_info("serve", "the old nodes have ended");
}

/* READY=1: once, as soon as every node takes submits. */
static void tell_ready(struct supervisor *s)
{
    if (s->phase != PHASE_READY && fleet_open(&s->fleet))
        supervisor_tell(s, PHASE_READY, "%d node%s at %s", s->nodes, s->nodes == 1 ? "" : "s",
                        listener_url(&s->arena, s->listen_fd));
}

/* Returns when a signal to stop has come, or when no node can be started. */
static int attend(struct task *t, struct supervisor *s)
{
    bool announced = false, told = false, tidy = false;
    while (!s->shared.stops) {
        if (!announced && (s->reloaded ? fleet_ready(&s->fleet) > 0 : fleet_open(&s->fleet))) {
            announced = true;
            supervisor_announce(t, s);
            continue; /* it waits, and may have missed a wake-up meanwhile */
        }
        if (announced)
            tell_ready(s);
        if (!announced && !told && !s->reloaded && fleet_lacks(&s->fleet)) {
            told = true;
            supervisor_announce_lacking(s, fleet_lacks(&s->fleet));
        }
        if (s->unsafe)
            return ERR_REFUSED;
        if (!announced && !s->reloaded && s->fleet.failures >= FAILURES_MAX)
            return fail(s, ERR_IO, "nodes end before they serve; see the lines above");
        if (!tidy && fleet_old(&s->fleet) == 0) {
            tidy = true;
            tidy_up(t, s);
            continue;
        }
        if (s->reload) {
            s->reload = false;
            supervisor_reload(t, s);
            continue;
        }
        supervision_wait(t, &s->shared, TIME_NEVER);
    }
    return 0;
}

static void join(struct task *t, struct supervisor *s, struct group *g)
{
    supervision_wake(&s->shared);
    check(group_join(t, g) == 0);
}

static void stop_all(struct task *t, struct supervisor *s)
{
    supervisor_tell(s, PHASE_STOPPING, "stopping: nodes finish their requests, then the stores");
    if (!s->listen_given)
        listener_remove(s->config.listen);
    close(s->listen_fd); /* once the nodes have closed theirs, clients are refused at once */
    s->fleet.stop = true;
    join(t, s, &s->fleet_group);
    join(t, s, &s->checks);
    s->sim.stop = true;
    join(t, s, &s->sims);
    s->redis.stop = s->mariadb.stop = true;
    join(t, s, &s->stores);
    clear_stores(t, s);
}

static int start_all(struct task *t, struct supervisor *s)
{
    warn_about_machine(s);
    warn_about_proxy(s);
    warn_about_vectors(&s->config);
    s->config.data_dir = s->dir.path;
    prepare_store(s, &s->redis, &store_redis);
    prepare_store(s, &s->mariadb, &store_mariadb);
    int err = take_over(s);
    if (!err)
        err = start_stores(t, s);
    if (!err)
        err = check_stores(t, s);
    if (!err)
        err = fill_stores(t, s);
    if (!err)
        err = start_simulator(t, s);
    return err ? err : start_nodes(s);
}

static void live(struct task *t, void *arg)
{
    struct supervisor *s = arg;
    int err = s->reloaded ? settle_again(s) : settle(t, s);
    bool settled = !err;
    if (!err)
        err = start_all(t, s);
    if (!err)
        err = attend(t, s);
    if (err && !s->shared.stops)
        log_error("serve", "%s", s->problem ? s->problem : err_name(err));
    s->status = s->shared.stops ? 0 : 1;
    if (settled && s->shared.stops)
        log_info("serve", "stopping: nodes first, then the stores");
    if (settled)
        stop_all(t, s);
    else if (s->listen_fd >= 0 && !s->listen_given)
        listener_remove(s->config.listen);
    s->ended = true;
    supervision_wake(&s->shared);
    if (settled)
        log_info("serve", "stopped");
}

static void run(struct supervisor *s)
{
    supervision_init(&s->shared, loop_new(NULL), program_path(&s->arena));
    group_init(&s->stores, s->shared.loop);
    group_init(&s->sims, s->shared.loop);
    group_init(&s->fleet_group, s->shared.loop);
    group_init(&s->checks, s->shared.loop);
    struct group self;
    group_init(&self, s->shared.loop);
    take_signals(s);
    if (s->reloaded)
        supervisor_tell(s, PHASE_RELOADING, "reloading: new nodes start");
    else
        supervisor_tell(s, PHASE_STARTING, "starting");
    supervisor_beat_go(s, &self);
    check(task_go(&self, "supervisor", live, s) == 0);
    loop_run(s->shared.loop);
    loop_free(s->shared.loop);
}

static int find_terminal(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (isatty(fd) == 1 && tcgetpgrp(fd) >= 0)
            return fd;
    return -1;
}

int serve_settings(struct arena *a, const struct serve_options *o, struct config *out,
                   const char **why)
{
    const char *file = o->config_file ? o->config_file : CONFIG_FILE_DEFAULT;
    int err = config_load(a, file, !o->config_file, environ, out, why);
    if (!err && o->nodes)
        err = config_set(a, out, "nodes", o->nodes, "--nodes", why);
    if (!err && o->listen)
        err = config_set(a, out, "listen", o->listen, "--listen", why);
    if (!err && o->allow_unsafe_stores)
        err = config_set(a, out, "allow_unsafe_stores", "true", "--allow-unsafe-stores", why);
    if (!err && ((*why = config_problem(a, out)) || (*why = judge_config_problem(a, out))))
        err = ERR_INVALID;
    return err;
}

int supervisor_main(const struct serve_options *o)
{
    struct supervisor s = {.options = o, .listen_fd = -1, .status = 1};
    const char *why = NULL;
    arena_init(&s.arena);
    s.reloaded = handover_take(&s.arena, &s.before);
    s.terminal_fd = find_terminal();
    if (serve_settings(&s.arena, o, &s.config, &why)) {
        fprintf(stderr, "millrace: %s\n", why);
    } else {
        log_setup(s.config.log_level, s.config.log_format, "serve");
        s.nodes = s.config.nodes ? (int)s.config.nodes : machine_cores();
        s.nodes = s.nodes < CONFIG_NODES_MAX ? s.nodes : CONFIG_NODES_MAX;
        notify_take(&s.notify, &s.arena);
        run(&s);
        notify_close(&s.notify);
    }
    arena_release(&s.arena);
    return s.status;
}
