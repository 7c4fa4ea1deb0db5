#include "app/embed/search/routes.h"

#include "app/embed/search/search.h"
#include "corpus/doi.h"

#define KINDS            "post|paper"
#define CURSOR_CHARS_MAX 64
#define NAME_CHARS_MAX   255
#define YEAR_MAX         9999

static struct search_caller caller_of(const struct api_call *c)
{
    return (struct search_caller){.uid = api_uid(c), .admin = c->admin};
}

/* --- what is shown --- */

static const struct api_field mark_fields[] = {
    {"begin", API_INT, .most = SNIPPET_CHARS_MAX, .about = "first character of it"},
    {"end", API_INT, .most = SNIPPET_CHARS_MAX, .about = "the first one behind it"},
    API_END,
};
static const struct api_field hit_fields[] = {
    {"kind", API_TEXT, .choices = KINDS, .about = "what it is"},
    {"id", API_INT, .optional = true, .about = "of a post"},
    {"doi", API_TEXT, .optional = true, .about = "of a paper"},
    {"title", API_TEXT, .about = "plain text"},
    {"snippet", API_TEXT, .most = SNIPPET_CHARS_MAX, .about = "of the text, where it is nearest"},
    {"marks", API_OBJECTS, .most = SNIPPET_MARKS_MAX,
     .about = "words of the question in the snippet, counted in Unicode characters",
     .fields = mark_fields},
    {"score", API_REAL, .about = "the higher the better, within one search"},
    {"journal", API_TEXT, .optional = true, .about = "of a paper"},
    {"year", API_INT, .optional = true, .about = "of a paper, if it is known"},
    {"hide", API_BOOL, .optional = true, .about = "of a post: its owner and admins find it alone"},
    {"mine", API_BOOL, .optional = true, .about = "of a post: it is the caller's"},
    API_END,
};
#define REASON_FIELD                                                                               \
    {                                                                                              \
        "reason", API_TEXT, .optional = true, .choices = SEARCH_REASONS,                           \
                            .about = "why hits may be missing, if it is degraded; else null"       \
    }
static const struct api_field extent_fields[] = {
    {"kind", API_TEXT, .choices = KINDS, .about = "that was searched"},
    {"total", API_INT, .optional = true,
     .about = "that the caller may find: posts with a text, papers of the journals and years that "
              "were asked for; null: not known now"},
    {"by_words", API_INT, .optional = true, .about = "of those: found by their words"},
    {"by_meaning", API_INT, .optional = true, .about = "of those: found by meaning, too"},
    API_END,
};
static const struct api_field page_reply[] = {
    {"hits", API_OBJECTS, .most = SEARCH_PAGE_MAX, .about = "the best first", .fields = hit_fields},
    {"next", API_TEXT, .optional = true, .most = CURSOR_CHARS_MAX,
     .about = "cursor of the following hits, for ten minutes in the same order; null: no more"},
    REASON_FIELD,
    {"searched", API_OBJECTS, .most = ORDER_KINDS,
     .about = "how much there was to be found, by kind; some seconds old", .fields = extent_fields},
    API_END,
};
static const struct api_field like_reply[] = {
    {"hits", API_OBJECTS, .most = SEARCH_PAGE_MAX, .about = "the best first", .fields = hit_fields},
    REASON_FIELD,
    API_END,
};

static void put_hit(struct json_writer *w, const struct search_hit *h)
{
    bool post = h->kind == ORDER_POST;
    jw_object(w);
    jw_put_str(w, "kind", post ? STR("post") : STR("paper"));
    if (post)
        jw_put_int(w, "id", h->id);
    else
        jw_put_str(w, "doi", h->doi);
    jw_put_str(w, "title", h->title);
    jw_put_str(w, "snippet", h->snippet.text);
    jw_put_array(w, "marks");
    for (size_t i = 0; i < h->snippet.mark_count; i++) {
        jw_object(w);
        jw_put_int(w, "begin", h->snippet.marks[i].begin);
        jw_put_int(w, "end", h->snippet.marks[i].end);
        jw_end_object(w);
    }
    jw_end_array(w);
    jw_key(w, STR("score"));
    jw_real(w, h->score);
    if (post) {
        jw_put_bool(w, "hide", h->hide);
        jw_put_bool(w, "mine", h->mine);
    } else {
        jw_put_str(w, "journal", h->journal);
        api_put_known(w, "year", h->year > 0, h->year);
    }
    jw_end_object(w);
}

static void put_hits(struct api_call *c, struct json_writer *w, const struct search_page *p)
{
    jw_put_array(w, "hits");
    for (size_t i = 0; i < p->count; i++)
        put_hit(w, &p->hits[i]);
    jw_end_array(w);
    jw_put_str(w, "reason", str_of(p->reason));
    c->degraded |= p->reason != NULL;
}

static void put_searched(struct json_writer *w, const struct search_page *p)
{
    jw_put_array(w, "searched");
    for (int k = 0; k < ORDER_KINDS; k++) {
        const struct search_extent *x = &p->extents[k];
        if (!x->asked)
            continue;
        jw_object(w);
        jw_put_str(w, "kind", k == ORDER_POST ? STR("post") : STR("paper"));
        api_put_known(w, "total", x->known, x->of.total);
        api_put_known(w, "by_words", x->known, x->of.by_words);
        api_put_known(w, "by_meaning", x->known, x->of.by_meaning);
        jw_end_object(w);
    }
    jw_end_array(w);
}

static int too_often(struct task *t, struct api_call *c, int err, int64_t retry_after_s)
{
    if (err == ERR_RATE)
        http_set_header(c->x, "Retry-After", str_int(task_arena(t), retry_after_s));
    return err;
}

