/* hooks.h -- webhooks that users name: an address that is called when something of theirs has
 * happened (OPS-9).
 *
 * Owns table webhook_delivery, an outbox: hook_add writes a row in the transaction of the change
 * that is told of, and hooks_role calls the address until it answers with a status of 200 to 299,
 * for at most HOOK_LIFE_H hours, with exponential backoff. Always true:
 *   - what was committed is told at least once, unless the address refuses it all that time; each
 *     repeat has the same id, so that a receiver can leave it out;
 *   - only https:// is called, the certificate is verified, no redirect is followed, and no proxy
 *     is used; the address that a connection is made to must be public, or be in webhook.allow,
 *     whatever its name meant before;
 *   - a call takes at most HOOK_CALL_MS, and no more than HOOK_REPLY_BYTES of its reply are read;
 *   - a request is signed: Webhook-Signature is "v1," and HMAC-SHA-256, in base64, of
 *     "<Webhook-Id>.<Webhook-Timestamp>.<body>", with the secret that its owner was told. The
 *     secret is "whsec_" and the key in base64, as the convention of Standard Webhooks has it. */
#ifndef ENGINE_PEOPLE_HOOKS_H
#define ENGINE_PEOPLE_HOOKS_H

#include "engine/setup/node.h"
#include "engine/store/role.h"
#include "wire/sql.h"

#define HOOK_LIFE_H      24
#define HOOK_CALL_MS     5000
#define HOOK_REPLY_BYTES (64 * 1024)
#define HOOK_URL_CHARS   2000
#define HOOK_KEY_BYTES   33 /* 32 hexadecimal digits and NUL */
#define HOOKS_EACH_MS    1000

struct hooks;

/* Borrows n: its loop, sql, config and metrics. */
struct hooks *hooks_new(struct node *n);
void hooks_free(struct hooks *h); /* no round may be under way */

/* What is wrong with an address, in a; NULL: nothing, as far as its text tells. */
const char *hook_url_problem(struct arena *a, struct str url);
/* A key, and how its owner is told it: "whsec_…", in a. */
void hook_key_new(struct task *t, char out[HOOK_KEY_BYTES]);
struct str hook_secret(struct arena *a, struct str key);

struct hook {
    struct str id; /* unique; the same again is not added twice */
    int64_t uid;
    struct str url, key, body;
};
/* In the transaction of what is told. */
MUST_CHECK int hook_add(struct task *t, struct sql *c, const struct hook *h);

/* Calls what is due. With a lock, every HOOKS_EACH_MS; arg: a struct hooks. */
role_fn hooks_role;
#endif
