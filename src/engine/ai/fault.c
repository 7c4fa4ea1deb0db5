#include "engine/ai/fault.h"

#include <string.h>

#include "base/err.h"

/* In what order: the text of a TLS error may speak of time, too. */
static const struct {
    const char *said, *kind;
} causes[] = {
    {"cannot find ", "dns"},
    {"TLS: ", "tls"},
    {"Connection refused", "refused"},
    {"in time", "timeout"},
    {"timed out", "timeout"},
    {"connection was lost", "cut"},
    {"connection was closed", "cut"},
    {"Connection reset", "cut"},
    {"connections end before a reply", "cut"},
};

const char *ai_fault_kind(int err, const char *text)
{
    if (err == ERR_TIMEOUT)
        return "timeout";
    if (err == ERR_UNCERTAIN)
        return "cut";
    if (err == ERR_PROTO || err == ERR_LIMIT)
        return "unreadable";
    for (size_t i = 0; i < sizeof causes / sizeof *causes; i++)
        if (strstr(text, causes[i].said))
            return causes[i].kind;
    return "other";
}
