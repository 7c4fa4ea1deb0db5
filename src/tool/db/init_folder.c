#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "corpus/charset.h"
#include "tool/db/init_folder_private.h"

#define TEXT_BYTES_MAX (64 << 20)
#define ENTRIES_MAX    1000000 /* names in one folder; .bib files in all of them */
#define KEYS_MAX       1000000
#define KEY_BYTES_MIN  8
#define KEY_BYTES_MAX  512

int folder_fail(struct folder_reading *f, int err, const char *name, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const char *what = arena_vprintf(f->arena, fmt, ap);
    va_end(ap);
    *f->why = arena_printf(f->arena, "%s/%s: %s", f->dir, name, what);
    return err;
}

void *init_room(struct arena *a, void *p, size_t count, size_t item_bytes)
{
    if (count & (count - 1)) /* doubled whenever a power of two is full */
        return p;
    size_t cap = count ? 2 * count : 1;
    return arena_grow(a, p, count * item_bytes, cap * item_bytes);
}

static const char *full_path(struct folder_reading *f, const char *name)
{
    return arena_printf(f->arena, "%s/%s", f->dir, name);
}

static void lost(struct folder_reading *f, const char *name, const char *reason)
{
    init_report_problem(f->report, name, 0, true, reason, STR(""));
}

/* --- names --- */

/* Blanks at the ends are invisible, and the cells of tables are trimmed. */
const char *folder_name_problem(struct str name)
{
    if (name.n == 0)
        return "no name";
    if (name.n > PAPER_NAME_BYTES_MAX)
        return "a name of more than 255 bytes";
    if (!str_utf8_valid(name))
        return "a name that is not UTF-8";
    for (size_t i = 0; i < name.n; i++)
        if ((unsigned char)name.p[i] < 0x20 || name.p[i] == 0x7F)
            return "a name with control characters";
    if (str_trim(name).n < name.n)
        return "a name with a space at its end or beginning";
    return NULL;
}

