/* api_fixture.h -- an audit log and API tokens for tests of the API, made up: what is defined here
 * is linked instead of the real ones. */
#ifndef ENGINE_API_API_FIXTURE_H
#define ENGINE_API_API_FIXTURE_H

#include <stdio.h>

#include "engine/people/admin_log.h"
#include "engine/people/api_token.h"

/* The last note, as one line. */
static char noted[1000];
static int notes;

int admin_audit_note(struct task *t, struct sql_pool *p, const struct admin_deed *d)
{
    (void)p;
    notes++;
    snprintf(noted, sizeof noted, "%lld %.*s %s user %lld target %.*s %d %.*s %.*s %.*s",
             (long long)d->admin_uid, STR_ARG(d->address), d->action, (long long)d->user_uid,
             STR_ARG(d->target), (int)d->outcome, STR_ARG(d->error), STR_ARG(d->request_id),
             STR_ARG(d->asked));
    return task_fail(t, 0, "another text");
}

struct str admin_audit_cut(struct str s)
{
    return s.n > 8 ? str_from(s.p, 8) : s;
}

/* What follows "mr_" are the scopes; "mr_gone" was revoked. */
int api_token_get(struct task *t, struct api_tokens *x, struct str token, struct str address,
                  struct session *out)
{
    (void)x, (void)address;
    if (str_eq(token, STR("mr_gone")))
        return task_fail(t, ERR_UNAUTHENTICATED, "it was revoked");
    *out = (struct session){
        .sid = token, .uid = 7, .username = STR("alice"), .scopes = str_skip(token, 3)};
    return 0;
}
#endif
