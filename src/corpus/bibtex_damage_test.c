/* Damage stays in the entries it touches: bytes of a text are lost, doubled and garbled at random,
 * and every other entry must be read as before, at its new place.
 *
 * It is tried on the text below and, where they are at hand, on real exports, which are not part of
 * the project. BIBTEX_DAMAGE_SEED in the environment gives other damage, BIBTEX_DAMAGE_CORPUS says
 * where the exports are. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "corpus/bibtex.h"
#include "tests/tap.h"

#define SEED           20240501
#define ROUNDS         1000
#define PLACES_MAX     5
#define DAMAGE_MAX     200 /* bytes at one place */
#define SLICE_MIN      100000
#define SLICE_MAX      300000
#define EXPORTS        3
#define EXPORT_ENTRIES 8599

static const char built_in[] =
    "\xef\xbb\xbf% A list as people keep them.\n"
    "@string{jf = {Journal of Forests}}\n"
    "@string(pub = \"Press \" # jf)\n"
    "@preamble{\"\\newcommand{\\x}{y}\"}\n\n"
    "@article{plain2001,\n  title = {A plain title},\n  year = {2001}\n}\n"
    "@ARTICLE{Upper2002,\nTITLE={Upper Case},\nYEAR=2002,\n}\n\n"
    "@article{quoted2003, title = \"Quoted {\\\"o} title\", year = \"2003\"}\n"
    "@article{joined2004, title = \"One \" # {Two} # \" Three\", journal = jf, year = 2004}\n"
    "@inproceedings(paren2005,\n  title = {In (two) parentheses},\n  year = 2005)\n"
    "@article{nested2006, title = {A {B {C {D {E}}}} f}, year = 2006}\n"
    "@article{email2007, title = {Mail a@b.org or @you}, note = {x @ y}, year = 2007}\n"
    "@article{lines2008,\n  abstract = {First line\n    second line\n\n    third {line}\n  },\n"
    "  year = 2008\n}\n"
    "@article{crlf2009,\r\n  title = {Carriage returns},\r\n  year = {2009}\r\n}\r\n"
    "@book{bare2010, publisher = pub, month = jan, year = 2010}\n"
    "  @misc{indented2011, title = {Indented}, year = 2011}\n"
    "\t@misc{tab2012, title = {By a tab}, year = 2012}\n"
    "@misc{chinese2013, title = {\u4e2d\u6587\u6458\u8981}, author = {\u5f20\u4e09}, year = 2013}\n"
    "@misc{gbk2014, title = {\xd6\xd0\xce\xc4}, year = 2014}\n"
    "@misc{comma2015, title = {No comma}\n  year = 2015}\n"
    "@misc{nokey2016\n  , title = {Comma on the next line}, year = 2016}\n"
    "@misc{, title = {Empty key}, year = 2017}\n"
    "@misc{10.1002/(SICI)1<2::A>3.0;2-O, title = {A DOI for a key}, year = 2018}\n"
    "@techreport{esc2019, title = {Braces \\{ \\} escaped}, year = 2019}\n"
    "@phdthesis{math2020, title = {On $x_{i}^{2}$ and \\(\\alpha\\)}, year = 2020}\n"
    "Some prose between entries, with mail to c@d.org and a { brace.\n"
    "@article{after2021, title = {After prose}, year = 2021}\n"
    "@comment{jabref-meta: groups {one {two}; three};}\n"
    "@article{twice2022, title = {One}, title = {Two}, year = 2022}\n"
    "@article{inner2023, title = \"He said \"yes\" then\", year = 2023}\n"
    "@article{empty2024, title = {}, note = \"\", pages = , year = 2024}\n"
    "@article{tail2025, title = {Comma at the end}, year = 2025,\n}\n"
    "@article\n{broken_head2026, title = {Brace on the next line}, year = 2026}\n"
    "@Comment{mendeley: nothing to see}\n"
    "@article {space2027, title = {Space before the brace}, year = 2027}\n"
    "@article{css2028, abstract = {as in\n @media (a b)\n@home\n @b{c d}}, year = 2028}\n"
    "@article{url2029, url = {https://doi.org/10.1000/a_b\\%20c}, year = 2029}\n"
    "@article{html2030, abstract = {<jats:p>x &lt; y</jats:p>}, year = 2030}\n"
    "@article{hash2031, title = {C# and # alone}, year = 2031}\n"
    "@incollection{long2032, booktitle = {The longest title of all that this list has, which goes "
    "on and on so that damage of two hundred bytes has room in it, and then goes on once more, for "
    "the sake of those two hundred bytes, until it ends}, year = 2032}\n"
    "@online{last2033, title = {The last}, year = 2033}\n";

