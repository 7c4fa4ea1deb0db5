/* The text of a record in billing_queue, and its checksum.
 *
 *   {"seq":17,"timestamp":1700000000123,…,"cost":10,"sum":"0a1b2c3d"}
 *
 * The text of a record is what stands between the digits of seq and its sum. The sum is over the
 * text and over seq. Scripts give seq: so the caller sums the text, and the script combines that
 * with seq (XOR). Records without a sum are of versions before it, and have no name that those did
 * not know. */
#include <inttypes.h>
#include <stdio.h>

#include "base/json.h"
#include "engine/money/ledger_private.h"

#define HEAD "{\"seq\":"
#define TAIL ",\"sum\":\"01234567\"}" /* so many bytes */

uint32_t ledger_record_sum(struct str text)
{
    static const uint8_t key[16];
    return (uint32_t)siphash(key, text);
}

/* That of a record with this seq, by its text. */
static bool sum_is_right(struct str record, int64_t seq, struct str sum)
{
    const size_t head = sizeof HEAD - 1, tail = sizeof TAIL - 1;
    char digits[24], want[9];
    size_t n = (size_t)snprintf(digits, sizeof digits, "%" PRId64, seq);
    if (record.n < head + n + tail || memcmp(record.p, HEAD, head) != 0 ||
        memcmp(record.p + head, digits, n) != 0)
        return false;
    struct str text = str_from(record.p + head + n, record.n - head - n - tail);
    snprintf(want, sizeof want, "%08" PRIx32, ledger_record_sum(text) ^ (uint32_t)seq);
    return str_eq(sum, str_of(want));
}

bool ledger_record_read(struct arena *scratch, struct str text, struct ledger_record *out)
{
    static const char *const names[] = {"seq", "timestamp", "kind", "qid",
                                        "doi", "cost",      "sum",  "request_id"};
    const struct json *j;
    if (json_parse(scratch, text, &j, NULL) || j->type != JSON_OBJECT)
        return false;
    uint32_t known = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        known += json_get(j, names[i]) != NULL;
    *out = (struct ledger_record){.kind = json_str(json_get(j, "kind")),
                                  .qid = json_str(json_get(j, "qid")),
                                  .doi = json_str(json_get(j, "doi")),
                                  .request_id = json_str(json_get(j, "request_id"))};
    const struct json *sum = json_get(j, "sum");
    bool deduction = str_eq(out->kind, STR("deduction"));
    if (known != j->count || !json_int(json_get(j, "seq"), &out->seq) || out->seq < 1 ||
        !json_int(json_get(j, "timestamp"), &out->at_ms) || out->at_ms < 0 ||
        out->at_ms > INT64_MAX / 1000 || !json_int(json_get(j, "cost"), &out->cents) ||
        out->cents < 0 || out->cents > LEDGER_BALANCE_MAX)
        return false;
    if (sum && !sum_is_right(text, out->seq, json_str(sum)))
        return false;
    return deduction ? out->request_id.p != NULL : str_eq(out->kind, STR("charge"));
}
