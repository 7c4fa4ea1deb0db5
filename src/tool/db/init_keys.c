/* api_list. A key that is there already keeps its row: limits and switches are the operator's. */
#include "base/map.h"
#include "tool/db/init.h"

struct job {
    const struct init_folder *folder;
    uint64_t added;
};

static int read_known(struct task *t, struct sql *c, struct map *known)
{
    struct sql_rows r;
    int err = sql_on(t, c, &r, "SELECT api_key FROM api_list WHERE service = 'chat'");
    for (size_t i = 0; !err && i < r.count; i++)
        map_set(known, r.cells[i].s, known); /* any value will do */
    return err;
}

static int add_missing(struct task *t, struct sql *c, struct job *j, const struct map *known)
{
    const struct init_folder *f = j->folder;
    struct sql_value *cells = ARENA_ARRAY(task_arena(t), struct sql_value, 2 * f->key_count);
    size_t n = 0;
    for (size_t i = 0; i < f->key_count; i++) {
        if (map_get(known, f->keys[i].key))
            continue;
        cells[2 * n] = sql_text(f->keys[i].key);
        cells[2 * n + 1] = sql_text(f->keys[i].name);
        n++;
    }
    j->added = n;
    return n ? sql_bulk(t, c, "INSERT INTO api_list (api_key, api_name) VALUES", "", 2, n, cells,
                        NULL)
             : 0;
}

static int run(struct task *t, struct sql *c, void *arg)
{
    struct map *known = map_new();
    int err = read_known(t, c, known);
    if (!err)
        err = add_missing(t, c, arg, known);
    map_free(known);
    return err;
}

int init_keys(struct task *t, struct init *in)
{
    struct job j = {.folder = &in->folder};
    if (j.folder->key_count == 0)
        return 0;
    int err = sql_tx(t, in->db->sql, run, &j);
    if (!err)
        init_report_totals(in->report)->keys_new = (int64_t)j.added;
    return err;
}
