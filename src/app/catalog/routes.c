#include "app/catalog/routes.h"

#include "engine/api/choice.h"
#include "engine/api/run.h"
#include "engine/papers/entry.h"
#include "engine/search/neighbours.h"
#include "engine/watch/standing.h"

#define NAME_CHARS_MAX 255 /* of a journal or a tag: what their columns hold */

#define NAME            .least = 1, .most = NAME_CHARS_MAX
#define COUNT           .most = INT64_MAX
#define TAG(member)     API_AT(struct catalog_tag, member)
#define JOURNAL(member) API_AT(struct catalog_journal, member)
#define ROW(member)     API_AT(struct catalog_estimate_row, member)
#define WHOLE(member)   API_AT(struct catalog_estimate, member)

static const struct api_field tag_fields[] = {
    {"tag", API_TEXT, TAG(tag), NAME, .about = "name of the tag"},
    {"type", API_TEXT, TAG(type), .about = "what kind of tag it is"},
    {"journals", API_INT, TAG(journals), COUNT, .about = "journals that have it"},
    API_END,
};

static int list_tags(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct catalog_tag *tags;
    size_t count;
    bool degraded;
    int err = catalog_tags(t, c->node->catalog, &tags, &count, &degraded);
    if (err)
        return err;
    c->degraded |= degraded;
    api_put_list(t, w, "tags", tag_fields, tags, count);
    return 0;
}

static const struct api_field journal_fields[] = {
    {"name", API_TEXT, JOURNAL(name), NAME, .about = "its short name, by which it is chosen"},
    {"full_name", API_TEXT, JOURNAL(full_name), .optional = true, .about = "its name"},
    {"data_range", API_TEXT, JOURNAL(data_range), .optional = true,
     .about = "the years that are there, in words"},
    {"update_date", API_TEXT, JOURNAL(update_date), .optional = true,
     .about = "when its papers were last brought up to date"},
    {"price", API_INT, JOURNAL(price), COUNT, .about = "points for each paper; one point is 1.00"},
    {"years", API_COUNTS, COUNT, .about = "papers of each year"},
    API_END,
};

static void put_years(struct json_writer *w, const struct catalog_journal *j)
{
    jw_put_object(w, "years");
    for (size_t i = 0; i < j->year_count; i++) {
        char space[STR_INT_BYTES];
        jw_key(w, str_digits(space, j->years[i].year));
        jw_int(w, j->years[i].papers);
    }
    jw_end_object(w);
}

static void put_journal(struct task *t, struct json_writer *w, const struct catalog_journal *j)
{
    jw_object(w);
    api_put_fields(t, w, journal_fields, j);
    put_years(w, j);
    jw_end_object(w);
}

static int list_journals(struct task *t, struct api_call *c, struct json_writer *w)
{
    const struct str *tags = NULL;
    struct catalog_journal *journals;
    size_t tag_count = api_texts(t, c, "tag", &tags), count;
    bool degraded, any = str_eq(api_text(c, "match"), STR("any"));
    int err =
        catalog_journals(t, c->node->catalog, tags, tag_count, any, &journals, &count, &degraded);
    if (err)
        return err;
    c->degraded |= degraded;
    jw_put_array(w, "journals");
    for (size_t i = 0; i < count; i++)
        put_journal(t, w, &journals[i]);
    jw_end_array(w);
    return 0;
}

static const struct api_field row_fields[] = {
    {"journal", API_TEXT, ROW(journal), NAME, .about = "its short name"},
    {"papers", API_INT, ROW(papers), COUNT, .about = "in the chosen years"},
    {"price", API_INT, ROW(price), COUNT, .about = "points for each paper"},
    {"cost", API_MONEY, ROW(cents), COUNT, .about = "papers times price"},
    API_END,
};
static const struct api_field found_fields[] = {
    {"found", API_INT, COUNT, .about = "papers: as many as were asked for, or all that there are"},
    {"reason", API_TEXT, .optional = true, .choices = COLLECTION_REASONS,
     .about = "why papers may be missing, or none is found: a run would be refused; null: none"},
    API_END,
};
static const struct api_field estimate_reply[] = {
    {"papers", API_INT, WHOLE(papers), COUNT, .about = "of all chosen journals and years"},
    {"cost", API_MONEY, WHOLE(cents), COUNT, .about = "of all of them"},
    API_FREE_FIELDS,
    {"without_abstract", API_INT, .optional = true, COUNT,
     .about = "of those papers; absent: they are not counted"},
    {"simulated", API_BOOL,
     .about = "the server has no AI but its simulated one: verdicts would mean nothing"},
    {"per_journal", API_OBJECTS, .fields = row_fields,
     .about = "in the order of the request; of the nearest papers: those that have some, by name"},
    {"nearest", API_OBJECT, .optional = true, .fields = found_fields,
     .about = "of the nearest papers alone"},
    API_REASON_FIELDS("what would hold a run that was submitted now; null: nothing"),
    {"seconds_min", API_INT, .optional = true, COUNT,
     .about = "it would take so long at least; null: that is not known"},
    {"seconds_max", API_INT, .optional = true, COUNT, .about = "and so long at most"},
    API_END,
};

