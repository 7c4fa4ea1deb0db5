/* api.h -- routes of the HTTP API, told once: their access, what they take, what they answer.
 *
 * A request is checked against the table before its handler sees it, a reply against the table in
 * tests, and /openapi.json is written from the same table: so they cannot differ.
 *
 * The order of the checks: cross-site (writes without a Bearer token), session, parameters, body.
 * Unknown members of a body and unknown parameters are refused: a misspelt one would be ignored
 * otherwise. A null there is no value unless the field says so, and a body that was not sent counts
 * as {}.
 *
 * Two worlds: below /api/admin/ only sessions of admins count, elsewhere only those of users; the
 * few routes of access API_EITHER are the exception, and a test lists them. What an admin may
 * change is noted (admin_log.h): by its handler when it is done, here when it is refused.
 *
 * A user's program may bring an API token instead of a session, as a Bearer token that begins with
 * "mr_": it reaches routes of access API_USER and API_EITHER, as far as its scopes go (scope.h). */
#ifndef ENGINE_API_API_H
#define ENGINE_API_API_H

#include <stddef.h>

#include "base/json.h"
#include "engine/people/admin_log.h"
#include "engine/people/session.h"
#include "engine/setup/node.h"
#include "engine/store/amount.h"
#include "wire/http_server.h"

#define API_COOKIE       "millrace_session"
#define API_ADMIN_COOKIE "millrace_admin"

#define API_BODY_BYTES_MAX       (64 * 1024) /* unless the route says otherwise */
#define API_PATH_PARAM_CHARS_MAX 128         /* of ":sid" */
#define API_FIELDS_MAX           40          /* of one list */

/* Limits of 0 to 0 are none; only replies may have none. Characters are Unicode code points. */
enum api_type {
    API_TEXT,   /* least to most characters, no NUL */
    API_INT,    /* least to most */
    API_REAL,   /* a number, least to most; has no place in a struct, and is no parameter */
    API_BOOL,   /* as a parameter: 1, 0, true, false */
    API_MONEY,  /* "240.00"; least to most cents, a most of 0 is AMOUNT_CENTS_MAX */
    API_TIME,   /* "2026-01-31T12:00:00.000Z"; in replies only */
    API_TEXTS,  /* least to most of them, each of 1 to item_most characters; a repeated parameter */
    API_INTS,   /* an array of integers; in replies only */
    API_COUNTS, /* an object of integers, each from least to most: {"2024": 12} */
    API_VALUES, /* an object of least to most members by any names, each a text of at most item_most
                 * characters, a number, or null: {"goal": "…", "weeks": 4} (api_values) */
    API_ANY,    /* a text of at most item_most characters, a number, true, false, null, or an array
                  * of at most `most` of them */
    API_OBJECT, /* fields */
    API_OBJECTS, /* an array of least to most such */
    API_MEMBERS, /* an object of such by any names; in replies only */
};

struct api_field {
    const char *name;
    enum api_type type;
    bool optional; /* may be absent; in a reply also null */
    int64_t least, most, item_most;
    bool nullable;                  /* of a body: null is a value (api_null) */
    const char *choices;            /* of a text, or of each of them: "all|any"; no other limits */
    const char *about;              /* half a sentence */
    const struct api_field *fields; /* of the last three types; ends with a name of NULL */
    bool secret;      /* a token, a key: never noted; a reply that has one is never compressed */
    size_t at, bytes; /* API_AT: its place in the struct of a reply */
};

/* Where api_put_fields finds a value, which has the type of the field: struct str, bool, int64_t
 * (cents; ms since 1970), an array of int64_t, a struct for an object. Lists have no place. */
#define API_AT(type, member) .at = offsetof(type, member), .bytes = sizeof(((type *)0)->member)

/* The last row of a table of fields. */
#define API_END                                                                                    \
    {                                                                                              \
        .name = NULL                                                                               \
    }

enum api_access {
    API_PUBLIC,
    API_USER,   /* users, and their API tokens within their scopes */
    API_EITHER, /* the same, and admins: api_uid, api_be_admin */
    API_PERSON, /* users who have logged in: no token can do it */
    API_ADMIN,
    API_SUPER,
};

struct api_call;
/* Writes members into w, which has an object begun with "success": true; 0 sends it with the
 * route's status. One that replies by itself (streams, files) sets c->replied. */
typedef int api_handler(struct task *t, struct api_call *c, struct json_writer *w);

