#include "engine/search/words.h"

#include <stdlib.h>

#include "base/map.h"
#include "corpus/prose/words.h"
#include "engine/search/words_private.h"
#include "wire/sql.h"

#define TEXT_WORDS_MAX 200000 /* read of one text */
#define DISTINCT_MAX   30000  /* kept of one text */
#define COPIES_MAX     3      /* of one word in a text: more say nothing new */
#define TITLE_COPIES   2      /* more, of one that the title has */
#define TABLE_COLUMNS  5

const char *words_table(enum collection which)
{
    return which == COLLECTION_POSTS ? "post_words" : "paper_words";
}

struct words *words_new(struct sql_pool *sql)
{
    struct words *w = check_memory(calloc(1, sizeof *w));
    w->sql = sql;
    return w;
}

void words_free(struct words *w)
{
    if (!w)
        return;
    for (size_t i = 0; i < COLLECTION_COUNT; i++)
        map_free(w->samples[i].counts);
    free(w);
}

/* --- the words of a text --- */

struct counted {
    struct str word;
    unsigned body, title;
};

struct counting {
    struct arena *arena;
    struct map *seen; /* a word: its place in list, plus 1 */
    struct counted *list;
    size_t count, most, read;
    bool title;
};

static bool count_word(void *arg, struct str word, size_t begin, size_t end)
{
    (void)begin, (void)end;
    struct counting *c = arg;
    int64_t place = 0;
    if (!map_get_int(c->seen, word, &place)) {
        if (c->count == c->most)
            return false;
        c->list[c->count++] = (struct counted){.word = str_dup(c->arena, word)};
        place = (int64_t)c->count;
        map_set_int(c->seen, word, place);
    }
    struct counted *x = &c->list[place - 1];
    *(c->title ? &x->title : &x->body) += 1;
    return ++c->read < TEXT_WORDS_MAX;
}

static size_t copies_of(const struct counted *c)
{
    unsigned body = c->body < COPIES_MAX ? c->body : COPIES_MAX;
    return body + (c->title ? TITLE_COPIES : 0);
}

/* InnoDB ranks by how often a word stands in a text, and knows neither titles nor how long a text
 * is: so each word is written at most so many times. */
static struct str words_of(struct arena *a, const struct words_text *text)
{
    struct counting c = {.arena = a, .seen = map_new(), .most = DISTINCT_MAX, .title = true};
    size_t room = text->title.n + text->text.n + 1;
    c.list = ARENA_ARRAY(a, struct counted, room < DISTINCT_MAX ? room : DISTINCT_MAX);
    words_each(text->title, count_word, &c);
    c.title = false;
    words_each(text->text, count_word, &c);
    map_free(c.seen);
    struct buf b;
    buf_init(&b);
    for (size_t i = 0; i < c.count; i++)
        for (size_t n = copies_of(&c.list[i]); n > 0; n--) {
            buf_add_str(&b, c.list[i].word);
            buf_add_char(&b, ' ');
        }
    struct str words = str_dup(a, buf_str(&b));
    buf_release(&b);
    return words;
}

/* --- rows --- */

/* InnoDB indexes a row anew only if its words have changed, and keeps a list of those that it had
 * indexed before, which every search reads: a row is changed and not replaced. */
int words_put(struct task *t, struct sql *c, enum collection which, const struct words_text *texts,
              size_t count)
{
    struct arena *a = task_arena(t);
    struct sql_value *cells = ARENA_ARRAY(a, struct sql_value, count * TABLE_COLUMNS);
    for (size_t i = 0; i < count; i++) {
        const struct words_text *x = &texts[i];
        const struct sql_value row[TABLE_COLUMNS] = {
            sql_int((int64_t)x->owner), sql_int(x->tags.flags), sql_int(x->tags.journal),
            sql_int(x->tags.year), sql_text(words_of(a, x))};
        memcpy(cells + i * TABLE_COLUMNS, row, sizeof row);
    }
    const char *into = arena_printf(a, "INSERT INTO %s (owner, flags, journal, year, words) VALUES",
                                    words_table(which));
    return count == 0 ? 0
                      : sql_bulk(t, c, into,
                                 "ON DUPLICATE KEY UPDATE flags = VALUES(flags),"
                                 " journal = VALUES(journal), year = VALUES(year),"
                                 " words = VALUES(words)",
                                 TABLE_COLUMNS, count, cells, NULL);
}

int words_drop(struct task *t, struct sql *c, enum collection which, const uint64_t *owners,
               size_t count)
{
    struct arena *a = task_arena(t);
    const char *begin = arena_printf(a, "DELETE FROM %s WHERE owner IN", words_table(which));
    for (size_t at = 0; at < count; at += WORDS_LIST_MAX) {
        size_t n = count - at < WORDS_LIST_MAX ? count - at : WORDS_LIST_MAX;
        size_t marks = sql_padded(n);
        struct sql_value *v = ARENA_ARRAY(a, struct sql_value, marks);
        for (size_t i = 0; i < marks; i++)
            v[i] = sql_int((int64_t)owners[at + (i < n ? i : n - 1)]);
        int err = sql_on_argv(t, c, sql_marks(a, begin, n, ""), marks, v, NULL);
        if (err)
            return err;
    }
    return 0;
}
