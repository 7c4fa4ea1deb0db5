#include "tool/sim/sim_brief.h"

#include "tool/sim/sim_verdict.h"

void sim_brief_init(struct sim_brief *b)
{
    *b = (struct sim_brief){.tokens = 0};
}

void sim_brief_release(struct sim_brief *b)
{
    buf_release(&b->text);
    arena_release(&b->arena);
}

void sim_brief_read(struct sim_brief *b, struct str message)
{
    if (str_eq(buf_str(&b->text), message))
        return;
    buf_clear(&b->text);
    buf_add_str(&b->text, message);
    arena_reset(&b->arena, (struct arena_mark){0});
    struct sim_prompt p;
    sim_prompt_read(&p, buf_str(&b->text));
    b->tokens = sim_tokens(message);
    b->question = p.question;
    if (b->question.p)
        sim_word_set_init(&b->arena, &b->words, b->question);
}