static bool has_extension(struct str name, struct str extension)
{
    return name.n > extension.n &&
           str_ieq(str_from(name.p + name.n - extension.n, extension.n), extension);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* --- folders --- */

struct listing {
    const char **names; /* sorted; hidden ones are left out */
    size_t count;
};

static int read_names(struct folder_reading *f, const char *name, DIR *d, struct listing *out)
{
    *out = (struct listing){.names = NULL};
    const struct dirent *e;
    while ((errno = 0, e = readdir(d))) {
        if (e->d_name[0] == '.')
            continue;
        if (out->count == ENTRIES_MAX)
            return folder_fail(f, ERR_INVALID, name, "holds more than %d names", ENTRIES_MAX);
        out->names = init_room(f->arena, out->names, out->count, sizeof *out->names);
        out->names[out->count++] = arena_strdup(f->arena, e->d_name);
    }
    if (errno)
        return folder_fail(f, ERR_IO, name, "cannot be read: %s", strerror(errno));
    if (out->count)
        qsort(out->names, out->count, sizeof *out->names, compare_names);
    return 0;
}

static int list(struct folder_reading *f, const char *name, struct listing *out)
{
    DIR *d = opendir(full_path(f, name));
    if (!d)
        return folder_fail(f, ERR_IO, name, "cannot be read: %s", strerror(errno));
    int err = read_names(f, name, d, out);
    closedir(d);
    return err;
}

/* Whether there is such a folder. A missing one is noted. */
static int find_part(struct folder_reading *f, const char *name, bool *found)
{
    struct stat st;
    *found = false;
    if (stat(full_path(f, name), &st) < 0) {
        if (errno != ENOENT)
            return folder_fail(f, ERR_IO, name, "cannot be accessed: %s", strerror(errno));
        init_report_problem(f->report, name, 0, false, "is missing; its tables are left unchanged",
                            STR(""));
        return 0;
    }
    if (!S_ISDIR(st.st_mode))
        return folder_fail(f, ERR_INVALID, name, "is not a folder");
    *found = true;
    return 0;
}

/* False, and reported, when it cannot be accessed. */
static bool look(struct folder_reading *f, const char *name, struct stat *st)
{
    if (stat(full_path(f, name), st) == 0)
        return true;
    init_report_problem(f->report, name, 0, true, "cannot be accessed", str_of(strerror(errno)));
    return false;
}

/* The same where papers may be: it may hold any of those that the rest of the folder lacks. */
static bool look_for_papers(struct folder_reading *f, const char *name, struct stat *st)
{
    if (look(f, name, st))
        return true;
    f->out->incomplete = true;
    f->report->totals.files_failed++;
    return false;
}

/* --- Data/ --- */

int64_t init_changed_ns(const struct stat *st)
{
    return (int64_t)((uint64_t)st->st_mtim.tv_sec * 1000000000 + (uint64_t)st->st_mtim.tv_nsec);
}

static int add_file(struct folder_reading *f, struct str journal, const char *shown,
                    const struct stat *st)
{
    struct init_folder *out = f->out;
    if (out->file_count == ENTRIES_MAX)
        return folder_fail(f, ERR_INVALID, "Data", "holds more than %d .bib files", ENTRIES_MAX);
    out->files = init_room(f->arena, out->files, out->file_count, sizeof *out->files);
    const char *path = full_path(f, shown);
    out->files[out->file_count++] = (struct init_file){
        .journal = journal,
        .name = str_of(strrchr(path, '/') + 1),
        .path = path,
        .shown = path + strlen(f->dir) + 1,
        .bytes = st->st_size,
        .changed_ns = init_changed_ns(st),
    };
    return 0;
}

static int look_at_file(struct folder_reading *f, struct str journal, const char *name)
{
    const char *shown = arena_printf(f->arena, "Data/%.*s/%s", STR_ARG(journal), name);
    bool bib = has_extension(str_of(name), STR(".bib"));
    struct stat st;
    if (!(bib ? look_for_papers : look)(f, shown, &st))
        return 0;
    if (S_ISDIR(st.st_mode))
        lost(f, shown, "a folder inside a journal's folder is not read");
    else if (bib && !S_ISREG(st.st_mode))
        lost(f, shown, "not a regular file");
    else if (bib && folder_name_problem(str_of(name)))
        lost(f, shown, folder_name_problem(str_of(name)));
    else if (bib)
        return add_file(f, journal, shown, &st);
    return 0;
}

static int read_journal(struct folder_reading *f, const char *name)
{
    const char *shown = arena_printf(f->arena, "Data/%s", name);
    const char *problem = folder_name_problem(str_of(name));
    if (problem) {
        lost(f, shown, problem);
        return 0;
    }
    struct init_folder *out = f->out;
    out->journals = init_room(f->arena, out->journals, out->journal_count, sizeof *out->journals);
    out->journals[out->journal_count++] = str_of(name);
    struct listing files;
    int err = list(f, shown, &files);
    for (size_t i = 0; !err && i < files.count; i++)
        err = look_at_file(f, str_of(name), files.names[i]);
    return err;
}

static int read_data(struct folder_reading *f)
{
    struct listing names;
    int err = list(f, "Data", &names);
    for (size_t i = 0; !err && i < names.count; i++) {
        const char *shown = arena_printf(f->arena, "Data/%s", names.names[i]);
        struct stat st;
        if (!look_for_papers(f, shown, &st))
            continue;
        if (S_ISDIR(st.st_mode))
            err = read_journal(f, names.names[i]);
        else if (has_extension(str_of(names.names[i]), STR(".bib")))
            lost(f, shown, "not in the folder of a journal");
    }
    return err;
}

/* --- text --- */

int init_to_utf8(struct arena *a, struct init_report *r, const char *path, struct str bytes,
                 struct str *out, const char **charset)
{
    struct charset_text text;
    int err = charset_to_utf8(a, bytes, &text);
    *charset = charset_name(text.charset);
    if (err)
        return err;
    if (text.charset != CHARSET_UTF8)
        init_report_problem(r, path, 0, false, "converted to UTF-8",
                            str_printf(a, "from %s", *charset));
    if (text.repaired)
        init_report_problem(
            r, path, 0, false, "bytes repaired",
            str_printf(a, "%zu places, the first at byte %zu", text.repaired, text.first_repaired));
    *out = text.utf8;
    return 0;
}

static int read_bytes(struct folder_reading *f, const char *name, int fd, struct str *out)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return folder_fail(f, ERR_IO, name, "cannot be accessed: %s", strerror(errno));
    if (!S_ISREG(st.st_mode))
        return folder_fail(f, ERR_INVALID, name, "is not a regular file");
    int err = file_read_fd(f->arena, fd, TEXT_BYTES_MAX, out);
    if (err == ERR_LIMIT)
        return folder_fail(f, ERR_INVALID, name, "is larger than %d MB", TEXT_BYTES_MAX >> 20);
    return err ? folder_fail(f, err, name, "cannot be read: %s", strerror(errno)) : 0;
}

int folder_text(struct folder_reading *f, const char *name, struct str *out)
{
    *out = STR_NULL;
    int fd = open(full_path(f, name), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT)
        return 0;
    if (fd < 0)
        return folder_fail(f, ERR_IO, name, "cannot be opened: %s", strerror(errno));
    struct str bytes;
    const char *charset;
    int err = read_bytes(f, name, fd, &bytes);
    close(fd);
    if (!err && init_to_utf8(f->arena, f->report, name, bytes, out, &charset))
        err = folder_fail(f, ERR_INVALID, name,
                          "is %s, which this machine cannot convert; save it as UTF-8", charset);
    return err;
}

