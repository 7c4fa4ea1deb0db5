/* trial.h -- one tiny question with one key, for an admin who wants to know whether it works.
 *
 * It takes no permit: a key that rests, is capped or switched off can be tried, too. So it is one
 * request more than the limits say. Nothing is counted, and the breaker learns nothing from it. */
#ifndef ENGINE_AI_TRIAL_H
#define ENGINE_AI_TRIAL_H

#include "engine/ai/ai.h"

/* limited: 429, too many requests. failed: any other reply. */
#define AI_TRIAL_OUTCOMES "works|refused|no_money|limited|unreachable|failed"
#define AI_TRIAL_MS       10000 /* at most, if the service is silent */

struct ai_trial {
    const char *outcome; /* of AI_TRIAL_OUTCOMES */
    int status;          /* of the reply; 0: there was none */
    int64_t latency_ms;
    struct str words; /* of the service, or what the connection failed with; without the key */
};

/* service: that ai is, by its name (service.h). ERR_CANCELED; everything else is an outcome. out
 * lies in the task's arena. */
MUST_CHECK int ai_try_key(struct task *t, const struct ai *ai, const char *service,
                          struct str api_key, const char *model, struct ai_trial *out);

/* What a reply means. */
const char *ai_trial_outcome(struct arena *a, const char *service, int status, struct str body);
#endif
