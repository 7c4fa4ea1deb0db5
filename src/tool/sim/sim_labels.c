#include "tool/sim/sim_labels.h"

#include "tool/sim/sim_words.h"

/* The column without its quotes; a quote inside is written twice. */
static struct str unquote(struct arena *a, struct str s)
{
    if (s.n < 2 || s.p[0] != '"' || s.p[s.n - 1] != '"')
        return s;
    char *p = arena_alloc(a, s.n);
    size_t n = 0;
    for (size_t i = 1; i < s.n - 1; i++) {
        if (s.p[i] == '"' && i + 1 < s.n - 1 && s.p[i + 1] == '"')
            i++;
        p[n++] = s.p[i];
    }
    return str_from(p, n);
}

/* Splits at the last comma. False when there is none or a column is empty. */
static bool split(struct arena *a, struct str line, struct str *doi, struct str *label)
{
    const char *comma = line.n ? memrchr(line.p, ',', line.n) : NULL;
    if (!comma)
        return false;
    size_t at = (size_t)(comma - line.p);
    *doi = unquote(a, str_trim(str_from(line.p, at)));
    *label = unquote(a, str_trim(str_from(comma + 1, line.n - at - 1)));
    return doi->n > 0 && label->n > 0;
}

/* Takes one line. False when it is wrong. */
static bool add_line(struct arena *a, struct map *labels, struct str line)
{
    line = sim_trim(line);
    if (line.n == 0 || line.p[0] == '#')
        return true;
    struct str doi, label;
    if (!split(a, line, &doi, &label))
        return false;
    if (str_ieq(doi, STR("doi")))
        return true;
    bool yes = str_eq(label, STR("1"));
    if (!yes && !str_eq(label, STR("0")))
        return false;
    map_set_int(labels, str_lower(a, doi), yes);
    return true;
}

struct map *sim_labels_read(struct arena *a, struct str text, const char **why)
{
    struct map *labels = map_new();
    if (str_starts(text, STR("\xEF\xBB\xBF")))
        text = str_skip(text, 3);
    struct arena_mark mark = arena_mark(a);
    for (size_t number = 1; text.p; number++) {
        if (!add_line(a, labels, str_cut(&text, '\n'))) {
            map_free(labels);
            *why = arena_printf(a, "line %zu: expected `doi,0` or `doi,1`", number);
            return NULL;
        }
        arena_reset(a, mark);
    }
    return labels;
}

bool sim_labels_get(struct arena *a, const struct map *labels, struct str doi, bool *relevant)
{
    int64_t label;
    if (!map_get_int(labels, str_lower(a, doi), &label))
        return false;
    *relevant = label;
    return true;
}
