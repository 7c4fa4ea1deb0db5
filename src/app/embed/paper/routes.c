#include "app/embed/paper/routes.h"

#include "app/embed/paper/papers_private.h"
#include "app/embed/post/post.h"

#define NAME_CHARS_MAX  255
#define Q_CHARS_MAX     100
#define PAGE_MAX        200
#define BODY_BYTES_MAX  (512 * 1024)
#define COLLECTION_WORD 64

/* --- how far it is --- */

static const struct api_field collection_fields[] = {
    {"name", API_TEXT, .most = COLLECTION_WORD, .about = "blog_posts or papers"},
    {"store", API_TEXT, .most = COLLECTION_WORD, .about = "embedded or qdrant"},
    {"model", API_TEXT, .optional = true, .about = "of the vectors; null: there are none"},
    {"dimension", API_INT, .optional = true, .about = "of the vectors; null: there are none"},
    {"points", API_INT, .about = "in the store"},
    {"bytes", API_INT, .about = "of the store; 0: not known"},
    {"building", API_TEXT, .optional = true,
     .about = "a new model, whose vectors are being made; null: none"},
    {"reason", API_TEXT, .optional = true,
     .about = "what searches by meaning lack, by a word; null: nothing"},
    {"rebuilt", API_INT, .about = "points of a store that is made anew from MySQL"},
    {"rebuild_total", API_INT, .about = "that it will have; 0: it is not made anew"},
    API_END,
};

static int put_collection(struct task *t, struct api_call *c, struct json_writer *w,
                          enum collection which)
{
    struct collection_look x;
    int err = collection_look(t, c->node->collections, which, &x);
    if (err)
        return err;
    jw_object(w);
    jw_put_str(w, "name", str_of(x.name));
    jw_put_str(w, "store", str_of(x.store));
    jw_put_str(w, "model", x.model);
    api_put_known(w, "dimension", x.model.p != NULL, x.dimension);
    jw_put_int(w, "points", x.points);
    jw_put_int(w, "bytes", x.bytes);
    jw_put_str(w, "building", x.building);
    jw_put_str(w, "reason", x.reason ? str_of(x.reason) : STR_NULL);
    jw_put_int(w, "rebuilt", x.rebuilt);
    jw_put_int(w, "rebuild_total", x.rebuild_total);
    jw_end_object(w);
    return 0;
}

#define POSTS(member) API_AT(struct post_counts, member)
static const struct api_field post_fields[] = {
    {"pending", API_INT, POSTS(pending), .about = "posts that wait"},
    {"processing", API_INT, POSTS(processing), .about = "in work"},
    {"completed", API_INT, POSTS(completed), .about = "embedded, or empty"},
    {"failed", API_INT, POSTS(failed), .about = "given up"},
    API_END,
};

#define PAPERS(member) API_AT(struct papers_look, member)
static const struct api_field paper_fields[] = {
    {"total", API_INT, PAPERS(total), .about = "papers of the corpus"},
    {"indexed", API_INT, PAPERS(indexed), .about = "found by their words"},
    {"embedded", API_INT, PAPERS(embedded), .about = "of those: found by meaning, too"},
    {"bare", API_INT, PAPERS(bare), .about = "neither title nor abstract: not indexed"},
    {"refused", API_INT, PAPERS(refused), .about = "the service gave no vector for them"},
    {"units_pending", API_INT, PAPERS(units_pending),
     .about = "units that wait: of a journal and year, or a slice of one"},
    {"units_working", API_INT, PAPERS(units_working), .about = "units in work, over all nodes"},
    {"units_failed", API_INT, PAPERS(units_failed), .about = "units that were given up"},
    API_END,
};

static const struct api_field look_reply[] = {
    {"service", API_BOOL, .about = "there is an embedding service"},
    {"simulated", API_BOOL, .about = "it is the built-in simulated one"},
    {"collections", API_OBJECTS, .most = COLLECTION_COUNT, .about = "of points",
     .fields = collection_fields},
    {"posts", API_OBJECT, .about = "how many are embedded", .fields = post_fields},
    {"papers", API_OBJECT, .about = "how many are indexed, as of the last work on each unit",
     .fields = paper_fields},
    API_END,
};

static int look(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct node *n = c->node;
    struct post_counts posts;
    struct papers_look papers;
    int err = papers_look(t, n->sql, &papers);
    if (!err)
        err = post_count(t, n->sql, &posts);
    if (err)
        return err;
    jw_put_bool(w, "service", n->embedding != NULL);
    jw_put_bool(w, "simulated", n->simulated_embedding);
    jw_put_array(w, "collections");
    for (int i = 0; i < COLLECTION_COUNT && !err; i++)
        err = put_collection(t, c, w, (enum collection)i);
    jw_end_array(w);
    jw_put_object(w, "posts");
    api_put_fields(t, w, post_fields, &posts);
    jw_end_object(w);
    jw_put_object(w, "papers");
    api_put_fields(t, w, paper_fields, &papers);
    jw_end_object(w);
    return err;
}

/* --- journals --- */

