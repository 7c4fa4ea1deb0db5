/* api.h -- routes of the HTTP API, told once: who may call them, what they take, what they answer.
 *
 * A request is checked against the table before its handler sees it, a reply against the table in
 * tests, and /openapi.json is written from the same table: so they cannot differ.
 *
 * The order of the checks: cross-site (writes without a Bearer token), session, parameters, body. Unknown
 * members of a body and unknown parameters are refused: a misspelt one would be ignored otherwise. */
#ifndef ENGINE_API_H
#define ENGINE_API_H

#include "base/json.h"
#include "engine/node.h"
#include "engine/session.h"
#include "wire/http_server.h"

#define API_COOKIE       "millrace_session"
#define API_ADMIN_COOKIE "millrace_admin"

enum api_type {
    API_TEXT, /* least to most characters */
    API_INT,  /* least to most */
    API_BOOL,
    API_MONEY,  /* "240.00" */
    API_TIME,   /* "2026-01-31T12:00:00.000Z" */
    API_TEXTS,  /* least to most of them, each of 1 to item_most characters; a repeated parameter */
    API_COUNTS, /* an object of integers: {"2024": 12} */
    API_OBJECT, /* fields */
    API_OBJECTS, /* an array of such */
};

struct api_field {
    const char *name;
    enum api_type type;
    bool optional;
    int64_t least, most, item_most;
    const char *choices;            /* of a text: "all|any" */
    const char *about;              /* half a sentence */
    const struct api_field *fields; /* of API_OBJECT and API_OBJECTS; ends with a name of NULL */
};

enum api_access { API_PUBLIC, API_USER, API_ADMIN, API_SUPER };

struct api_call;
/* Writes members into w, which has an object begun with "success": true; 0 sends it with the route's
 * status. One that replies by itself (streams, files) sets c->replied. */
typedef int api_handler(struct task *t, struct api_call *c, struct json_writer *w);

struct api_route {
    const char *method, *path; /* "/api/sessions/:sid" */
    enum api_access access;
    api_handler *handler;
    const char *summary;           /* "Log in" */
    const struct api_field *query; /* these three end with a name of NULL; NULL: none */
    const struct api_field *body;
    const struct api_field *reply; /* besides success and degraded */
    int status;                    /* 0: 200 */
    int64_t body_bytes_max;        /* 0: 64 KB */
};

struct api_call {
    struct node *node;
    struct http_exchange *x;
    const struct api_route *route;
    struct str address;      /* of the client, by trusted_proxies */
    struct session session;  /* API_USER and above; else sid.p == NULL */
    const struct json *body; /* an object that fits; NULL if the route takes none */
    bool degraded; /* set by whoever read from MySQL for want of Redis: the reply says so */
    bool replied;
};

/* Values that have been checked; absent ones have p == NULL, or leave *out alone and give false. */
struct str api_text(const struct api_call *c, const char *name);
bool api_int(const struct api_call *c, const char *name, int64_t *out);
bool api_bool(const struct api_call *c, const char *name, bool *out);
bool api_money(const struct api_call *c, const char *name, int64_t *cents);
/* In the task's arena, for the body and for repeated parameters alike. */
size_t api_texts(struct task *t, const struct api_call *c, const char *name,
                 const struct str **out);

/* Says which field is wrong: 400 {"error": {"code": "invalid", "message", "field"}}. */
MUST_CHECK int api_refuse(struct task *t, struct api_call *c, const char *field, const char *fmt,
                          ...) PRINTF(4, 5);

void api_set_cookie(struct api_call *c, const char *name, const char *token, int64_t seconds);

/* The tables of all applications; each ends with a method of NULL. n is borrowed. */
struct api;
struct api *api_new(struct node *n, const struct api_route *const *tables, size_t count);
void api_free(struct api *a);
/* Adds all of them and GET /openapi.json to the server. */
void api_serve(struct api *a, struct http_server *s);
#endif