struct api_route {
    const char *method, *path; /* "/api/sessions/:sid" */
    enum api_access access;
    api_handler *handler; /* NULL: served elsewhere, and not below /api/; told in /openapi.json */
    const char *summary;  /* "Log in" */
    const struct api_field *query; /* these three end with a name of NULL; NULL: none */
    const struct api_field *body;
    const struct api_field *reply; /* besides success and degraded */
    int status;                    /* 0: 200 */
    int64_t body_bytes_max;        /* 0: API_BODY_BYTES_MAX */
    const char *upload;            /* "text/csv": of a body that is no JSON; the handler reads it */
    const char *media; /* "text/event-stream": the handler replies by itself; NULL: JSON */
    const char *audit; /* "user.ban": what an admin does with it; all but GET have one */
    const char *scope; /* "pool:type/group": parameters that are parts; NULL: it has none */
    bool secret;       /* the reply carries a token or a key that is in no field of the table */
    bool fails_whole;  /* a 503 has the reply's fields, too, besides success and error */
    int option;        /* of a handler that serves several routes */
};

/* What one application serves. */
struct api_application {
    const char *name;               /* "accounts" */
    const struct api_route *routes; /* ends with a method of NULL */
};

struct api_table {
    const struct api_application *applications;
    size_t count;
};

struct api_value {
    const struct api_field *field;
    struct str value;
};

struct api_call {
    struct node *node;
    struct http_exchange *x;
    const struct api_route *route;
    const struct api_table *table; /* that it is in */
    struct str address;            /* of the client, by trusted_proxies */
    struct session session;        /* API_USER and above; else sid.p == NULL */
    bool admin;                    /* it is an admin's: its uid is no user's */
    const struct json *body;       /* an object that fits; NULL if none was sent */
    const struct api_value *query; /* parameters that fit */
    size_t query_count;
    const char *wrong; /* the field that api_refuse was told */
    bool degraded;     /* read from MySQL because Redis does not answer: the reply says so */
    bool replied;
};

/* Values of the body or the query that have been checked; absent ones have p == NULL, or leave *out
 * alone and give false. A name that is in no table of the route stops the process. */
struct str api_text(const struct api_call *c, const char *name);
bool api_int(const struct api_call *c, const char *name, int64_t *out);
bool api_bool(const struct api_call *c, const char *name, bool *out);
bool api_null(const struct api_call *c, const char *name); /* a null was sent */
bool api_money(const struct api_call *c, const char *name, int64_t *cents);
const struct json *api_values(const struct api_call *c, const char *name); /* NULL: absent */
/* In the task's arena, for the body and for repeated parameters alike. */
size_t api_texts(struct task *t, const struct api_call *c, const char *name,
                 const struct str **out);

/* Says which field is wrong. ERR_INVALID, always; when the handler returns it the client gets
 * 400 {"error": {"code": "invalid", "message": "<field>: <text>", "field"}}. */
MUST_CHECK int api_refuse(struct task *t, struct api_call *c, const char *field, const char *fmt,
                          ...) PRINTF(4, 5);

/* For a handler that learns from the body what the call is about: 0 if the caller may do it.
 * ERR_SCOPE: the caller is an API token without a scope for it. scope: "pool:titles/news"; what the
 * route itself needs is checked before. */
MUST_CHECK int api_require_scope(struct task *t, const struct api_call *c, struct str scope);

/* For routes of access API_EITHER. A browser may bring a session of each kind; it counts as the
 * user's then, until the handler asks for the admin's. */

/* The calling user, for what belongs to users; 0: the caller is an admin. */
int64_t api_uid(const struct api_call *c);
/* 0: the caller is an admin; from here on c->session is the admin's. ERR_FORBIDDEN: a user, or an
 * API token. Other errors: it is not known. */
MUST_CHECK int api_be_admin(struct task *t, struct api_call *c);

/* The deed of the calling admin: what the route says, to the user ":uid" of its path, if any. */
struct admin_deed api_deed(const struct api_call *c);

/* Members of the object that w is in: the fields that have a place in the struct from. An optional
 * number below its least and a time of 0 are null. */
void api_put_fields(struct task *t, struct json_writer *w, const struct api_field *fields,
                    const void *from);
/* A member of API_OBJECTS, from an array of count structs. */
#define api_put_list(t, w, name, fields, items, count)                                             \
    api_put_items((t), (w), (name), (fields), (items), (count), sizeof *(items))
void api_put_items(struct task *t, struct json_writer *w, const char *name,
                   const struct api_field *fields, const void *items, size_t count, size_t bytes);
/* A member of API_INT; null unless it is known. */
void api_put_known(struct json_writer *w, const char *name, bool known, int64_t v);
/* A member of API_TIME; 0 is null. */
void api_put_time(struct json_writer *w, const char *name, int64_t wall_ms);

/* Sent whatever the handler returns, so it comes last. token "" with 0 seconds takes it away. */
void api_set_cookie(struct api_call *c, const char *name, const char *token, int64_t seconds);

/* n and the applications are borrowed. Tables that make no sense stop the process. */
struct api;
struct api *api_new(struct node *n, const struct api_application *applications, size_t count);
void api_free(struct api *a); /* after the server */
/* Adds all of them and GET /openapi.json to the server. */
void api_serve(struct api *a, struct http_server *s);
#endif
