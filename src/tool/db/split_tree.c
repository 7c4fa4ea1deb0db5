#include "tool/db/split_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "serve/datadir.h"
#include "tool/db/split_name.h"

#define FILE_BYTES    (256 << 10) /* of one journal, then they are written */
#define WAITING_BYTES (64 << 20)  /* of all */

static int fail(struct split_tree *s, const char *path, const char **why)
{
    *why = arena_printf(s->arena, "%s: %s", path, strerror(errno));
    return ERR_IO;
}

static int make_folder(struct split_tree *s, const char *path, const char **why)
{
    return mkdir(path, 0777) < 0 && errno != EEXIST ? fail(s, path, why) : 0;
}

int split_tree_open(struct split_tree *s, struct arena *a, const char *out, const char *file,
                    const char **why)
{
    *s = (struct split_tree){.arena = a, .out = out, .file = file, .by_name = map_new()};
    s->aside = arena_printf(a, "%s/.split-%d", out, (int)getpid());
    s->made_out = mkdir(out, 0777) == 0;
    if (!s->made_out && errno != EEXIST)
        return fail(s, out, why);
    return mkdir(s->aside, 0777) < 0 ? fail(s, s->aside, why) : 0;
}

/* --- writing --- */

static const char *path_of(struct split_tree *s, const char *top, const struct split_journal *j)
{
    return arena_printf(s->arena, "%s/%.*s/%s", top, STR_ARG(j->name), s->file);
}

static int write_all(int fd, struct str text)
{
    while (text.n) {
        ssize_t n = write(fd, text.p, text.n);
        if (n < 0 && errno != EINTR)
            return ERR_IO;
        text = str_skip(text, n > 0 ? (size_t)n : 0);
    }
    return 0;
}

/* Opened for each block: there may be more journals than a process may have files. */
static int write_out(struct split_tree *s, struct split_journal *j, const char **why)
{
    struct arena_mark mark = arena_mark(s->arena);
    const char *path = path_of(s, s->aside, j);
    int fd = j->waiting.len ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : -2;
    if (fd == -2)
        return 0;
    int err = fd < 0 || write_all(fd, buf_str(&j->waiting)) ? ERR_IO : 0;
    if (fd >= 0 && close(fd) < 0)
        err = ERR_IO;
    if (err)
        return fail(s, path, why);
    arena_reset(s->arena, mark);
    s->waiting -= j->waiting.len;
    buf_release(&j->waiting);
    buf_init(&j->waiting);
    return 0;
}

static int write_out_all(struct split_tree *s, const char **why)
{
    size_t at = 0;
    struct str key;
    void *j;
    int err = 0;
    while (!err && map_next(s->by_name, &at, &key, &j))
        err = write_out(s, j, why);
    return err;
}

/* --- entries --- */

static int find(struct split_tree *s, struct str name, struct split_journal **out, const char **why)
{
    struct str key = split_fold(s->arena, name);
    *out = map_get(s->by_name, key);
    if (*out)
        return 0;
    if (map_count(s->by_name) == SPLIT_JOURNALS_MAX) {
        *why = arena_printf(s->arena, "more than %d journals", SPLIT_JOURNALS_MAX);
        return ERR_LIMIT;
    }
    struct split_journal *j = check_memory(calloc(1, sizeof *j));
    j->name = str_from(check_memory(strndup(name.p, name.n)), name.n);
    j->macros = map_new();
    buf_init(&j->waiting);
    map_set(s->by_name, key, j);
    *out = j;
    return make_folder(s, arena_printf(s->arena, "%s/%.*s", s->aside, STR_ARG(j->name)), why);
}

static void add_years(struct split_journal *j, struct str text)
{
    int64_t year;
    if (!str_to_i64(text, &year) || year < 1000 || year > 9999)
        return;
    if (!j->first_year || year < j->first_year)
        j->first_year = year;
    if (year > j->last_year)
        j->last_year = year;
}

/* An @string goes in front of the first entry that needs it: again, if it was defined anew. */
static void add_text(struct split_journal *j, const struct bibtex_entry *e)
{
    for (size_t i = 0; i < e->macro_count; i++) {
        const struct bibtex_macro *m = e->macros[i];
        if (!map_add(j->macros, str_from((const char *)&m, sizeof m)))
            continue;
        buf_add_str(&j->waiting, m->raw);
        buf_add_lit(&j->waiting, "\n\n");
    }
    buf_add_str(&j->waiting, e->raw);
    buf_add_lit(&j->waiting, "\n\n");
}

int split_tree_add(struct split_tree *s, struct str name, const struct bibtex_entry *e,
                   const char **why)
{
    struct split_journal *j;
    int err = find(s, name, &j, why);
    if (err)
        return err;
    size_t before = j->waiting.len;
    add_text(j, e);
    s->waiting += j->waiting.len - before;
    j->entries++;
    if (e->year.p)
        add_years(j, e->year);
    if (s->waiting >= WAITING_BYTES)
        return write_out_all(s, why);
    return j->waiting.len >= FILE_BYTES ? write_out(s, j, why) : 0;
}

/* --- the end --- */

static int refuse_existing(struct split_tree *s, const char *top, const char **why)
{
    size_t at = 0;
    struct str key;
    void *j;
    while (map_next(s->by_name, &at, &key, &j)) {
        const char *path = path_of(s, top, j);
        if (access(path, F_OK) < 0)
            continue;
        *why = arena_printf(s->arena, "%s is there already: nothing was written", path);
        return ERR_EXISTS;
    }
    return 0;
}

static int move(struct split_tree *s, const char *top, const struct split_journal *j,
                const char **why)
{
    const char *to = path_of(s, top, j);
    int err = make_folder(s, arena_printf(s->arena, "%s/%.*s", top, STR_ARG(j->name)), why);
    if (!err && link(path_of(s, s->aside, j), to) < 0) /* unlike rename, replaces nothing */
        err = fail(s, to, why);
    return err;
}

int split_tree_commit(struct split_tree *s, const char **why)
{
    const char *top = arena_printf(s->arena, "%s/Data", s->out);
    size_t at = 0;
    struct str key;
    void *j;
    int err = write_out_all(s, why);
    if (!err)
        err = refuse_existing(s, top, why);
    if (!err)
        err = make_folder(s, top, why);
    while (!err && map_next(s->by_name, &at, &key, &j))
        err = move(s, top, j, why);
    return err;
}

void split_tree_close(struct split_tree *s)
{
    size_t at = 0;
    struct str key;
    void *value;
    while (map_next(s->by_name, &at, &key, &value)) {
        struct split_journal *j = value;
        map_free(j->macros);
        buf_release(&j->waiting);
        free((char *)(uintptr_t)j->name.p);
        free(j);
    }
    map_free(s->by_name);
    datadir_remove(s->aside);
    if (s->made_out)
        rmdir(s->out); /* only if nothing is in it */
}
