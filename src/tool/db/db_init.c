#include <errno.h>
#include <malloc.h>
#include <stdio.h>

#include "engine/setup/schema.h"
#include "tool/db/init.h"
#include "tool/opt.h"

#define KEPT_BYTES   (64 << 20)
#define STATEMENT_MS (6 * 3600 * 1000) /* the first one may be a migration */

static const char about[] =
    "Loads a folder of papers into MySQL, in four steps: tables, AI keys, journals with their\n"
    "papers, tags.\n"
    "\n"
    "  DIR/Data/<Journal>/*.bib\n"
    "  DIR/PaperAndTagInfo/InfoList.Paper.csv          Name, FullName, DataRange, UpdateDate, "
    "Price\n"
    "  DIR/PaperAndTagInfo/InfoList.Tag.csv            Tag, TagType\n"
    "  DIR/PaperAndTagInfo/InfoList.PaperWithTag.csv   Name, Tag\n"
    "  DIR/APIKey/*.txt                                one key per line\n"
    "\n"
    "Run it again whenever the folder has changed, or after an interruption: unchanged files\n"
    "are not read, and only differences are written. For a running server, run \"millrace db\n"
    "warm\" afterwards. Runs that were submitted before go on over the papers that there were.\n"
    "\n"
    "Papers that are no longer in the folder stay, and are counted. With --prune they leave the\n"
    "corpus: later runs do not find them, runs that were submitted before record them as\n"
    "withdrawn, free of charge, and results that there are stay, without title and text. If a\n"
    "file or folder cannot be accessed or read, or changes meanwhile, none is withdrawn; papers\n"
    "that a file with damaged entries lacks stay until it is mended.\n"
    "\n"
    "Exit status: 0 all files were read; 1 some were not, or the command failed, or --prune was\n"
    "skipped because of a file that could not be read or changed meanwhile.";

struct options {
    const char *data, *config, *report;
    bool all, prune;
};

struct step {
    const char *name;
    int (*run)(struct task *t, struct init *in);
};

static int make_tables(struct task *t, struct init *in)
{
    struct schema_report r;
    int err = schema_migrate(t, in->db->sql, &r);
    if (!err)
        err = init_load_begin(t, in);
    in->report->totals.load = in->load;
    return err;
}

static int analyze(struct task *t, struct init *in)
{
    static const struct str filled[] = {
        STR("api_list"),    STR("contentlist"),         STR("contentlist_year_number"),
        STR("paperinfo"),   STR("corpus_file"),         STR("corpus_block"),
        STR("corpus_bare"), STR("corpus_change"),       STR("zstd_dictionary"),
        STR("info_tag"),    STR("info_paper_with_tag"),
    };
    return schema_analyze(t, in->db->sql, filled, sizeof filled / sizeof *filled);
}

static const struct step steps[] = {
    {"1/4 tables", make_tables},
    {"2/4 AI keys", init_keys},
    {"3/4 journals", init_journals},
    {"3/4 papers", init_papers},
    {"3/4 papers without an abstract", init_bare},
    {"3/4 papers per year", init_years},
    {"3/4 dictionary", init_dictionary},
    {"4/4 tags", init_tags},
    {"4/4 statistics of the tables", analyze},
};

static int run_steps(struct task *t, struct init *in)
{
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        struct task_scope s = task_scope(t);
        fprintf(stderr, "%s\n", steps[i].name);
        int err = steps[i].run(t, in);
        task_scope_end(t, s);
        if (err)
            return db_complain(t, in->db, err);
    }
    return 0;
}

static int finish(struct init *in, const struct options *o)
{
    const struct init_totals *totals = &in->report->totals;
    init_report_print(in->report, o->all);
    if (totals->cut_off_before || totals->blocks_changed || totals->years_changed ||
        totals->journals_changed || totals->tags_changed || totals->pairs_changed)
        printf("\nRedis is not up to date yet: run \"millrace db warm\", or start the server.\n");
    if (o->report && init_report_save(in->report, o->report)) {
        fprintf(stderr, "millrace db init: %s: %s\n", o->report, strerror(errno));
        return 1;
    }
    return fflush(stdout) == 0 && totals->files_failed == 0 && !totals->prune_skipped ? 0 : 1;
}

static int init(struct task *t, struct db *d)
{
    const struct options *o = d->arg;
    struct arena a;
    const char *why;
    arena_init(&a);
    struct init in = {.db = d, .report = init_report_new(), .prune = o->prune};
    int64_t begun = loop_now_us(task_loop(t));
    int status = 1;
    if (init_folder_read(&a, o->data, in.report, &in.folder, &why))
        fprintf(stderr, "millrace db init: %s\n", why);
    else if (o->prune && in.folder.file_count == 0)
        fprintf(stderr,
                "millrace db init: %s/Data has no .bib file, so --prune would withdraw all papers; "
                "nothing was changed\n",
                o->data);
    else
        status = init_load_alone(t, &in, run_steps);
    in.report->totals.seconds = (double)(loop_now_us(task_loop(t)) - begun) / 1e6;
    if (status == 0)
        status = finish(&in, o);
    init_report_free(in.report);
    arena_release(&a);
    return status;
}

int db_init_main(int argc, char **argv)
{
    struct options o = {.data = NULL};
    const struct opt opts[] = {
        {"data", "DIR", "the folder to load", .text = &o.data, .needed = true},
        {"report", "FILE", "also write the report to FILE, as JSON", .text = &o.report},
        {"prune", NULL, "withdraw papers that are not in the folder any more", .flag = &o.prune},
        {"all", NULL, "list every journal, not only the first", .flag = &o.all},
        OPT_CONFIG(&o.config),
    };
    struct command c = {"db init", NULL, about, opts, sizeof opts / sizeof *opts};
    int status = opt_parse(&c, argc, argv);
    if (status >= 0)
        return status;
    /* Thousands of batches: memory that one frees is reused by the next, without system calls. */
    mallopt(M_MMAP_THRESHOLD, KEPT_BYTES);
    mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
    return db_run(o.config, DB_MYSQL, STATEMENT_MS, init, &o);
}