/* What a choice is priced at; the list of the nearest papers is as of now, and not kept. */
static int price(struct task *t, struct api_call *c, const struct api_choice *choice,
                 struct neighbours *out, struct str *unknown)
{
    if (!choice->nearest.text.p) {
        out->journal_count = choice->choice.journal_count;
        return catalog_price(t, c->node->catalog, &choice->choice, &out->cost, unknown,
                             &out->degraded);
    }
    struct neighbours_from from = {c->node->collections, c->node->sql, c->node->catalog};
    struct neighbours_wish wish = {c->session.uid, choice->nearest.text, choice->nearest.papers,
                                   choice->choice};
    int err = neighbours_find(t, &from, &wish, out, unknown);
    return err == ERR_INVALID ? api_refuse(t, c, "nearest.q", "%s", task_error(t)) : err;
}

static void put_found(struct json_writer *w, const struct neighbours *n)
{
    jw_put_object(w, "nearest");
    jw_put_int(w, "found", (int64_t)n->count);
    jw_put_str(w, "reason", n->reason ? str_of(n->reason) : STR_NULL);
    jw_end_object(w);
}

static int estimate(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct api_choice choice;
    struct neighbours list = {.count = 0};
    struct str unknown;
    int err = api_choice(t, c, &choice);
    if (!err)
        err = price(t, c, &choice, &list, &unknown);
    if (err == ERR_NOT_FOUND)
        return api_choice_unknown(t, c, unknown);
    if (err)
        return err;
    struct catalog_estimate e = list.cost;
    c->degraded |= list.degraded || list.reason;
    api_put_fields(t, w, estimate_reply, &e);
    if (e.bare >= 0)
        jw_put_int(w, "without_abstract", e.bare);
    jw_put_bool(w, "simulated", c->node->simulated);
    err = api_put_free(t, c, w, e.cents);
    if (err)
        return err;
    api_put_list(t, w, "per_journal", row_fields, e.rows, list.journal_count);
    if (choice.nearest.text.p)
        put_found(w, &list);
    struct run_view v;
    standing_expect(t, c->node->standing, c->session.uid, e.papers, &v);
    api_put_reason(w, reason_word(v.why.code), &v.why);
    api_put_seconds(w, "seconds_min", "seconds_max", &v);
    return 0;
}

/* --- one paper --- */

#define ENTRY(member) API_AT(struct entry, member)
#define LONG          .optional = true, .most = INT32_MAX

static const struct api_field paper_reply[] = {
    {"doi", API_TEXT, ENTRY(doi), NAME, .about = "as the corpus has it, made up if there is none"},
    {"journal", API_TEXT, ENTRY(journal), NAME, .about = "its short name"},
    {"year", API_INT, ENTRY(year), API_YEARS, .about = "of the paper"},
    {"title", API_TEXT, ENTRY(fields.title), LONG, .about = "as plain text"},
    {"authors", API_TEXT, ENTRY(fields.authors), LONG, .about = "as they sign"},
    {"printed_in", API_TEXT, ENTRY(fields.printed_in), LONG,
     .about = "journal or book, as the entry says"},
    {"abstract", API_TEXT, ENTRY(fields.abstract), LONG, .about = "as plain text"},
    {"bibtex", API_TEXT, ENTRY(bibtex), .most = INT32_MAX,
     .about = "the entry, with the @strings it needs"},
    API_END,
};

static int show_paper(struct task *t, struct api_call *c, struct json_writer *w)
{
    struct entry e;
    int err = entry_find(t, c->node->sql, api_text(c, "doi"), &e);
    if (!err)
        api_put_fields(t, w, paper_reply, &e);
    return err;
}

/* --- the table --- */

static const struct api_field paper_query[] = {
    {"doi", API_TEXT, NAME, .about = "of the paper, or the name that the corpus has made up"},
    API_END,
};

static const struct api_field tags_reply[] = {
    {"tags", API_OBJECTS, .about = "by type, then name", .fields = tag_fields},
    API_END,
};

static const struct api_field journals_query[] = {
    {"tag", API_TEXTS, true, .most = CATALOG_TAGS_MAX, .item_most = NAME_CHARS_MAX,
     .about = "a tag; without any, all journals are listed"},
    {"match", API_TEXT, true, .choices = "all|any",
     .about = "journals that have all of the tags, or any of them; all if not given"},
    API_END,
};
static const struct api_field journals_reply[] = {
    {"journals", API_OBJECTS, .about = "by name", .fields = journal_fields},
    API_END,
};

static const struct api_field choice_body[] = {
    {API_JOURNALS_FIELD}, {API_YEAR_FROM_FIELD}, {API_YEAR_TO_FIELD}, {API_NEAREST_FIELD}, API_END};

const struct api_route catalog_routes[] = {
    {"GET", "/api/tags", API_USER, list_tags, "Tags to choose journals by", .reply = tags_reply},
    {"GET", "/api/journals", API_USER, list_journals, "Journals by tags", .query = journals_query,
     .reply = journals_reply},
    {"POST", "/api/estimate", API_USER, estimate, "What a choice would cost", .body = choice_body,
     .reply = estimate_reply, .body_bytes_max = API_CHOICE_BYTES_MAX},
    {"GET", "/api/papers", API_USER, show_paper, "One paper of the corpus, outside of any run",
     .query = paper_query, .reply = paper_reply},
    {.method = NULL},
};