#define AT(member) API_AT(struct paper_journal, member)
static const struct api_field journal_fields[] = {
    {"journal", API_TEXT, AT(journal), .most = NAME_CHARS_MAX, .about = "its short name"},
    {"papers", API_INT, AT(papers), .about = "in the corpus"},
    {"indexed", API_INT, AT(indexed), .about = "found by their words"},
    {"embedded", API_INT, AT(embedded), .about = "of those: found by meaning, too"},
    {"refused", API_INT, AT(refused), .about = "the service gave no vector for them"},
    {"units_waiting", API_INT, AT(units_waiting), .about = "units that wait, or are in work"},
    {"units_failed", API_INT, AT(units_failed), .about = "units that were given up"},
    {"changed", API_BOOL, AT(changed),
     .about = "it is indexed, and the corpus has other papers than were"},
    {"error", API_TEXT, AT(error), .optional = true, .most = 1000,
     .about = "why one of its units failed, or what it waits for"},
    {"reason_code", API_TEXT, AT(reason), .optional = true, .choices = EMBED_REASONS,
     .about = "the same, by a word"},
    API_END,
};
static const struct api_field journals_query[] = {
    {"q", API_TEXT, .optional = true, .least = 1, .most = Q_CHARS_MAX,
     .about = "only journals whose name has this in it"},
    {"limit", API_INT, .optional = true, .least = 1, .most = PAGE_MAX,
     .about = "of one page; 50 if absent"},
    {"cursor", API_TEXT, .optional = true, .least = 1, .most = NAME_CHARS_MAX,
     .about = "next of the page before"},
    API_END,
};
static const struct api_field journals_reply[] = {
    {"journals", API_OBJECTS, .most = PAGE_MAX, .about = "with papers, by their names",
     .fields = journal_fields},
    {"next", API_TEXT, .optional = true, .most = NAME_CHARS_MAX,
     .about = "cursor of the next page; null: there is none"},
    API_END,
};

static int journals(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct str q = api_text(c, "q"), after = api_text(c, "cursor");
    struct paper_journal *list = NULL;
    int64_t limit = 50;
    size_t count = 0;
    (void)api_int(c, "limit", &limit);
    int err = papers_journals(t, c->node->sql, q.p ? q : STR(""), after.p ? after : STR(""),
                              limit + 1, &list, &count);
    if (err)
        return err;
    bool more = count > (size_t)limit;
    count -= more;
    api_put_list(t, w, "journals", journal_fields, list, count);
    jw_put_str(w, "next", more ? list[count - 1].journal : STR_NULL);
    return 0;
}

/* --- asking for it --- */

static const struct api_field want_body[] = {
    {"journals", API_TEXTS, .optional = true, .least = 1, .most = PAPERS_JOURNALS_MAX,
     .item_most = NAME_CHARS_MAX, .about = "all papers of these, by their short names"},
    {"all", API_BOOL, .optional = true, .about = "true: all papers of the corpus"},
    {"changed", API_BOOL, .optional = true,
     .about = "true: what the corpus has otherwise by now, of journals that are indexed"},
    {"failed", API_BOOL, .optional = true, .about = "true: units that were given up, once more"},
    API_END,
};
static const struct api_field want_reply[] = {
    {"queued", API_INT, .about = "units; without those that wait already or are in work"},
    {"papers", API_INT, .about = "in these units, about"},
    API_END,
};

/* Exactly one member says what. */
static int read_wish(struct task *t, struct api_call *c, struct papers_wish *w)
{
    static const struct {
        const char *name;
        enum papers_which which;
    } words[] = {{"all", PAPERS_ALL}, {"changed", PAPERS_CHANGED}, {"failed", PAPERS_FAILED}};
    int said = 0;
    w->count = api_texts(t, c, "journals", &w->journals);
    said += w->count > 0;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        bool is = false;
        if (!api_bool(c, words[i].name, &is))
            continue;
        if (!is)
            return api_refuse(t, c, words[i].name, "must be true, or absent");
        w->which = words[i].which;
        if (++said > 1)
            return api_refuse(t, c, words[i].name, "cannot be given with another member");
    }
    return said ? 0 : api_refuse(t, c, "journals", "or all, changed or failed must be given");
}

static int want(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct papers_wish wish = {.which = PAPERS_JOURNALS};
    struct papers_wanted out;
    int err = read_wish(t, c, &wish);
    if (err)
        return err;
    if (!c->node->embedding)
        return task_fail(t, ERR_CONFLICT,
                         "there is no embedding service: set ai.embedding.url first");
    struct admin_deed by = api_deed(c);
    wish.by = &by;
    err = papers_want(t, c->node->sql, &wish, &out);
    if (err == ERR_NOT_FOUND && out.unknown.p)
        return api_refuse(t, c, "journals", "%s", arena_strdup(task_arena(t), task_error(t)));
    if (err)
        return err;
    jw_put_int(w, "queued", out.units);
    jw_put_int(w, "papers", out.papers);
    return 0;
}

const struct api_route admin_embedding_routes[] = {
    {"GET", "/api/admin/embedding", API_ADMIN, look, "How far posts and papers are embedded",
     .reply = look_reply},
    {"GET", "/api/admin/embedding/journals", API_ADMIN, journals,
     "Which journals are indexed, and how far", .query = journals_query, .reply = journals_reply},
    {"POST", "/api/admin/embedding/papers", API_ADMIN, want,
     "Have papers indexed: of journals, all, what has changed, or what has failed",
     .body = want_body, .reply = want_reply, .status = 202, .body_bytes_max = BODY_BYTES_MAX,
     .audit = "paper.embed"},
    {.method = NULL},
};
