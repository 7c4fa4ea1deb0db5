/* api_list. An existing key keeps its row, with the limits and switches that an operator has
 * set. */
#include "tool/db/init.h"

static int run(struct task *t, struct sql *c, void *arg)
{
    struct init *in = arg;
    const struct init_folder *f = &in->folder;
    struct sql_value *cells = ARENA_ARRAY(task_arena(t), struct sql_value, 2 * f->key_count);
    struct map *known = map_new();
    size_t n = 0;
    int err = init_read_set(t, c, "SELECT api_key FROM api_list WHERE service = 'chat'", known);
    for (size_t i = 0; !err && i < f->key_count; i++) {
        if (map_get(known, f->keys[i].key))
            continue;
        cells[2 * n] = sql_text(f->keys[i].key);
        cells[2 * n + 1] = sql_text(f->keys[i].name);
        n++;
    }
    map_free(known);
    if (!err)
        err = sql_bulk(t, c, "INSERT INTO api_list (api_key, api_name) VALUES", "", 2, n, cells,
                       NULL);
    if (!err)
        in->report->totals.keys_new = (int64_t)n;
    return err;
}

int init_keys(struct task *t, struct init *in)
{
    return in->folder.key_count ? sql_tx(t, in->db->sql, run, in) : 0;
}
