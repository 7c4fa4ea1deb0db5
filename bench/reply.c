/* What an AI answers about a document, checked against its template: bench_reply ROUNDS prints
 * microseconds a reply as JSON: parsed and checked without the search for quotes, with it in a
 * document of 40 KB, and written as it is stored. */
#include <stdio.h>
#include <stdlib.h>

#include "app/extract/fields/reply.h"
#include "base/time.h"
#include "corpus/quote.h"

#define REPLIES        50 /* in a round: short, so that most are not interrupted */
#define DOCUMENT_BYTES 40000

struct bench {
    struct arena kept, scratch;
    struct extract_template template;
    struct quote_text *document;
    struct str reply;
    struct buf page;
    int64_t sum; /* so that nothing is left out */
};

/* Sentences of a made-up trial, each with a number of its own. */
static void add_sentence(struct buf *out, size_t i)
{
    buf_printf(out,
               "In group %zu of the trial patients took %zu.5 mg of the drug each day for "
               "twelve weeks, as it was planned in the protocol. ",
               i, i);
}

static void make_document(struct bench *b)
{
    struct buf text;
    buf_init(&text);
    for (size_t i = 1; text.len < DOCUMENT_BYTES; i++)
        add_sentence(&text, i);
    b->document = quote_text_new(&b->kept, str_dup(&b->kept, buf_str(&text)));
    buf_release(&text);
}

static void make_template(struct bench *b, struct str fields)
{
    const char *complaint;
    int err = extract_template_parse(&b->kept, fields, &b->template, &complaint);
    check(err == 0);
}

static const char *value_of(const struct extract_field *f, size_t i)
{
    static char number[32];
    snprintf(number, sizeof number, "%zu.5", 10 * i);
    switch (f->of) {
    case EXTRACT_NUMBER:
        return number;
    case EXTRACT_INTEGER:
        return "120";
    case EXTRACT_BOOLEAN:
        return "true";
    case EXTRACT_DATE:
        return "\"2019-05-17\"";
    default:
        return "\"twelve weeks of treatment, each day\"";
    }
}

static void add_item(struct buf *out, const struct extract_field *f, size_t i)
{
    buf_add_lit(out, "{\"value\": ");
    if (f->of == EXTRACT_CHOICE)
        buf_printf(out, "\"%.*s\"", STR_ARG(f->choices[f->choice_count - 1]));
    else
        buf_add_str(out, str_of(value_of(f, i)));
    buf_add_lit(out, ", \"quote\": \"");
    add_sentence(out, 10 * i);
    buf_add_lit(out, "\"}");
}

/* As models write it: indented, a quote for each value. */
static void make_reply(struct bench *b)
{
    struct buf out;
    buf_init(&out);
    for (size_t i = 0; i < b->template.count; i++) {
        const struct extract_field *f = &b->template.fields[i];
        buf_printf(&out, "%s  \"%.*s\": ", i ? ",\n" : "{\n", STR_ARG(f->name));
        if (f->type == EXTRACT_LIST)
            buf_add_char(&out, '[');
        add_item(&out, f, i + 1);
        if (f->type == EXTRACT_LIST)
            buf_add_char(&out, ']');
    }
    buf_add_lit(&out, "\n}");
    b->reply = str_dup(&b->kept, buf_str(&out));
    buf_release(&out);
}

enum step { PARSE, CHECK, QUOTES, STORE };

static void store(struct bench *b, const struct extract_values *v)
{
    struct json_writer w;
    buf_clear(&b->page);
    jw_init(&w, &b->page);
    extract_values_put(&w, &b->template, v);
    b->sum += (int64_t)b->page.len;
}

static void read_reply(struct bench *b, enum step step, struct extract_values *v)
{
    struct extract_reading r = {&b->template, step == QUOTES ? b->document : NULL, 0, true};
    const struct json *j;
    const char *complaint;
    arena_reset(&b->scratch, (struct arena_mark){0});
    int err = step == PARSE ? json_parse(&b->scratch, b->reply, &j, NULL)
                            : extract_reply_read(&b->scratch, &r, b->reply, v, &complaint);
    check(err == 0);
    if (step != PARSE)
        b->sum += (int64_t)v->fields[0].count + v->fields[0].items->verified;
}

static void go(struct bench *b, enum step step)
{
    struct extract_values v;
    read_reply(b, step == STORE ? QUOTES : step, &v);
    for (int i = 0; i < REPLIES; i++)
        if (step == STORE)
            store(b, &v);
        else
            read_reply(b, step, &v);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median of all rounds, in microseconds a reply. */
static double measure(struct bench *b, int64_t rounds, enum step step)
{
    double *us = check_memory(malloc((size_t)rounds * sizeof *us));
    go(b, step);
    for (int64_t i = 0; i < rounds; i++) {
        int64_t began = time_mono_us();
        go(b, step);
        us[i] = (double)(time_mono_us() - began) / REPLIES;
    }
    qsort(us, (size_t)rounds, sizeof *us, compare);
    double median = us[rounds / 2];
    free(us);
    return median;
}

int main(int argc, char **argv)
{
    static struct bench b;
    int64_t rounds;
    if (argc != 2 || !str_to_i64(str_of(argv[1]), &rounds) || rounds < 1) {
        fprintf(stderr, "usage: %s ROUNDS\n", argv[0]);
        return 2;
    }
    make_document(&b);
    make_template(&b, extract_ready(STR("trial"))->en.fields);
    make_reply(&b);
    double parsed = measure(&b, rounds, PARSE), checked = measure(&b, rounds, CHECK),
           found = measure(&b, rounds, QUOTES), stored = measure(&b, rounds, STORE);
    printf("{\"bench\": \"reply\", \"bytes\": %zu, \"fields\": %zu, \"parse_us\": %.2f, "
           "\"check_us\": %.2f, \"quotes_us\": %.2f, \"store_us\": %.2f}\n",
           b.reply.n, b.template.count, parsed, checked, found - checked, stored);
    buf_release(&b.page);
    arena_release(&b.scratch);
    arena_release(&b.kept);
    return b.sum == 0;
}
