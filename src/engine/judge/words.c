/* Verdicts in words. If a model that was asked for JSON answers with prose, a word is a verdict
 * only if it can mean nothing else: it stands where an answer stands, and something that ends it
 * follows. "No doubt it is relevant", "Relevant papers would …" and 是否 are no verdicts. */
#include "engine/judge/verdict.h"

/* Bytes of the entry that s begins with, in either case; 0: none. Lists have longer ones first. */
static size_t one_of(struct str s, const char *const *list)
{
    for (; *list; list++) {
        struct str entry = str_of(*list);
        if (s.n >= entry.n && str_ieq(str_from(s.p, entry.n), entry))
            return entry.n;
    }
    return 0;
}

static struct str skip_all(struct str s, const char *const *list)
{
    size_t n;
    while ((n = one_of(s, list)) > 0)
        s = str_skip(s, n);
    return s;
}

static const char *const decoration[] = {
    " ", "\t", "\r", "\n", "*",  "_",  "`",  "#",  ">",  "- ",     "\"",     "'",      "(", "[",
    "“", "”",  "‘",  "’",  "「", "『", "【", "（", "《", "\u3000", "\u00a0", "\ufeff", NULL};
static const char *const enders[] = {".",  ",",  ";",  "!",  ")",  "]", "}",  "*",  "_",  "`",
                                     "\"", "'",  "\n", "\r", "”",  "’", "。", "，", "；", "！",
                                     "、", "）", "】", "」", "』", "—", "–",  NULL};
static const char *const blanks[] = {" ", "\t", "\u3000", "\u00a0", NULL};
static const char *const at_once[] = {"因为", "由于", NULL}; /* because */
/* What may follow after a blank, and cannot turn the word into something else. */
static const char *const reasons[] = {"- ",       "– ",       "— ",         "—",     "(",   "（",
                                      "because ", "since ",   "the ",       "this ", "it ", "因为",
                                      "由于",     "/ reason", "/ **reason", NULL};

static const char *const no_words[] = {
    "not relevant", "not-relevant", "non-relevant", "nonrelevant", "irrelevant",
    "unrelated",    "false",        "no",           "不相关的",    "不相关",
    "无关",         "不是",         "不",           "否",          NULL};
static const char *const yes_words[] = {"relevant", "yes",  "true", "相关的",
                                        "相关",     "是的", "是",   NULL};
/* A yes with one of these behind it is none. */
static const char *const denials[] = {"not relevant",
                                      "irrelevant",
                                      "n't relevant",
                                      "n’t relevant",
                                      "not directly relevant",
                                      "not really relevant",
                                      "不相关",
                                      "无关",
                                      NULL};
static const char *const labels[] = {"answer", "verdict",  "relevant", "relevance", "结论", "答案",
                                     "判断",   "是否相关", "相关性",   "相关",      NULL};
static const char *const reason_labels[] = {"reason", "reasoning", "explanation", "rationale",
                                            "理由",   "原因",      NULL};
static const char *const around_labels[] = {"*", "_", "\"", " ", NULL};
static const char *const colons[] = {":", "：", "?", "？", NULL};

/* The word that s begins with; *n is its length. */
static enum word word_at(struct str s, size_t *n)
{
    if ((*n = one_of(s, no_words)) > 0)
        return WORD_NO;
    return (*n = one_of(s, yes_words)) > 0 ? WORD_YES : WORD_NONE;
}

/* "Irrelevant: no", "Relevant: no": the word is a question, and its answer follows. */
static bool is_answered(struct str s, struct str rest)
{
    size_t n, colon = one_of(rest, colons);
    struct str after = skip_all(str_skip(rest, colon), decoration);
    return one_of(s, labels) || word_at(after, &n) != WORD_NONE;
}

/* Whether the word that s begins with is over before rest. */
static bool ends_here(struct str s, struct str rest)
{
    if (rest.n == 0 || one_of(rest, enders) || one_of(rest, at_once))
        return true;
    if (str_starts(rest, STR(":")) || str_starts(rest, STR("：")))
        return !is_answered(s, rest);
    struct str past = skip_all(rest, blanks);
    return past.n < rest.n && (past.n == 0 || one_of(past, enders) || one_of(past, reasons));
}

/* The verdict at the beginning of s, after quotes and stars. */
static enum word verdict_at(struct str s, struct str *rest)
{
    s = skip_all(s, decoration);
    size_t n;
    enum word word = word_at(s, &n);
    if (word == WORD_NONE || !ends_here(s, str_skip(s, n)))
        return WORD_NONE;
    *rest = str_skip(s, n);
    return word;
}

/* Bytes of a label and its colon that s begins with, stars in between or not; 0: none. */
static size_t label_at(struct str s, const char *const *list)
{
    size_t n = one_of(s, list);
    if (n == 0)
        return 0;
    struct str rest = skip_all(str_skip(s, n), around_labels);
    size_t colon = one_of(rest, colons);
    return colon ? s.n - rest.n + colon : 0;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c & 0x80);
}

/* A label within a word, or a denied one, is none. */
static bool continues(struct str text, size_t i)
{
    struct str before = str_from(text.p, i);
    struct str last = before.n < 4 ? before : str_skip(before, before.n - 4);
    if (str_ends(before, STR("不")) || str_ends(before, STR("-")) || str_ieq(last, STR("not ")))
        return true;
    return i > 0 && is_letter(text.p[i - 1]) && !(text.p[i] & 0x80);
}

static bool mentions(struct str text, const char *const *list)
{
    for (size_t i = 0; i < text.n; i++)
        if (one_of(str_skip(text, i), list))
            return true;
    return false;
}

/* The text behind "Reason:" and the like; "": there is none. */
static struct str reason_in(struct str text)
{
    for (size_t i = 0; i < text.n; i++) {
        size_t n = continues(text, i) ? 0 : label_at(str_skip(text, i), reason_labels);
        if (n > 0)
            return skip_all(str_skip(text, i + n), decoration);
    }
    return STR("");
}

enum word words_read(struct str text, struct str *reason)
{
    struct str rest;
    *reason = STR("");
    enum word word = verdict_at(text, &rest);
    if (word != WORD_NONE)
        *reason = skip_all(skip_all(skip_all(rest, enders), colons), decoration);
    for (size_t i = 0; i < text.n; i++) {
        size_t n = continues(text, i) ? 0 : label_at(str_skip(text, i), labels);
        if (n > 0)
            word = word_and(word, verdict_at(str_skip(text, i + n), &rest));
    }
    if (word == WORD_YES && mentions(text, denials))
        return WORD_CONTRADICTION;
    struct str named = reason_in(text);
    if (named.n)
        *reason = named;
    return word;
}
