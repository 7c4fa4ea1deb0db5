#include "tool/sim/sim_verdict.h"

#include "tool/sim/sim_labels.h"
#include "tool/sim/sim_words.h"

#define WORD_BYTES_MAX 100 /* of the reason's 200 characters */

size_t sim_label_bytes(struct str line, struct str label)
{
    if (line.n <= label.n || !str_ieq(str_from(line.p, label.n), label))
        return 0;
    size_t n = label.n;
    while (n < line.n && line.p[n] == ' ')
        n++;
    struct str rest = str_skip(line, n);
    return str_starts(rest, STR(":")) ? n + 1 : str_starts(rest, STR("：")) ? n + STR("：").n : 0;
}

static const struct {
    const char *label;
    size_t field;
} fields[] = {
    {"question", offsetof(struct sim_prompt, question)},
    {"title", offsetof(struct sim_prompt, title)},
    {"abstract", offsetof(struct sim_prompt, abstract)},
    {"doi", offsetof(struct sim_prompt, doi)},
    {"问题", offsetof(struct sim_prompt, question)},
    {"标题", offsetof(struct sim_prompt, title)},
    {"摘要", offsetof(struct sim_prompt, abstract)},
};

/* The field whose label the line begins with, NULL if none; *n is the label's length. */
static struct str *field_of(struct sim_prompt *p, struct str line, size_t *n)
{
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if ((*n = sim_label_bytes(line, str_of(fields[i].label))))
            return (struct str *)(uintptr_t)((char *)p + fields[i].field);
    return NULL;
}

/* A field lasts until the next label, an empty line or the end. */
void sim_prompt_read(struct sim_prompt *out, struct str message)
{
    struct str rest = message;
    struct str *open = NULL; /* the field that the lines now belong to */
    const char *start = NULL, *end = NULL;
    *out = (struct sim_prompt){.question = STR_NULL};
    while (rest.p) {
        struct str line = str_cut(&rest, '\n');
        size_t label_n = 0;
        struct str *field = field_of(out, line, &label_n);
        if (field && (field->p || field == open))
            field = NULL; /* a second "Title: …" is text of the paper */
        if (open && (field || sim_trim(line).n == 0)) {
            *open = sim_trim(str_from(start, (size_t)(end - start)));
            open = NULL;
        }
        if (field) {
            open = field;
            start = line.p + label_n;
        }
        end = line.p + line.n;
    }
    if (open)
        *open = sim_trim(str_from(start, (size_t)(end - start)));
}

static bool judge_by_label(struct arena *a, const struct sim_prompt *p, const struct map *labels,
                           struct sim_verdict *out)
{
    bool relevant;
    if (!labels || !p->doi.p || !sim_labels_get(a, labels, p->doi, &relevant))
        return false;
    *out = (struct sim_verdict){.relevant = relevant, .labelled = true};
    return true;
}

bool sim_verdict(struct arena *a, const struct sim_prompt *p, const struct map *labels,
                 struct sim_verdict *out)
{
    if (judge_by_label(a, p, labels, out))
        return true;
    if (!p->question.p || (!p->title.p && !p->abstract.p))
        return false;
    struct sim_word_set found;
    if (!p->words)
        sim_word_set_init(a, &found, p->question);
    const struct sim_word_set *words = p->words ? p->words : &found;
    *out = (struct sim_verdict){0};
    out->in_title = sim_word_set_match(words, p->title, &out->word);
    out->relevant = out->in_title || sim_word_set_match(words, p->abstract, &out->word);
    return true;
}

void sim_verdict_write(const struct sim_verdict *v, struct buf *out)
{
    buf_add_str(out, v->relevant ? STR("{\"relevant\": true, \"reason\": \"")
                                 : STR("{\"relevant\": false, \"reason\": \""));
    if (v->labelled) {
        buf_add_lit(out, "So it is labelled.");
    } else if (v->relevant) {
        buf_add_str(out,
                    v->in_title ? STR("The title mentions '") : STR("The abstract mentions '"));
        /* Words have nothing that JSON escapes. */
        buf_add_str(out, sim_clip(v->word, WORD_BYTES_MAX));
        buf_add_lit(out, "', which the question asks about.");
    } else {
        buf_add_lit(out, "Neither title nor abstract mentions what the question asks about.");
    }
    buf_add_lit(out, "\"}");
}
