/* api_list. An existing key keeps its row, with the limits and switches that an operator has
 * set. */
#include "tool/db/init.h"

struct job {
    const struct init_folder *folder;
    uint64_t added;
};

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
    return sql_bulk(t, c, "INSERT INTO api_list (api_key, api_name) VALUES", "", 2, n, cells, NULL);
}

static int run(struct task *t, struct sql *c, void *arg)
{
    struct map *known = map_new();
    int err = init_read_set(t, c, "SELECT api_key FROM api_list", known);
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
        in->report->totals.keys_new = (int64_t)j.added;
    return err;
}
