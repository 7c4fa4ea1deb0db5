/* How a screening run is split, and which papers a unit has (SCR-3).
 *
 * A unit is a block, "meta:<Journal>:<Year>", or for larger ones a slice of about APP_UNIT_PAPERS
 * papers, "meta:<Journal>:<Year>#<n>/<of>". The slice of a paper follows from its DOI and from how
 * many papers the block had at the load that the run is frozen at: whenever the run is split, it is
 * split in the same way. */
#include "app/screen/application.h"

#include "base/map.h"
#include "engine/crew/judged.h"
#include "engine/papers/block.h"
#include "engine/setup/node.h"
#include "engine/store/keys.h"

#define POINT_CENTS 100

/* A run that was submitted before loads were numbered is over what there was when numbering began,
 * which is load 0 (schema/0014). */
static int64_t load_of(const struct app_run *run)
{
    int64_t load;
    return json_int(json_get(run->params, "load"), &load) ? load : 0;
}

static int read_choice(struct task *t, const struct app_run *run, struct blocks_choice *out)
{
    const struct json *journals = json_get(run->params, "journals");
    struct str *names =
        ARENA_ARRAY(task_arena(t), struct str, (journals ? journals->count : 0) + 1);
    struct blocks_choice c = {.journals = names, .load = load_of(run)};
    json_each (j, journals) {
        struct str name = json_str(json_get(j, "name"));
        if (name.p)
            names[c.journal_count++] = name;
    }
    if (c.journal_count == 0 || !json_int(json_get(run->params, "year_from"), &c.year_from) ||
        !json_int(json_get(run->params, "year_to"), &c.year_to))
        return task_fail(t, ERR_INVALID, "its journals and years cannot be read");
    *out = c;
    return 0;
}

static size_t slices_of(const struct block_name *b)
{
    return b->version.papers <= APP_UNIT_PAPERS
               ? 1
               : (size_t)((b->version.papers + APP_UNIT_PAPERS - 1) / APP_UNIT_PAPERS);
}

static int split(struct task *t, const struct node *n, const struct app_run *run,
                 struct str **units, size_t *count)
{
    struct arena *a = task_arena(t);
    struct blocks_choice c = {.journal_count = 0};
    struct block_name *blocks;
    size_t block_count, total = 0;
    int err = read_choice(t, run, &c);
    if (!err)
        err = blocks_list(t, n->blocks, &c, &blocks, &block_count);
    if (err)
        return err;
    for (size_t i = 0; i < block_count; i++)
        total += slices_of(&blocks[i]);
    *units = ARENA_ARRAY(a, struct str, total + 1);
    *count = 0;
    for (size_t i = 0; i < block_count; i++) {
        struct str key = key_block_name(a, blocks[i].journal, blocks[i].year);
        size_t slices = slices_of(&blocks[i]);
        for (size_t k = 0; k < slices; k++)
            (*units)[(*count)++] =
                slices == 1 ? key : str_printf(a, "%.*s#%zu/%zu", STR_ARG(key), k, slices);
    }
    return 0;
}

/* "3/7": the fourth of seven. */
static bool read_slice(struct str slice, uint64_t *number, uint64_t *of)
{
    int64_t x = 0, y = 1;
    struct str rest = slice;
    if (slice.p && (!str_to_i64(str_cut(&rest, '/'), &x) || !rest.p || !str_to_i64(rest, &y)))
        return false;
    *number = (uint64_t)x;
    *of = (uint64_t)y;
    return x >= 0 && x < y;
}

static int papers(struct task *t, const struct node *n, const struct app_run *run, struct str unit,
                  struct app_paper **out, size_t *count)
{
    static const uint8_t hash_key[16];
    struct str journal, slice, *dois;
    int64_t year;
    uint64_t number, of;
    size_t doi_count = 0;
    if (!key_block_read(unit, &journal, &year, &slice) || !read_slice(slice, &number, &of))
        return task_fail(t, ERR_PROTO, "%.*s is no unit", STR_ARG(unit));
    int64_t price = app_price(run, journal);
    if (price < 0)
        return task_fail(t, ERR_PROTO, "%.*s is not in the run", STR_ARG(journal));
    int err = block_dois(t, n->blocks, journal, year, load_of(run), &dois, &doi_count);
    if (err)
        return err;
    *out = ARENA_ARRAY(task_arena(t), struct app_paper, doi_count + 1);
    *count = 0;
    for (size_t i = 0; i < doi_count; i++)
        if (of == 1 || siphash(hash_key, dois[i]) % of == number)
            (*out)[(*count)++] = (struct app_paper){
                .doi = dois[i], .journal = journal, .year = year, .cents = price * POINT_CENTS};
    return 0;
}

const struct application screen_application = {"screen", split, papers, judged_open, judged_paper};
