/* What replies mean to an admin who tests a key. The calls are tested with a whole server. */
#include "engine/ai/trial.h"

#include "tests/tap.h"

static const struct {
    int status;
    const char *body, *outcome;
} replies[] = {
    {200, "{\"choices\":[{\"message\":{\"content\":\"yes\"}}]}", "works"},
    {200, "{\"error\":\"no such route\"}", "failed"},
    {200, "<html>log in to this network</html>", "failed"},
    {401, "", "refused"},
    {403, "{\"error\":{\"message\":\"no\"}}", "refused"},
    {402, "", "no_money"},
    {429, "{\"error\":{\"code\":\"insufficient_quota\"}}", "no_money"},
    {429, "{\"error\":{\"code\":\"rate_limit_exceeded\"}}", "limited"},
    {400, "{\"error\":{\"code\":\"insufficient_quota\"}}", "failed"},
    {404, "", "failed"},
    {503, "", "failed"},
};

int main(void)
{
    struct arena a;
    arena_init(&a);
    for (size_t i = 0; i < sizeof replies / sizeof *replies; i++)
        is_str(str_of(ai_trial_outcome(&a, AI_CHAT, replies[i].status, str_of(replies[i].body))),
               str_of(replies[i].outcome), "%d %s", replies[i].status, replies[i].body);
    struct str vectors = STR("{\"data\":[{\"embedding\":[1]}]}");
    is_str(str_of(ai_trial_outcome(&a, AI_EMBEDDING, 200, vectors)), STR("works"), "vectors");
    is_str(str_of(ai_trial_outcome(&a, AI_EMBEDDING, 200, str_of(replies[0].body))), STR("failed"),
           "a chat is none");
    is_str(str_of(ai_trial_outcome(&a, AI_CHAT, 200, vectors)), STR("failed"), "nor are they one");
    arena_release(&a);
    return tap_done();
}
