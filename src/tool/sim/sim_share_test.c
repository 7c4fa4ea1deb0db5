/* How many papers of the sample the simulated AI finds: some, and not most. */
#include "tests/tap.h"
#include "tool/sample/sample_paper.h"
#include "tool/sim/sim_verdict.h"
#include "tool/sim/sim_words.h"

#define PAPERS_PER_WEIGHT 15 /* some 3,500 papers in all */

static const char *const questions[] = {
    "Does the paper report a randomised controlled trial in children or adolescents?",
    "Does it study catalysts that split water under visible light?",
    "Which treatment of heart failure works?",
    "Is the paper about the effect of sleep on memory in older adults?",
    "Which studies examine antibiotic resistance in hospitals?",
};
enum { QUESTIONS = sizeof questions / sizeof *questions };

struct shares {
    int papers, relevant[QUESTIONS], stopped; /* stopped: reasons that name a stop word */
};

static bool names_stop_word(struct str word)
{
    static const char *const some[] = {"about", "which", "does", "paper", "study", "effect"};
    for (size_t i = 0; i < sizeof some / sizeof *some; i++)
        if (str_ieq(word, str_of(some[i])))
            return true;
    return false;
}

static void judge_paper(struct arena *a, const struct sim_word_set *sets,
                        const struct sample_theme *theme, struct shares *out)
{
    struct buf title, abstract;
    buf_init(&title);
    buf_init(&abstract);
    sample_title(&title, theme);
    sample_abstract(&abstract, theme);
    for (int q = 0; q < QUESTIONS; q++) {
        struct sim_prompt p = {.question = str_of(questions[q]),
                               .title = buf_str(&title),
                               .abstract = buf_str(&abstract),
                               .words = &sets[q]};
        struct sim_verdict v;
        bool judged = sim_verdict(a, &p, NULL, &v);
        out->relevant[q] += judged && v.relevant;
        out->stopped += judged && v.relevant && names_stop_word(v.word);
    }
    out->papers++;
    buf_release(&title);
    buf_release(&abstract);
}

int main(void)
{
    struct arena arena;
    struct sim_word_set sets[QUESTIONS];
    struct shares s = {.papers = 0};
    arena_init(&arena);
    for (int q = 0; q < QUESTIONS; q++)
        sim_word_set_init(&arena, &sets[q], str_of(questions[q]));
    for (int i = 0; i < sample_journal_count; i++) {
        struct sample_random r = sample_random_stream(1, (uint64_t)i);
        for (int n = 0; n < sample_journals[i].weight * PAPERS_PER_WEIGHT; n++) {
            struct sample_theme theme = sample_theme(&r, &sample_journals[i]);
            judge_paper(&arena, sets, &theme, &s);
        }
    }
    for (int q = 0; q < QUESTIONS; q++) {
        double percent = 100.0 * s.relevant[q] / s.papers;
        ok(percent >= 2 && percent <= 30, "%.1f %% of %d papers: %s", percent, s.papers,
           questions[q]);
    }
    is_int(s.stopped, 0, "no reason names a word that says nothing");
    arena_release(&arena);
    return tap_done();
}
