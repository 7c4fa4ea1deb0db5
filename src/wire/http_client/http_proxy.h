/* http_proxy.h -- through which proxy a service is called, and how a proxy is written.
 *
 * A setting names it: http://host:port, http://user:password@host:port, or "none". Without a
 * setting the environment does, as curl reads it: https_proxy or HTTPS_PROXY for https:// services,
 * http_proxy for http:// ones. HTTP_PROXY does not count, because CGI servers fill it from a header
 * of the request; nor does ALL_PROXY, which often is a SOCKS proxy. localhost and loopback
 * addresses are never called through a proxy of the environment.
 *
 * no_proxy or NO_PROXY excepts services, from the setting's proxy, too. Of each pair of names the
 * one in lower case comes first; an empty variable counts as not set. */
#ifndef WIRE_HTTP_PROXY_H
#define WIRE_HTTP_PROXY_H

#include "wire/http_client/http_url.h"

struct http_proxy_choice {
    const char *url;      /* as it was set; may have a password in it */
    const char *variable; /* of the environment; NULL: the setting */
};

/* False: the service is called directly. setting may be NULL. name as in struct http_url. */
bool http_proxy_choose(const char *setting, bool tls, const char *name, const char *port,
                       struct http_proxy_choice *out);

/* Whether a list like that of NO_PROXY has the service. Its entries stand between commas or blanks:
 * "*"; a name, which has the names below it, too ("example.com", ".example.com", "*.example.com"
 * mean the same); an address; a network ("10.0.0.0/8", "fd00::/8"); all but "*" with or without a
 * port behind a colon (IPv6 in brackets then). Names are not looked up: an address is compared with
 * the URL's. Entries that mean nothing are passed over. */
bool http_proxy_excepted(struct str list, const char *name, const char *port);

struct http_proxy {
    char name[HTTP_NAME_BYTES]; /* as in struct http_url */
    char port[HTTP_PORT_BYTES];
    struct str login; /* "user:password", decoded, in the arena; p == NULL: none */
};

/* NULL, or what is wrong with it, without a byte of it. That of a variable may lack the http://. */
const char *http_proxy_parse(struct arena *a, const struct http_proxy_choice *c,
                             struct http_proxy *out);
/* The same of a setting. */
const char *http_proxy_problem(struct arena *a, const char *setting);
#endif
