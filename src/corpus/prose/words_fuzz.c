/* The words of any bytes: each is one that a full-text index keeps as it stands. */
#include "corpus/prose/words.h"

#include "base/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

struct seen {
    size_t bytes, begin, count;
    struct buf words;
};

static bool see(void *arg, struct str word, size_t begin, size_t end)
{
    struct seen *s = arg;
    check(word.n >= WORDS_BYTES_MIN && word.n <= WORDS_BYTES_MAX);
    for (size_t i = 0; i < word.n; i++)
        check((word.p[i] >= 'a' && word.p[i] <= 'z') || (word.p[i] >= '0' && word.p[i] <= '9'));
    check(begin < end && end <= s->bytes && begin >= s->begin);
    s->begin = begin;
    s->count++;
    buf_add_str(&s->words, word);
    buf_add_char(&s->words, ' ');
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct str text = str_from((const char *)data, n);
    struct seen s = {.bytes = n};
    struct buf b;
    buf_init(&s.words);
    buf_init(&b);
    words_each(text, see, &s);
    check(words_write(text, SIZE_MAX, &b) == s.count && str_eq(buf_str(&b), buf_str(&s.words)));
    buf_clear(&b);
    check(words_write(text, n / 2, &b) == (s.count < n / 2 ? s.count : n / 2));
    buf_release(&s.words);
    buf_release(&b);
    return 0;
}
