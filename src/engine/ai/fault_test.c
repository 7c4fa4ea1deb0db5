#include "engine/ai/fault.h"

#include "base/err.h"
#include "tests/tap.h"

static void is_kind(int err, const char *text, const char *kind)
{
    is_str(str_of(ai_fault_kind(err, text)), str_of(kind), "%d, %s", err, text);
}

/* Texts as the HTTP client makes them; its own tests have the same. */
int main(void)
{
    is_kind(ERR_UNAVAILABLE,
            "https://no.invalid:443: cannot find no.invalid: Name or service not "
            "known",
            "dns");
    is_kind(ERR_UNAVAILABLE, "http://127.0.0.1:1: no connection: Connection refused", "refused");
    is_kind(ERR_REFUSED,
            "the AI service cannot be reached: http://127.0.0.1:1: no connection: "
            "Connection refused, after 4 attempts",
            "refused");
    is_kind(ERR_UNAVAILABLE, "https://h:443: TLS: SSL certificate problem: certificate has expired",
            "tls");
    is_kind(ERR_UNAVAILABLE, "https://h:443: TLS: Connection refused in time", "tls");
    is_kind(ERR_UNAVAILABLE, "https://h:443: no connection: no answer in time", "timeout");
    is_kind(ERR_UNAVAILABLE, "http://h:80: no connection: Connection timed out", "timeout");
    is_kind(ERR_TIMEOUT, "https://h:443: no reply in time", "timeout");
    is_kind(ERR_UNCERTAIN, "https://h:443: whatever", "cut");
    is_kind(ERR_UNAVAILABLE, "http://h:80: the connection was closed before anything was sent",
            "cut");
    is_kind(ERR_UNAVAILABLE, "http://h:80: new connections end before a reply", "cut");
    is_kind(ERR_PROTO, "http://h:80: the reply is not HTTP: bad status", "unreadable");
    is_kind(ERR_LIMIT, "http://h:80: the reply is too long", "unreadable");
    is_kind(ERR_UNAVAILABLE, "http://h:80: no connection: Network is unreachable", "other");
    is_kind(ERR_BUSY, "", "other");
    return tap_done();
}