/* --- questions --- */

static bool is_blank(char c)
{
    return (unsigned char)c <= ' ';
}

static int take_wish(struct task *t, struct api_call *c, struct search_wish *w)
{
    struct str kind = api_text(c, "kind");
    int64_t limit = SEARCH_PAGE;
    *w = (struct search_wish){.who = caller_of(c), .cursor = api_text(c, "cursor")};
    w->question = str_trim_if(api_text(c, "q"), is_blank);
    w->kinds[ORDER_POST] = !kind.p || str_eq(kind, STR("post"));
    w->kinds[ORDER_PAPER] = !kind.p || str_eq(kind, STR("paper"));
    w->journal_count = api_texts(t, c, "journal", &w->journals);
    (void)api_int(c, "year_from", &w->year_from);
    (void)api_int(c, "year_to", &w->year_to);
    (void)api_int(c, "limit", &limit);
    w->limit = (size_t)limit;
    if (w->question.n == 0)
        return api_refuse(t, c, "q", "is blank");
    if (!w->kinds[ORDER_PAPER] && (w->journal_count || w->year_from || w->year_to))
        return api_refuse(t, c, "kind", "posts have neither journal nor year");
    if (w->year_to && w->year_from > w->year_to)
        return api_refuse(t, c, "year_from", "must not be after year_to");
    return 0;
}

static int ask(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct search_wish wish;
    struct search_page page;
    int64_t retry_after_s = 0;
    int err = take_wish(t, c, &wish);
    if (err)
        return err;
    err = search_page(t, c->node->searches, &wish, &page, &retry_after_s);
    if (err == ERR_INVALID)
        return api_refuse(t, c, wish.cursor.p ? "cursor" : "q", "%s",
                          arena_strdup(task_arena(t), task_error(t)));
    if (err)
        return too_often(t, c, err, retry_after_s);
    put_hits(c, w, &page);
    jw_put_str(w, "next", page.next);
    put_searched(w, &page);
    return 0;
}

static const struct api_field ask_query[] = {
    {"q", API_TEXT, .least = 1, .most = SEARCH_QUESTION_CHARS_MAX, .about = "question, or words"},
    {"kind", API_TEXT, .optional = true, .choices = KINDS, .about = "absent: both"},
    {"journal", API_TEXTS, .optional = true, .least = 1, .most = SEARCH_JOURNALS_MAX,
     .item_most = NAME_CHARS_MAX, .about = "of papers, by its short name; may be repeated"},
    {"year_from", API_INT, .optional = true, .least = 1, .most = YEAR_MAX, .about = "of papers"},
    {"year_to", API_INT, .optional = true, .least = 1, .most = YEAR_MAX, .about = "of papers"},
    {"limit", API_INT, .optional = true, .least = 1, .most = SEARCH_PAGE_MAX,
     .about = "so many hits; 20 if absent"},
    {"cursor", API_TEXT, .optional = true, .least = 1, .most = CURSOR_CHARS_MAX,
     .about = "next of the page before, of the same search"},
    API_END,
};

/* --- what is alike --- */

/* The owner that the parameters name. */
static int take_owner(struct task *t, struct api_call *c, enum order_kind *kind, uint64_t *owner)
{
    int64_t id = 0;
    bool has_id = api_int(c, "id", &id);
    struct str given = api_text(c, "doi");
    *kind = str_eq(api_text(c, "kind"), STR("post")) ? ORDER_POST : ORDER_PAPER;
    if (*kind == ORDER_POST) {
        *owner = (uint64_t)id;
        return has_id && !given.p ? 0 : api_refuse(t, c, "id", "a post is named by its id alone");
    }
    if (has_id || !given.p)
        return api_refuse(t, c, "doi", "a paper is named by its DOI alone");
    struct str doi = str_lower(task_arena(t), given); /* a made-up one is none */
    (void)doi_normal(task_arena(t), given, &doi);
    *owner = collection_paper_owner(doi);
    return 0;
}

static int ask_like(struct task *t, struct api_call *c, struct json_writer *w)
{
    enum order_kind kind;
    uint64_t owner;
    struct search_page page;
    int64_t retry_after_s = 0, limit = SEARCH_PAGE;
    (void)api_int(c, "limit", &limit);
    int err = take_owner(t, c, &kind, &owner);
    if (err)
        return err;
    err = search_like(t, c->node->searches, caller_of(c), kind, owner, (size_t)limit, &page,
                      &retry_after_s);
    if (err)
        return too_often(t, c, err, retry_after_s);
    put_hits(c, w, &page);
    return 0;
}

static const struct api_field like_query[] = {
    {"kind", API_TEXT, .choices = KINDS, .about = "of what is given, and of what is found"},
    {"id", API_INT, .optional = true, .least = 1, .most = INT64_MAX, .about = "of a post"},
    {"doi", API_TEXT, .optional = true, .least = 1, .most = NAME_CHARS_MAX, .about = "of a paper"},
    {"limit", API_INT, .optional = true, .least = 1, .most = SEARCH_PAGE_MAX,
     .about = "so many hits; 20 if absent"},
    API_END,
};

const struct api_route search_routes[] = {
    {"GET", "/api/search", API_EITHER, ask, "Search posts and papers", ask_query, NULL, page_reply,
     .status = 200},
    {"GET", "/api/search/like", API_EITHER, ask_like, "Find what is like a post or a paper",
     like_query, NULL, like_reply, .status = 200},
    {.method = NULL},
};