/* --- APIKey/ --- */

static const char *key_problem(struct str key)
{
    for (size_t i = 0; i < key.n; i++)
        if (key.p[i] <= ' ' || key.p[i] > '~')
            return "not a key: it has spaces, or is not plain ASCII";
    if (key.n < KEY_BYTES_MIN)
        return "not a key: it is shorter than 8 characters";
    return key.n > KEY_BYTES_MAX ? "not a key: it is longer than 512 characters" : NULL;
}

static int add_keys(struct folder_reading *f, struct map *seen, const char *shown, struct str name,
                    struct str text)
{
    struct init_folder *out = f->out;
    for (int64_t line = 1; text.p; line++) {
        struct str key = str_cut(&text, '\n');
        if (str_ends(key, STR("\r")))
            key.n--;
        key = str_trim(key);
        if (key.n == 0 || key.p[0] == '#')
            continue;
        const char *problem = key_problem(key);
        if (problem) /* it may be a real key, so it is not shown */
            init_report_problem(f->report, shown, line, true, problem, STR(""));
        if (problem || !map_add(seen, key))
            continue;
        if (out->key_count == KEYS_MAX)
            return folder_fail(f, ERR_INVALID, "APIKey", "holds more than %d keys", KEYS_MAX);
        out->keys = init_room(f->arena, out->keys, out->key_count, sizeof *out->keys);
        out->keys[out->key_count++] = (struct init_key){.key = key, .name = name};
    }
    return 0;
}

static int read_key_file(struct folder_reading *f, struct map *seen, const char *file)
{
    const struct str extension = STR(".txt");
    struct str name = str_of(file);
    if (!has_extension(name, extension))
        return 0;
    const char *shown = arena_printf(f->arena, "APIKey/%s", file);
    name.n -= extension.n;
    const char *problem = folder_name_problem(name);
    if (problem) {
        lost(f, shown, problem);
        return 0;
    }
    struct stat st;
    if (!look(f, shown, &st))
        return 0;
    if (!S_ISREG(st.st_mode)) {
        lost(f, shown, "not a regular file");
        return 0;
    }
    struct str text;
    int err = folder_text(f, shown, &text);
    return err ? err : add_keys(f, seen, shown, name, text);
}

static int read_keys(struct folder_reading *f)
{
    struct listing files;
    int err = list(f, "APIKey", &files);
    struct map *seen = map_new();
    for (size_t i = 0; !err && i < files.count; i++)
        err = read_key_file(f, seen, files.names[i]);
    map_free(seen);
    return err;
}

/* --- the whole folder --- */

static int find_dir(struct folder_reading *f)
{
    struct stat st;
    if (stat(f->dir, &st) < 0) {
        int err = errno == ENOENT ? ERR_NOT_FOUND : ERR_IO;
        *f->why = arena_printf(f->arena, "%s: %s", f->dir, strerror(errno));
        return err;
    }
    if (S_ISDIR(st.st_mode))
        return 0;
    *f->why = arena_printf(f->arena, "%s is not a folder", f->dir);
    return ERR_INVALID;
}

static int read_all(struct folder_reading *f)
{
    static const struct {
        const char *name;
        int (*read)(struct folder_reading *f);
    } parts[] = {{"Data", read_data}, {"PaperAndTagInfo", folder_tables}, {"APIKey", read_keys}};
    enum { PARTS = sizeof parts / sizeof *parts };
    bool found[PARTS] = {false}, any = false;
    int err = find_dir(f);
    for (int i = 0; !err && i < PARTS; i++) {
        err = find_part(f, parts[i].name, &found[i]);
        any |= found[i];
    }
    if (!err && !any) {
        *f->why =
            arena_printf(f->arena,
                         "%s is not a data folder: it has neither Data/, PaperAndTagInfo/ nor "
                         "APIKey/",
                         f->dir);
        return ERR_INVALID;
    }
    for (int i = PARTS - 1; !err && i >= 0; i--) /* the papers last */
        err = found[i] ? parts[i].read(f) : 0;
    return err;
}

int init_folder_read(struct arena *a, const char *dir, struct init_report *r,
                     struct init_folder *out, const char **why)
{
    struct str named = str_of(dir);
    while (named.n > 1 && named.p[named.n - 1] == '/')
        named.n--;
    struct init_folder read = {.dir = str_z(a, named)};
    struct folder_reading f = {a, read.dir, r, &read, why};
    int err = read_all(&f);
    if (err)
        return err;
    struct init_totals *totals = &r->totals;
    totals->keys_found = (int64_t)read.key_count;
    totals->journals_found = (int64_t)read.row_count;
    totals->tags = (int64_t)read.tag_count;
    totals->pairs = (int64_t)read.pair_count;
    *out = read;
    return 0;
}
