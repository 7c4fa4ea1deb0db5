/* scope.h -- what an API token (people/api_token.h) may do, by names.
 *
 *     scope = "read"                   every GET of the routes of users
 *           | application              all routes of one application: "screen"
 *           | application ":read"      every GET of them
 *           | application ":" part     of an application with parts, one: "pool:titles/news"
 *     part  = name *("/" name)         with all that is below it: "pool:titles" has every group
 *     name  = 1 to 64 characters, none of them a blank, a control character, ":", "/" or ","
 *
 * A token has a list of scopes, separated by blanks. What none of them names is refused: a token
 * without scopes may do nothing. No scope has the routes of access API_PERSON and above: a token
 * never logs in, changes a password, makes or revokes tokens, sees or ends sessions, or is an
 * admin.
 *
 * Which part a call is about follows from the path: a route with .scope = "pool:type/group" names
 * two of its parameters. A part that is called "read" has no scope of its own ("pool:read" means
 * GETs), nor has one that is no name: both need "pool". */
#ifndef ENGINE_API_SCOPE_H
#define ENGINE_API_SCOPE_H

#include "engine/api/api.h"

#define API_SCOPES_MAX           20 /* of one token */
#define API_SCOPE_CHARS_MAX      160
#define API_SCOPE_NAME_CHARS_MAX 64

/* Whether one of the scopes has a call. need: the scope that has just this. read: it is a GET. */
bool api_scopes_allow(struct str scopes, struct str need, bool read);

/* What is wrong with a scope that a token is to get, as a text for the user; NULL: nothing. */
const char *api_scope_problem(struct arena *a, const struct api_table *table, struct str scope);
/* The list, each of them once. */
struct str api_scopes_join(struct arena *a, const struct str *scopes, size_t count);

/* The scope that has just this call: template, with the parameters of the path in it. */
struct str api_scope_need(struct arena *a, const char *template, const struct http_exchange *x);

/* The applications that tokens can reach: member "applications" of the object that w is in. */
extern const struct api_field api_scope_fields[];
void api_put_scopes(struct json_writer *w, const struct api_table *table);

/* Stops the process when the scope of a route makes no sense. */
void api_check_scope(const struct api_application *application, const struct api_route *r);
/* Members of an OpenAPI document: who may call a route. */
void api_put_security(struct json_writer *w, const char *application, const struct api_route *r);
#endif