static uint64_t state;

static size_t draw(size_t below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(state >> 33) % below;
}

static size_t between(size_t least, size_t most)
{
    return least + draw(most - least + 1);
}

/* --- a text and its entries --- */

struct place {
    size_t from;    /* the line break before the entry, or the entry where there is none */
    size_t at, end; /* the entry */
    bool own_line;  /* nothing but blanks stands before it on its line */
};

struct text {
    struct str bytes;
    struct place *places;
    size_t count, cap;
};

static void add_place(struct text *t, struct str raw)
{
    if (t->count == t->cap) {
        t->cap = t->cap ? t->cap * 2 : 64;
        t->places = check_memory(reallocarray(t->places, t->cap, sizeof(*t->places)));
    }
    const char *begin = t->bytes.p, *p = raw.p;
    while (p > begin && (p[-1] == ' ' || p[-1] == '\t'))
        p--;
    struct place at = {.at = (size_t)(raw.p - begin)};
    at.own_line = p == begin || p[-1] == '\n' || p[-1] == '\r';
    at.from = p == begin ? 0 : (size_t)(p - begin) - 1;
    at.end = at.at + raw.n;
    t->places[t->count++] = at;
}

/* Windows grow by step bytes. False when the reader takes more turns than it can have reason to. */
static bool read_places(struct text *t, size_t step)
{
    size_t at = 0, end = step < t->bytes.n ? step : t->bytes.n, used;
    size_t turns = t->bytes.n / step + 2;
    for (size_t i = 0; i < t->bytes.n; i++)
        turns += t->bytes.p[i] == '@';
    struct bibtex *b = bibtex_new(NULL, NULL);
    enum bibtex_step s = BIBTEX_MORE;
    for (; s != BIBTEX_END && turns; turns--) {
        struct bibtex_entry e;
        struct str window = str_from(t->bytes.p + at, end - at);
        s = bibtex_next(b, window, end == t->bytes.n, &e, &used);
        check(used <= window.n);
        if (s == BIBTEX_ENTRY)
            add_place(t, e.raw);
        at += used;
        if (s == BIBTEX_MORE)
            end = t->bytes.n - end < step ? t->bytes.n : end + step;
    }
    bibtex_free(b);
    return s == BIBTEX_END;
}

/* --- damage --- */

struct damage {
    size_t from, to;  /* bytes of the text that are touched */
    ptrdiff_t longer; /* by how much this and all damage before it moves the rest */
};

static void garble(struct buf *out, struct str s, bool bits)
{
    char *p = buf_reserve(out, s.n);
    for (size_t i = 0; i < s.n; i++)
        p[i] = (char)(bits ? s.p[i] ^ (1 << draw(8)) : (int)draw(256));
    buf_added(out, s.n);
}

static void spoil(struct buf *out, struct str s)
{
    switch (draw(4)) {
    case 0: /* cut */
        break;
    case 1: /* doubled */
        buf_add_str(out, s);
        buf_add_str(out, s);
        break;
    case 2:
        garble(out, s, true);
        break;
    default:
        garble(out, s, false);
    }
}

static int by_size(const void *x, const void *y)
{
    const size_t *a = x, *b = y;
    return (*a > *b) - (*a < *b);
}

