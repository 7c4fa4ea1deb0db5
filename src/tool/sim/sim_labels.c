#include "tool/sim/sim_labels.h"

#include <stdlib.h>

#include "base/map.h"

struct sim_labels {
    struct map *by_doi; /* to &relevant or &irrelevant */
};

static char relevant_mark, irrelevant_mark; /* only their addresses matter */

static struct str lower(struct arena *a, struct str s)
{
    char *p = str_z(a, s);
    for (size_t i = 0; i < s.n; i++)
        if (p[i] >= 'A' && p[i] <= 'Z')
            p[i] = (char)(p[i] | 0x20);
    return str_from(p, s.n);
}

static bool quoted(struct str s)
{
    return s.n >= 2 && s.p[0] == '"' && s.p[s.n - 1] == '"';
}

/* The column without its quotes; a quote inside is written twice. */
static struct str unquote(struct arena *a, struct str s)
{
    if (!quoted(s))
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

static struct str trim_line(struct str line)
{
    line = str_trim(line);
    if (str_ends(line, STR("\r")))
        line.n--;
    return str_trim(line);
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
static bool add_line(struct arena *a, struct sim_labels *l, struct str line)
{
    line = trim_line(line);
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
    map_set(l->by_doi, lower(a, doi), yes ? &relevant_mark : &irrelevant_mark);
    return true;
}

struct sim_labels *sim_labels_new(struct arena *a, struct str text, const char **why)
{
    struct sim_labels *l = malloc(sizeof(*l));
    if (!l)
        check_no_memory();
    l->by_doi = map_new();
    if (str_starts(text, STR("\xEF\xBB\xBF")))
        text = str_from(text.p + 3, text.n - 3);

    struct arena_mark mark = arena_mark(a);
    for (size_t number = 1; text.p; number++) {
        if (!add_line(a, l, str_cut(&text, '\n'))) {
            sim_labels_free(l);
            *why = arena_printf(a, "line %zu: expected `doi,0` or `doi,1`", number);
            return NULL;
        }
        arena_reset(a, mark);
    }
    return l;
}

void sim_labels_free(struct sim_labels *l)
{
    if (!l)
        return;
    map_free(l->by_doi);
    free(l);
}

size_t sim_labels_count(const struct sim_labels *l)
{
    return map_count(l->by_doi);
}

bool sim_labels_get(struct arena *a, const struct sim_labels *l, struct str doi, bool *relevant)
{
    const void *mark = map_get(l->by_doi, lower(a, doi));
    if (!mark)
        return false;
    *relevant = mark == &relevant_mark;
    return true;
}
