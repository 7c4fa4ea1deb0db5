#include "tool/db/init_source.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/file.h"

#define LOOK_BYTES (1 << 20)
#define UTF8_TAIL  3 /* bytes of a character that a piece may end with */

/* --- scanning --- */

/* Digest and encoding, piece by piece. Each piece is hashed under the digest of the one before. */
struct looking {
    uint64_t digest, pieces;
    bool utf8;
    char *bytes;
    size_t kept; /* at the front of bytes: an incomplete character */
};

/* How many bytes at the end are the beginning of a character. */
static size_t cut_character(struct str s)
{
    for (size_t back = 1; back <= UTF8_TAIL && back <= s.n; back++) {
        unsigned char c = (unsigned char)s.p[s.n - back];
        if (c < 0x80)
            return 0;
        if (c >= 0xc0)
            return back < (c >= 0xf0 ? 4u : c >= 0xe0 ? 3u : 2u) ? back : 0;
    }
    return 0;
}

static void look_at(struct looking *l, size_t fresh)
{
    uint8_t key[16];
    memcpy(key, &l->digest, 8);
    memcpy(key + 8, &l->pieces, 8);
    l->digest = siphash(key, str_from(l->bytes + l->kept, fresh));
    l->pieces++;
    struct str all = str_from(l->bytes, l->kept + fresh);
    size_t tail = cut_character(all);
    l->utf8 = l->utf8 && str_utf8_valid(str_from(all.p, all.n - tail));
    memmove(l->bytes, all.p + all.n - tail, tail);
    l->kept = tail;
}

int init_source_look(const char *path, struct init_look *out)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return ERR_IO;
    struct looking l = {.utf8 = true, .bytes = check_memory(malloc(LOOK_BYTES + UTF8_TAIL + 1))};
    size_t n;
    while ((n = fread(l.bytes + l.kept, 1, LOOK_BYTES, file)) > 0)
        look_at(&l, n);
    int why = errno;
    bool failed = ferror(file);
    *out = (struct init_look){(int64_t)(l.digest & INT64_MAX), l.utf8 && l.kept == 0};
    free(l.bytes);
    fclose(file);
    errno = why;
    return failed ? ERR_IO : 0;
}

/* --- reading --- */

struct init_source {
    const struct init_file *file;
    struct init_report *report;
    struct init_counts *counts;
    struct bibtex_file *stream; /* UTF-8 */
    struct bibtex *reader;      /* everything else: over text */
    struct arena arena;
    struct str text;
    size_t used;
};

static void on_problem(void *arg, const struct bibtex_problem *p)
{
    struct init_source *s = arg;
    init_report_problem(s->report, s->file->shown, (int64_t)p->line, p->dropped, p->reason,
                        p->about);
    if (p->dropped && !str_starts(str_of(p->reason), STR("@string"))) {
        s->counts->read++;
        s->counts->rejected++;
    }
}

static int convert(struct init_source *s)
{
    struct str bytes;
    const char *charset;
    int err = file_read(&s->arena, s->file->path, INIT_CONVERT_BYTES_MAX, &bytes);
    if (!err)
        err = init_to_utf8(&s->arena, s->report, s->file->shown, bytes, &s->text, &charset);
    if (!err)
        s->reader = bibtex_new(on_problem, s);
    return err;
}

int init_source_open(struct init_source **out, const struct init_file *f, bool utf8,
                     struct init_report *r, struct init_counts *counts)
{
    struct init_source *s = check_memory(calloc(1, sizeof *s));
    s->file = f;
    s->report = r;
    s->counts = counts;
    arena_init(&s->arena);
    int err = utf8 ? bibtex_open(&s->stream, f->path, on_problem, s) : convert(s);
    if (err)
        init_source_close(s);
    else
        *out = s;
    return err;
}

int init_source_next(struct init_source *s, struct bibtex_entry *e)
{
    if (s->stream)
        return bibtex_read(s->stream, e);
    s->text = str_from(s->text.p + s->used, s->text.n - s->used);
    return bibtex_next(s->reader, s->text, true, e, &s->used) == BIBTEX_ENTRY;
}

struct bibtex *init_source_reader(struct init_source *s)
{
    return s->stream ? bibtex_reader(s->stream) : s->reader;
}

void init_source_close(struct init_source *s)
{
    int why = errno;
    if (s->stream)
        bibtex_close(s->stream);
    if (s->reader)
        bibtex_free(s->reader);
    arena_release(&s->arena);
    free(s);
    errno = why;
}
