#include "base/json.h"

const struct json *json_get(const struct json *j, const char *name)
{
    if (!j || j->type != JSON_OBJECT)
        return NULL;
    struct str key = str_of(name);
    json_each (member, j)
        if (str_eq(member->key, key))
            return member;
    return NULL;
}

struct str json_str(const struct json *j)
{
    return j && j->type == JSON_STRING ? j->s : STR_NULL;
}

bool json_int(const struct json *j, int64_t *out)
{
    if (!j || j->type != JSON_INT)
        return false;
    *out = j->i;
    return true;
}

bool json_bool(const struct json *j, bool *out)
{
    if (!j || (j->type != JSON_TRUE && j->type != JSON_FALSE))
        return false;
    *out = j->type == JSON_TRUE;
    return true;
}

const char *json_type_name(const struct json *j)
{
    static const char *const names[] = {
        [JSON_NULL] = "null",   [JSON_FALSE] = "boolean", [JSON_TRUE] = "boolean",
        [JSON_INT] = "number",  [JSON_REAL] = "number",   [JSON_STRING] = "string",
        [JSON_ARRAY] = "array", [JSON_OBJECT] = "object", [JSON_FLOATS] = "array",
    };
    return j ? names[j->type] : "nothing";
}
