#include "tool/db/init_read.h"

#include "tool/db/init.h"

void init_read_init(struct init_read *r)
{
    *r = (struct init_read){
        .files = map_new(), .known = map_new(), .whole = map_new(), .damaged = map_new()};
}

void init_read_release(struct init_read *r)
{
    map_free(r->files);
    map_free(r->known);
    map_free(r->whole);
    map_free(r->damaged);
    init_seen_release(&r->entries);
}

struct str init_file_key(struct arena *a, struct str journal, struct str name)
{
    return str_printf(a, "%.*s/%.*s", STR_ARG(journal), STR_ARG(name)); /* no name has a '/' */
}

void init_read_note(struct init_read *r, struct arena *a, struct str file, struct str doi)
{
    if (map_get(r->known, file))
        init_seen_add(&r->entries, init_pair_key(a, file, doi));
}

bool init_read_misses(const struct init_read *r, struct arena *a, struct str file, struct str doi)
{
    return map_get(r->whole, file) && !init_seen_has(&r->entries, init_pair_key(a, file, doi));
}

bool init_read_lacks(const struct init_read *r, struct arena *a, struct str file, struct str doi)
{
    return init_read_misses(r, a, file, doi) && !map_get(r->damaged, file);
}
