#include "tool/sim/sim_verdict.h"

#include "tool/sim/sim_labels.h"
#include "tool/sim/sim_words.h"

#define WORD_BYTES_MAX 100 /* of the reason's 200 characters */

/* The label's length if the line begins with it, else 0. */
static size_t label_bytes(struct str line, struct str label)
{
    if (line.n <= label.n || !str_ieq(str_from(line.p, label.n), label))
        return 0;
    struct str rest = str_from(line.p + label.n, line.n - label.n);
    size_t blanks = 0;
    while (blanks < rest.n && rest.p[blanks] == ' ')
        blanks++;
    rest = str_from(rest.p + blanks, rest.n - blanks);
    if (str_starts(rest, STR(":")))
        return label.n + blanks + 1;
    if (str_starts(rest, STR("：")))
        return label.n + blanks + sizeof("：") - 1;
    return 0;
}

/* The field whose label the line begins with, NULL if none; *n is the label's length. */
static struct str *field_of(struct sim_prompt *p, struct str line, size_t *n)
{
    switch (line.n ? (unsigned char)line.p[0] : 0) {
    case 'Q':
    case 'q':
        return (*n = label_bytes(line, STR("question"))) ? &p->question : NULL;
    case 'T':
    case 't':
        return (*n = label_bytes(line, STR("title"))) ? &p->title : NULL;
    case 'A':
    case 'a':
        return (*n = label_bytes(line, STR("abstract"))) ? &p->abstract : NULL;
    case 'D':
    case 'd':
        return (*n = label_bytes(line, STR("doi"))) ? &p->doi : NULL;
    case 0xE9:
        return (*n = label_bytes(line, STR("问题"))) ? &p->question : NULL;
    case 0xE6:
        if ((*n = label_bytes(line, STR("标题"))))
            return &p->title;
        return (*n = label_bytes(line, STR("摘要"))) ? &p->abstract : NULL;
    default:
        return NULL;
    }
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static struct str trim(struct str s)
{
    while (s.n && is_space(s.p[0])) {
        s.p++;
        s.n--;
    }
    while (s.n && is_space(s.p[s.n - 1]))
        s.n--;
    return s;
}

static bool is_blank(struct str line)
{
    return trim(line).n == 0;
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
            field = NULL; /* a paper that says "Title: …" once more is only talking */
        if (open && (field || is_blank(line))) {
            *open = trim(str_from(start, (size_t)(end - start)));
            open = NULL;
        }
        if (field) {
            open = field;
            start = line.p + label_n;
        }
        end = line.p + line.n;
    }
    if (open)
        *open = trim(str_from(start, (size_t)(end - start)));
}

static bool judge_by_label(struct arena *a, const struct sim_prompt *p,
                           const struct sim_labels *labels, struct sim_verdict *out)
{
    bool relevant;
    if (!labels || !p->doi.p || !sim_labels_get(a, labels, p->doi, &relevant))
        return false;
    *out = (struct sim_verdict){.relevant = relevant, .labelled = true};
    return true;
}

bool sim_verdict(struct arena *a, const struct sim_prompt *p, const struct sim_labels *labels,
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

/* As much of the word as fits, whole characters. Words have nothing that JSON escapes. */
static void add_word(struct buf *out, struct str word)
{
    size_t n = word.n;
    if (n > WORD_BYTES_MAX) {
        n = WORD_BYTES_MAX;
        while (((unsigned char)word.p[n] & 0xC0) == 0x80)
            n--;
    }
    buf_add(out, word.p, n);
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
        add_word(out, v->word);
        buf_add_lit(out, "', which the question asks about.");
    } else {
        buf_add_lit(out, "Neither title nor abstract mentions what the question asks about.");
    }
    buf_add_lit(out, "\"}");
}
