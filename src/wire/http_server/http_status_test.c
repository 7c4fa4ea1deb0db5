#include "wire/http_server/http_status.h"

#include "base/err.h"
#include "tests/tap.h"
#include "wire/http_server.h"

static void statuses(void)
{
    is_int(http_status_of(ERR_INVALID), 400, "invalid input is the caller's");
    is_int(http_status_of(ERR_UNAUTHENTICATED), 401, "not logged in");
    is_int(http_status_of(ERR_FUNDS), 402, "the balance is too low");
    is_int(http_status_of(ERR_FORBIDDEN), 403, "forbidden");
    is_int(http_status_of(ERR_NOT_FOUND), 404, "not found");
    is_int(http_status_of(ERR_EXISTS), 409, "exists already");
    is_int(http_status_of(ERR_CONFLICT), 409, "a conflict");
    is_int(http_status_of(ERR_LIMIT), 413, "too large");
    is_int(http_status_of(ERR_RATE), 429, "too many requests");
    is_int(http_status_of(ERR_INTERNAL), 500, "the server's fault");
    is_int(http_status_of(ERR_PROTO), 502, "a store spoke nonsense");
    is_int(http_status_of(ERR_UNAVAILABLE), 503, "a store is down");
    is_int(http_status_of(ERR_TIMEOUT), 504, "it took too long");
    is_int(http_status_of(-1000), 500, "an unknown code is the server's fault");
}

static void every_code_has_an_answer(void)
{
    for (int err = -1; err >= ERR_LAST; err--) {
        int status = http_status_of(err);
        ok(http_status_line(status).n > 0, "%s has a status with a line", err_name(err));
        ok(!http_failure_of(err)->public_message == (status < 500),
           "%s shows its text only below 500", err_name(err));
        ok(http_failure_of(err)->public_message || http_failure_of(err)->default_message[0],
           "%s has words of its own", err_name(err));
    }
    for (enum http_refusal why = 0; why < HTTP_REFUSALS; why++)
        ok(http_status_line(http_refused[why].status).n && http_refused[why].code[0],
           "refusal %s has a line", http_refused[why].code);
    is_str(http_status_line(431), STR("HTTP/1.1 431 Request Header Fields Too Large\r\n"),
           "a line is complete");
}

static void retrying(void)
{
    ok(http_failure_of(ERR_UNAVAILABLE)->retry_later && http_failure_of(ERR_BUSY)->retry_later &&
           http_failure_of(ERR_RATE)->retry_later,
       "what passes may be tried again");
    ok(!http_failure_of(ERR_UNCERTAIN)->retry_later,
       "what may have been done is not to be tried blindly");
    ok(!http_failure_of(ERR_INVALID)->retry_later, "what is wrong stays wrong");
}

int main(void)
{
    statuses();
    every_code_has_an_answer();
    retrying();
    return tap_done();
}
