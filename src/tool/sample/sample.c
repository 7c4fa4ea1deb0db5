#include "tool/sample/sample.h"

#include <signal.h>
#include <stdio.h>

#include "base/err.h"
#include "loop/loop.h"
#include "tool/opt.h"
#include "tool/progress.h"
#include "tool/tool.h"

#define PAPERS_MAX 100000000

static const char about[] =
    "Generates a collection of made-up papers: journals of eight disciplines, tags, prices,\n"
    "15 years of BibTeX, and keys that no AI service accepts. The same number and the same\n"
    "seed give the same bytes. About 1.6 kB per paper.\n"
    "\n"
    "  DIR/Data/<Journal>/<Journal>-<year>.bib\n"
    "  DIR/PaperAndTagInfo/InfoList.Paper.csv, InfoList.Tag.csv, InfoList.PaperWithTag.csv\n"
    "  DIR/APIKey/sample.txt\n"
    "\n"
    "DIR is created if it is missing. One that holds anything but a sample is refused.\n"
    "\n"
    "Examples:\n"
    "  millrace sample var/sample\n"
    "  millrace sample --papers 1000000 --seed 7 var/large\n"
    "  millrace sample --papers 500 --force var/sample";

int sample_complain(const char *path, const char *why)
{
    fprintf(stderr, "millrace sample: %s: %s\n", path, why);
    return ERR_IO;
}

/* -1 to go on, else the exit status. */
static int read_options(int argc, char **argv, struct sample_options *o)
{
    const struct opt opts[] = {
        {"papers", "N", "how many papers (default 10000)", .number = &o->papers, .least = 1,
         .most = PAPERS_MAX},
        {"seed", "S", "another seed, other papers (default 1)", .number = &o->seed,
         .most = INT64_MAX},
        {"force", NULL, "replace an earlier sample in DIR", .flag = &o->force},
    };
    struct command c = {"sample", "DIR", about, opts, sizeof(opts) / sizeof(opts[0])};
    int status = opt_parse(&c, argc, argv);
    o->dir = argv[1];
    return status;
}

static int make(const struct sample_options *o, struct loop *l)
{
    struct progress p;
    struct sample_total total;
    progress_init(&p, l, "sample", "papers", o->papers);
    int err = sample_tree_write(o, &p, &total);
    progress_end(&p);
    if (!err)
        err = sample_dir_complete(o);
    if (err)
        return err;
    double seconds = progress_seconds(&p);
    printf("%s: %lld papers of %d journals in %d files, %.1f MB, %.1f s (%.0f papers/s)\n", o->dir,
           (long long)total.papers, total.journals, total.files, (double)total.bytes / 1e6, seconds,
           (double)total.papers / (seconds > 0 ? seconds : 1e-6));
    return 0;
}

static int prepare_and_make(const struct sample_options *o)
{
    enum sample_found found;
    int err = sample_dir_prepare(o, &found);
    if (err)
        return err;
    if (found == SAMPLE_DIR_PRESENT) {
        printf("%s: has this sample already; nothing was replaced\n", o->dir);
        return 0;
    }
    struct loop *l = loop_new(NULL); /* for its clock */
    err = make(o, l);
    loop_free(l);
    return err;
}

int sample_main(int argc, char **argv)
{
    struct sample_options o = {.papers = 10000, .seed = 1};
    int status = read_options(argc, argv, &o);
    if (status >= 0)
        return status;
    signal(SIGXFSZ, SIG_IGN); /* a size limit is reported like any other error */
    struct arena a;
    arena_init(&a);
    o.arena = &a;
    status = prepare_and_make(&o) ? 1 : 0;
    arena_release(&a);
    return status;
}