/* Half of all damage is of a few bytes: that is what breaks braces and leaves the rest. */
static size_t damage(struct buf *out, struct str s, struct damage *all)
{
    size_t count = between(1, PLACES_MAX), at[PLACES_MAX], done = 0;
    for (size_t i = 0; i < count; i++)
        at[i] = draw(s.n);
    qsort(at, count, sizeof(at[0]), by_size);
    for (size_t i = 0; i < count; i++) {
        size_t from = at[i] > done ? at[i] : done, n = between(1, draw(2) ? 3 : DAMAGE_MAX);
        size_t to = s.n - from < n ? s.n : from + n;
        buf_add(out, s.p + done, from - done);
        spoil(out, str_from(s.p + from, to - from));
        all[i] = (struct damage){from, to, (ptrdiff_t)out->len - (ptrdiff_t)to};
        done = to;
    }
    buf_add(out, s.p + done, s.n - done);
    return count;
}

/* False when p is touched; else moves it to where it is now. */
static bool move(struct place *p, const struct damage *all, size_t count)
{
    ptrdiff_t by = 0;
    for (size_t i = 0; i < count; i++) {
        if (all[i].from < p->end && all[i].to > p->from)
            return false;
        if (all[i].to <= p->from)
            by = all[i].longer;
    }
    p->at = (size_t)((ptrdiff_t)p->at + by);
    p->end = (size_t)((ptrdiff_t)p->end + by);
    return true;
}

/* Entries of t in [from, to) that no damage touched and that were not found again. */
static size_t count_lost(const struct text *t, size_t from, size_t to, const struct text *found,
                         const struct damage *all, size_t count, size_t *whole)
{
    size_t lost = 0, j = 0;
    for (size_t i = 0; i < t->count; i++) {
        struct place p = t->places[i];
        if (p.at < from || p.end > to || !p.own_line)
            continue;
        p.from = p.from > from ? p.from - from : 0;
        p.at -= from;
        p.end -= from;
        size_t was = p.at;
        if (!move(&p, all, count))
            continue;
        while (j < found->count && found->places[j].at < p.at)
            j++;
        bool same = j < found->count && found->places[j].at == p.at &&
                    found->places[j].end == p.end &&
                    memcmp(found->bytes.p + p.at, t->bytes.p + from + was, p.end - p.at) == 0;
        if (!same)
            printf("# lost: entry at byte %zu, now %zu\n", from + was, p.at);
        lost += !same;
        ++*whole;
    }
    return lost;
}

struct tally {
    size_t lost, endless, whole;
};

/* Spoils the bytes [from, to) of t and reads what is left. */
static void one_round(const struct text *t, size_t from, size_t to, struct tally *tally)
{
    struct buf spoilt;
    struct damage all[PLACES_MAX];
    uint64_t before = state;
    buf_init(&spoilt);
    size_t count = damage(&spoilt, str_from(t->bytes.p + from, to - from), all);
    /* In memory of just its size, so that reading beyond it is noticed. */
    char *copy = check_memory(malloc(spoilt.len + 1));
    memcpy(copy, spoilt.p, spoilt.len);
    struct text now = {.bytes = str_from(copy, spoilt.len)};
    bool ends = read_places(&now, draw(2) ? now.bytes.n + 1 : between(10000, 50000));
    size_t lost = count_lost(t, from, to, &now, all, count, &tally->whole);
    if (lost || !ends)
        printf("# bytes %zu to %zu, state %llu\n", from, to, (unsigned long long)before);
    tally->lost += lost;
    tally->endless += !ends;
    free(now.places);
    free(copy);
    buf_release(&spoilt);
}

static void report(const struct tally *tally, const char *what)
{
    is_int((int64_t)tally->endless, 0, "%s: the reader always ends", what);
    is_int((int64_t)tally->lost, 0, "%s: no untouched entry is lost", what);
    ok(tally->whole > ROUNDS, "%s: %zu entries were untouched", what, tally->whole);
}

