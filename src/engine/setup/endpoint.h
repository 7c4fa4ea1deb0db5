/* endpoint.h -- what settings say of a service: its address, members of its requests, headers.
 *
 * Services that call themselves OpenAI-compatible differ in these (SCR-14). The functions named
 * …_problem say what is wrong with a value, in a; NULL: nothing. None repeats a secret. */
#ifndef ENGINE_SETUP_ENDPOINT_H
#define ENGINE_SETUP_ENDPOINT_H

#include "base/json.h"

#define ENDPOINT_HEADERS_MAX 32
#define ENDPOINT_KEY_HEADER  "Authorization" /* the key follows "Bearer " in it, and in no other */

const char *endpoint_url_problem(struct arena *a, const char *url);
/* The address to call, in a: path stands behind the path of the base address and before its query,
 * unless the base address ends with it already. url must be without problems. */
const char *endpoint_url(struct arena *a, const char *url, const char *path);

/* The same of an address whose paths are all ours, without a query. */
const char *endpoint_base_problem(struct arena *a, const char *url);
/* http:// to another machine: what is sent can be read on the way. */
bool endpoint_is_plain(const char *url);

/* The proxy that url is called through, by ai.proxy or the environment: "10.0.0.1:3128
 * (HTTPS_PROXY)", in a; NULL: none. *problem: why it cannot be used, in a; NULL: it can. */
const char *endpoint_proxy(struct arena *a, const char *setting, const char *url,
                           const char **problem);

/* A JSON object whose members replace those of a request's body; null removes one. */
const char *endpoint_params_problem(struct arena *a, const char *text);
/* NULL: there are none. text must be without problems; in a. */
const struct json *endpoint_params(struct arena *a, const char *text);

/* A JSON object of header names and values. */
const char *endpoint_headers_problem(struct arena *a, const char *text);
/* Whole lines, "Name: value", in a. text must be without problems. */
struct str *endpoint_headers(struct arena *a, const char *text, size_t *count);

/* The name of the header that carries the key. */
const char *endpoint_key_header_problem(struct arena *a, const char *text);
/* A key that stands alone in a header. */
const char *endpoint_plain_key_problem(struct arena *a, const char *text);
/* The line, in a. */
struct str endpoint_key_line(struct arena *a, const char *key_header, struct str key);
#endif
