#include "engine/api/choice.h"

#include "base/map.h"

/* The first name that is there twice; NULL: none is. */
static const struct str *repeated(const struct str *names, size_t count)
{
    const struct str *twice = NULL;
    struct map *seen = map_new();
    for (size_t i = 0; i < count && !twice; i++)
        if (map_set(seen, names[i], (void *)(uintptr_t)&names[i]))
            twice = &names[i];
    map_free(seen);
    return twice;
}

int api_choice(struct task *t, struct api_call *c, struct catalog_choice *out)
{
    out->journal_count = api_texts(t, c, "journals", &out->journals);
    api_int(c, "year_from", &out->year_from);
    api_int(c, "year_to", &out->year_to);
    if (out->year_to < out->year_from)
        return api_refuse(t, c, "year_to", "must not be before year_from");
    const struct str *twice = repeated(out->journals, out->journal_count);
    if (twice)
        return api_refuse(t, c, "journals", "\"%.*s\" is named twice", STR_ARG(*twice));
    return 0;
}

int api_choice_unknown(struct task *t, struct api_call *c, struct str journal)
{
    return api_refuse(t, c, "journals", "there is no journal \"%.*s\"", STR_ARG(journal));
}