static void test_built_in(void)
{
    struct text t = {.bytes = str_of(built_in)};
    struct tally tally = {0};
    check(read_places(&t, t.bytes.n + 1));
    is_int((int64_t)t.count, 33, "entries of the text built in");
    for (int i = 0; i < ROUNDS; i++)
        one_round(&t, 0, t.bytes.n, &tally);
    report(&tally, "text built in");
    free(t.places);
}

/* --- real exports --- */

static bool map_file(const char *path, struct str *bytes)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) || st.st_size == 0)
        return false;
    size_t n = (size_t)st.st_size;
    *bytes = str_from(mmap(NULL, n, PROT_READ, MAP_PRIVATE, fd, 0), n);
    check(bytes->p != MAP_FAILED);
    close(fd);
    return true;
}

static void count_dropped(void *arg, const struct bibtex_problem *p)
{
    *(size_t *)arg += p->dropped;
}

/* Read block by block, the file gives the same entries as in one piece, each with a title. */
static void whole_file(const char *path, const struct text *t)
{
    struct bibtex_file *f;
    struct bibtex_entry e;
    size_t dropped = 0, n = 0, same = 0;
    check(bibtex_open(&f, path, count_dropped, &dropped) == 0);
    while (bibtex_read(f, &e) == 1) {
        const struct place *p = n < t->count ? &t->places[n] : NULL;
        same += p && e.title.n && str_eq(e.raw, str_from(t->bytes.p + p->at, p->end - p->at));
        n++;
    }
    bibtex_close(f);
    is_int((int64_t)same, (int64_t)n, "%s: entries are slices of the file", path);
    is_int((int64_t)n, (int64_t)t->count, "%s: however it is cut", path);
    is_int((int64_t)dropped, 0, "%s: none is lost", path);
}

static void slice(const struct text *t, struct tally *tally)
{
    size_t from = t->places[draw(t->count)].at, n = between(SLICE_MIN, SLICE_MAX);
    one_round(t, from, t->bytes.n - from < n ? t->bytes.n : from + n, tally);
}

static void test_exports(struct arena *a, const char *folder)
{
    static const char *const names[EXPORTS] = {"acl_sample", "ccl_chinese", "oa_exports"};
    struct text texts[EXPORTS] = {{.count = 0}};
    struct tally tally = {0};
    size_t total = 0;
    for (size_t i = 0; i < EXPORTS; i++) {
        const char *path = arena_printf(a, "%s/%s.bib", folder, names[i]);
        if (!map_file(path, &texts[i].bytes)) {
            printf("# no %s: real exports are not read\n", path);
            return;
        }
        check(read_places(&texts[i], texts[i].bytes.n + 1));
        whole_file(path, &texts[i]);
        total += texts[i].count;
    }
    is_int((int64_t)total, EXPORT_ENTRIES, "real exports: every entry is read");
    for (int i = 0; i < ROUNDS; i++)
        slice(&texts[draw(EXPORTS)], &tally);
    report(&tally, "real exports");
    for (size_t i = 0; i < EXPORTS; i++) {
        munmap((void *)(uintptr_t)texts[i].bytes.p, texts[i].bytes.n);
        free(texts[i].places);
    }
}

int main(void)
{
    const char *seed = getenv("BIBTEX_DAMAGE_SEED"), *folder = getenv("BIBTEX_DAMAGE_CORPUS");
    int64_t number = SEED;
    check(!seed || str_to_i64(str_of(seed), &number));
    state = (uint64_t)number;
    printf("# BIBTEX_DAMAGE_SEED=%lld\n", (long long)number);
    test_built_in();
    struct arena a;
    arena_init(&a);
    char here[] = __FILE__;
    *strrchr(here, '/') = '\0';
    test_exports(&a, folder ? folder : arena_printf(&a, "%s/../../../shared/corpus", here));
    arena_release(&a);
    return tap_done();
}
