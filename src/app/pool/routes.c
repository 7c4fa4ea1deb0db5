#include "app/pool/routes.h"

#include "app/pool/pools.h"
#include "engine/setup/config.h"

int pool_of_path(struct task *t, struct api_call *c, struct pool_id *out)
{
    struct str type = http_param(c->x, "type");
    struct pool_id id = {.type = pool_type_find(type)};
    if (!id.type)
        return task_fail(t, ERR_NOT_FOUND, "there are no pools of type %.*s", STR_ARG(type));
    if (!str_to_i64(http_param(c->x, "group"), &id.group) || id.group < 1 ||
        id.group > POOL_GROUP_MAX)
        return api_refuse(t, c, "group", "must be a number from 1 to %lld",
                          (long long)POOL_GROUP_MAX);
    *out = id;
    return 0;
}

/* A program has a token of its own, which can be revoked, and which names the pools it may use. */
static int may_pop(struct task *t, const struct api_call *c)
{
    if (c->node->config->pool_sessions || c->session.scopes.p)
        return 0;
    return task_fail(t, ERR_FORBIDDEN, "items are handed out to API tokens only, not to sessions");
}

static int pop(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct pool_wish wish = {
        .count = 1, .uid = c->session.uid, .request = api_text(c, "request_id")};
    struct pool_items items;
    int err = may_pop(t, c);
    if (!err)
        err = pool_of_path(t, c, &wish.pool);
    if (err)
        return err;
    api_int(c, "count", &wish.count);
    err = pool_pop(t, c->node->pools, &wish, &items);
    if (err)
        return err;
    c->degraded = items.direct;
    jw_key(w, STR("items"));
    jw_raw(w, items.json);
    return 0;
}

#define AT(member) API_AT(struct pool_level, member)
static const struct api_field level_fields[] = {
    {"type", API_TEXT, AT(type), .most = POOL_TYPE_NAME_CHARS, .about = "of the items"},
    {"group", API_INT, AT(group), .about = "number of the group"},
    {"usable", API_INT, AT(usable), .about = "in MySQL, in no list yet"},
    {"in_list", API_INT, AT(in_list), .about = "in the list, and handed out next"},
    {"handed_out", API_INT, AT(handed_out), .about = "but not marked as used yet"},
    {"used", API_INT, AT(used), .about = "handed out, and marked"},
    API_END,
};

static int list(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct pool_levels levels;
    int err = pools_count(t, c->node->pools, &levels);
    if (err)
        return err;
    c->degraded = levels.degraded;
    api_put_list(t, w, "pools", level_fields, levels.list, levels.count);
    api_put_time(w, "counted_at", levels.counted_ms);
    return 0;
}

/* --- the table --- */

static const struct api_field pop_body[] = {
    {"count", API_INT, .optional = true, .least = 1, .most = POOL_COUNT_MAX,
     .about = "of items; 1 if absent"},
    {"request_id", API_TEXT, .optional = true, .least = 1, .most = POOL_REQUEST_CHARS,
     .about = "sent again within ten minutes it gets the same items"},
    API_END,
};
static const struct api_field item_fields[] = {
    {"id", API_INT, .about = "number of the item"},
    {"text", API_TEXT, .about = "title or content"},
    API_END,
};
static const struct api_field pop_reply[] = {
    {"items", API_OBJECTS, .least = 1, .most = POOL_COUNT_MAX,
     .about = "given to no one else; fewer than asked for if there are no more",
     .fields = item_fields},
    API_END,
};
static const struct api_field list_reply[] = {
    {"pools", API_OBJECTS, .about = "every group that has items", .fields = level_fields},
    {"counted_at", API_TIME, .about = "some seconds ago, where there are millions of items"},
    API_END,
};

const struct api_route pool_routes[] = {
    {"POST", "/api/pools/:type/:group/pop", API_USER, pop, "Take items out of a pool",
     .body = pop_body, .reply = pop_reply, .scope = "pool:type/group"},
    {"GET", "/api/pools", API_USER, list, "How full the pools are", .reply = list_reply},
    {.method = NULL},
};
