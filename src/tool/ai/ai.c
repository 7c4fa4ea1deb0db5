/* millrace ai: asks the AI service about one paper, and says what is wrong. */
#include <stdio.h>

#include "corpus/doi.h"
#include "corpus/paper.h"
#include "engine/ai/service.h"
#include "tool/ai/ai_ask.h"
#include "tool/menu.h"
#include "tool/opt.h"
#include "tool/tool.h"

#define STATEMENT_MS 30000

static const char about[] =
    "Asks the AI service about one paper, once, with the settings and the first active key of the\n"
    "server: shows the request (keys masked), the reply, the verdict, tokens and time, or says "
    "what\n"
    "is wrong: DNS, connection, TLS, key, model, parameters. Exit status 0: a verdict was read.\n"
    "With --embedding it asks the embedding service for the vector of the paper's title.\n"
    "The call is not charged to anybody, and is not counted in the limits of the key:\n"
    "\n"
    "  millrace ai test\n"
    "  millrace ai test --doi 10.1038/nature12373\n"
    "  millrace ai test --embedding";

static const struct prompt_paper sample = {
    STR("10.1000/182"), STR("Nickel-iron catalysts for water splitting in alkaline electrolytes"),
    STR("Splitting water into hydrogen and oxygen needs catalysts that are cheap and last. We "
        "report layered nickel-iron hydroxides that evolve oxygen at an overpotential of 240 mV "
        "and "
        "lose less than 2 % of their activity in 500 hours.")};

struct options {
    const struct command *command;
    const char *config, *doi;
    bool embedding;
};

/* The first of the keys that a server would use. */
static int find_key(struct task *t, const struct db *d, const char *service, struct ai_key *out)
{
    struct sql_rows r;
    int err = sql_call(t, d->sql, &r,
                       "SELECT api_index, api_key, COALESCE(api_name, '') FROM api_list"
                       " WHERE service = ? AND is_active = 1 ORDER BY api_index LIMIT 1",
                       sql_text(str_of(service)));
    if (err)
        return err;
    if (r.count == 0)
        return task_fail(t, ERR_NOT_FOUND,
                         "there is no active key for %s: add one on the admins' pages, or switch "
                         "one on",
                         ai_service_words(service));
    const struct sql_value *row = sql_row(&r, 0);
    *out = (struct ai_key){row[0].i, row[1].s, row[2].s};
    return 0;
}

static int find_paper(struct task *t, const struct db *d, const char *text,
                      struct prompt_paper *out)
{
    struct arena *a = task_arena(t);
    struct str doi = str_of(text);
    struct sql_rows r;
    struct paper paper;
    (void)doi_normal(a, doi, &doi); /* a made-up one is none */
    int err =
        sql_call(t, d->sql, &r, "SELECT DOI, Bib FROM paperinfo WHERE DOI = ?", sql_text(doi));
    if (!err && r.count == 0)
        return task_fail(t, ERR_NOT_FOUND, "there is no paper %.*s", STR_ARG(doi));
    if (!err)
        err = paper_read_json(a, sql_row(&r, 0)[0].s, sql_row(&r, 0)[1].s, &paper);
    if (err)
        return err;
    struct bibtex *reader = bibtex_new(NULL, NULL);
    *out = (struct prompt_paper){.doi = paper.doi};
    err = paper_read_shown(a, reader, paper_bibtex(a, &paper), &out->title, &out->abstract);
    out->title = str_dup(a, out->title.p ? out->title : STR(""));
    out->abstract = str_dup(a, out->abstract.p ? out->abstract : STR(""));
    bibtex_free(reader);
    return err ? task_fail(t, err, "the paper cannot be read") : 0;
}

static const char *address_problem(const struct options *o, const struct config *c)
{
    if (*(o->embedding ? c->ai_embedding_url : c->ai_url))
        return NULL;
    if (!*c->ai_url)
        return o->embedding ? "ai.embedding.url and ai.url are empty: the server asks its built-in "
                              "simulated AI, which needs no test. Set ai.embedding.url to the "
                              "address of a service."
                            : "ai.url is empty: the server asks its built-in simulated AI, which "
                              "needs no test. Set ai.url to the address of a service.";
    return "ai.embedding.url is empty: there is no embedding service.";
}

static int run(struct task *t, struct db *d)
{
    const struct options *o = d->arg;
    struct prompt_paper paper = sample;
    struct ai_key key;
    const char *service = o->embedding ? AI_EMBEDDING : AI_CHAT;
    const char *why = config_problem(task_arena(t), &d->config);
    if (!why)
        why = address_problem(o, &d->config);
    if (why)
        return opt_error(o->command, OPT_FAILED, "%s", why);
    int err = find_key(t, d, service, &key);
    if (!err && o->doi)
        err = find_paper(t, d, o->doi, &paper);
    if (err)
        return db_complain(t, d, err);
    printf("paper     %.*s: %.*s\n", STR_ARG(paper.doi), STR_ARG(paper.title));
    printf("key       %lld%s%.*s\n", (long long)key.id, key.name.n ? ", " : "", STR_ARG(key.name));
    why = (o->embedding ? ai_embed_once : ai_ask_once)(t, d, &key, &paper);
    if (fflush(stdout) != 0)
        return 1;
    return why ? opt_error(o->command, OPT_FAILED, "%s", why) : 0;
}

static int test_main(int argc, char **argv)
{
    struct options o = {.config = NULL};
    const struct opt opts[] = {
        {"doi", "DOI", "the paper to ask about; default: a built-in one", .text = &o.doi},
        {"embedding", NULL, "ask the embedding service instead", .flag = &o.embedding},
        OPT_CONFIG(&o.config),
    };
    struct command c = {"ai test", NULL, about, opts, sizeof opts / sizeof *opts};
    o.command = &c;
    int status = opt_parse(&c, argc, argv);
    return status >= 0 ? status : db_run(o.config, DB_MYSQL, STATEMENT_MS, run, &o);
}

static const struct menu_item items[] = {
    {"test", test_main, "ask about one paper, and see the reply or what is wrong"},
};

int ai_main(int argc, char **argv)
{
    return menu_run(&(struct menu){"millrace ai", items, sizeof items / sizeof *items}, argc, argv);
}
