#include "engine/api/choice.h"

#include "base/map.h"
#include "engine/judge/prompt.h"
#include "engine/search/neighbours.h"

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

static int take_nearest(struct task *t, struct api_call *c, struct run_nearest *out)
{
    const struct json *j = json_get(c->body, "nearest");
    if (!j || j->type != JSON_OBJECT)
        return 0;
    check(json_int(json_get(j, "n"), &out->papers)); /* as the table says */
    out->text = run_question(json_str(json_get(j, "q")));
    return out->text.n ? 0 : api_refuse(t, c, "nearest.q", "must not be empty");
}

int api_choice(struct task *t, struct api_call *c, struct api_choice *out)
{
    struct catalog_choice *choice = &out->choice;
    *out = (struct api_choice){.nearest.text = STR_NULL};
    choice->journal_count = api_texts(t, c, "journals", &choice->journals);
    api_int(c, "year_from", &choice->year_from);
    api_int(c, "year_to", &choice->year_to);
    int err = take_nearest(t, c, &out->nearest);
    if (err)
        return err;
    if (!choice->journal_count && !out->nearest.text.p)
        return api_refuse(t, c, "journals", "is missing");
    if (choice->year_to < choice->year_from)
        return api_refuse(t, c, "year_to", "must not be before year_from");
    const struct str *twice = repeated(choice->journals, choice->journal_count);
    if (twice)
        return api_refuse(t, c, "journals", "\"%.*s\" is named twice", STR_ARG(*twice));
    return 0;
}

const struct api_field api_nearest_fields[] = {
    {"q", API_TEXT, .least = 1, .most = PROMPT_QUESTION_CHARS_MAX,
     .about = "that text: a question, or an abstract"},
    {"n", API_INT, .least = 1, .most = NEIGHBOURS_MAX, .about = "how many of them, at most"},
    API_END,
};

int api_choice_unknown(struct task *t, struct api_call *c, struct str journal)
{
    return api_refuse(t, c, "journals", "there is no journal \"%.*s\"", STR_ARG(journal));
}
