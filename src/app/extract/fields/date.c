#include "app/extract/fields/date.h"

#include "app/extract/fields/line.h"
#include "base/ascii.h"

#define DATE_BYTES_MAX 64 /* longer texts are not looked at */
#define NUMBERS_MAX    3
#define YEAR_MIN       1000

/* What a text has in it, in the order in which it stands there. */
struct parts {
    struct {
        int value, digits;
    } numbers[NUMBERS_MAX];
    int count;
    int year, month, day; /* named as such: by a word, or 年月日; 0: not */
    bool points;          /* between numbers */
};

/* --- calendar --- */

static bool is_leap(int year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static bool is_day(int year, int month, int day) /* month and day may be 0: not given */
{
    static const int days[12] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    if (year < YEAR_MIN || year > 9999 || month < 0 || month > 12 || (day && !month))
        return false;
    int most = month ? days[month - 1] + (month == 2 && is_leap(year)) : 0;
    return day >= 0 && day <= most;
}

static bool write_iso(struct arena *a, int year, int month, int day, struct str *iso)
{
    if (!is_day(year, month, day))
        return false;
    if (day)
        *iso = str_printf(a, "%04d-%02d-%02d", year, month, day);
    else if (month)
        *iso = str_printf(a, "%04d-%02d", year, month);
    else
        *iso = str_printf(a, "%04d", year);
    return true;
}

/* --- words and numbers of a text --- */

static int month_of(struct str word)
{
    static const struct str months[] = {STR("january"), STR("february"), STR("march"),
                                        STR("april"),   STR("may"),      STR("june"),
                                        STR("july"),    STR("august"),   STR("september"),
                                        STR("october"), STR("november"), STR("december")};
    for (int i = 0; i < 12; i++)
        if (str_eq(word, months[i]) || str_eq(word, str_from(months[i].p, 3)))
            return i + 1;
    return str_eq(word, STR("sept")) ? 9 : 0;
}

static bool says_nothing(struct str word)
{
    static const struct str words[] = {
        STR("st"),       STR("nd"),     STR("rd"),        STR("th"),     STR("of"),
        STR("the"),      STR("on"),     STR("in"),        STR("monday"), STR("tuesday"),
        STR("thursday"), STR("friday"), STR("wednesday"), STR("sunday"), STR("saturday"),
        STR("mon"),      STR("tue"),    STR("wed"),       STR("thu"),    STR("fri"),
        STR("sat"),      STR("sun"),
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (str_eq(word, words[i]))
            return true;
    return false;
}

static struct str run_of(struct str s, bool (*is_in)(char c))
{
    size_t n = 0;
    while (n < s.n && is_in(s.p[n]))
        n++;
    return str_from(s.p, n);
}

static bool set_once(int *member, int value)
{
    if (*member || value == 0)
        return false;
    *member = value;
    return true;
}

/* A number, which a character behind it may name. */
static bool add_number(struct parts *p, struct str *rest)
{
    struct str digits = run_of(*rest, ascii_is_digit);
    int64_t value;
    if (digits.n > 8 || !str_to_i64(digits, &value))
        return false;
    *rest = str_skip(*rest, digits.n);
    struct str after = str_trim(*rest);
    int *named = str_starts(after, STR("年"))                                   ? &p->year
                 : str_starts(after, STR("月"))                                 ? &p->month
                 : str_starts(after, STR("日")) || str_starts(after, STR("号")) ? &p->day
                                                                                : NULL;
    if (named) {
        *rest = str_skip(after, STR("年").n);
        return set_once(named, (int)value);
    }
    if (p->count == NUMBERS_MAX)
        return false;
    p->numbers[p->count].value = (int)value;
    p->numbers[p->count++].digits = (int)digits.n;
    return true;
}

static bool add_word(struct parts *p, struct str *rest)
{
    struct str word = run_of(*rest, ascii_is_letter);
    int month = month_of(word);
    *rest = str_skip(*rest, word.n);
    return month ? set_once(&p->month, month) : says_nothing(word);
}

static bool skip_mark(struct parts *p, struct str *rest)
{
    static const struct str marks[] = {STR(" "), STR(","), STR("."), STR("/"),
                                       STR("-"), STR("–"), STR("‐"), STR("−")};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (str_starts(*rest, marks[i])) {
            p->points = p->points || marks[i].p[0] == '.';
            *rest = str_skip(*rest, marks[i].n);
            return true;
        }
    return false;
}

static bool take_apart(struct str text, struct parts *p)
{
    bool fine = true;
    while (text.n && fine) {
        if (ascii_is_digit(text.p[0]))
            fine = add_number(p, &text);
        else if (ascii_is_letter(text.p[0]))
            fine = add_word(p, &text);
        else
            fine = skip_mark(p, &text);
    }
    return fine;
}

/* --- which number is what --- */

static bool is_year(const struct parts *p, int i)
{
    return i < p->count && p->numbers[i].digits == 4;
}

/* With a month by its name: a year, and a day before or after it. */
static bool read_named(struct parts *p)
{
    int year = is_year(p, 0) ? 0 : 1;
    if (p->year || p->day || !is_year(p, year) || p->count > 2)
        return false;
    p->year = p->numbers[year].value;
    return p->count == 1 || set_once(&p->day, p->numbers[1 - year].value);
}

/* A day and a month before a year: which is which follows from the values, or from the points. */
static bool read_year_last(struct parts *p, bool *ambiguous)
{
    int first = p->numbers[0].value, second = p->numbers[1].value;
    bool day_first = first > 12 || p->points || first == second;
    *ambiguous = !day_first && second <= 12;
    return !*ambiguous && set_once(&p->month, day_first ? second : first) &&
           set_once(&p->day, day_first ? first : second);
}

static bool read_numbers(struct parts *p, bool *ambiguous)
{
    int only = p->numbers[0].value;
    if (p->count == 1 && p->numbers[0].digits == 8) {
        p->year = only / 10000;
        return set_once(&p->month, only / 100 % 100) && set_once(&p->day, only % 100);
    }
    int last = p->count - 1, year = is_year(p, 0) ? 0 : last;
    if (!is_year(p, year) || (last > 0 && is_year(p, last - year)))
        return false;
    p->year = p->numbers[year].value;
    if (p->count == 1)
        return true;
    if (p->count == 2)
        return set_once(&p->month, p->numbers[1 - year].value);
    if (year == last)
        return read_year_last(p, ambiguous);
    return set_once(&p->month, p->numbers[1].value) && set_once(&p->day, p->numbers[2].value);
}

/* "2020-05-17T12:00:00Z", "2020-05-17 12:00" */
static struct str without_time(struct str s)
{
    const size_t n = 10;
    bool time = s.n > n + 1 && s.p[4] == '-' && s.p[7] == '-' && (s.p[n] == 't' || s.p[n] == ' ') &&
                ascii_is_digit(s.p[n + 1]);
    return time ? str_from(s.p, n) : s;
}

bool date_read(struct arena *a, struct str text, struct str *iso, bool *ambiguous)
{
    struct parts p = {0};
    *ambiguous = false;
    if (text.n > DATE_BYTES_MAX)
        return false;
    struct str folded = line_folded(a, str_trim(text));
    if (!take_apart(without_time(folded), &p))
        return false;
    bool fine = p.year    ? p.count == 0 /* in Chinese: all is named */
                : p.month ? read_named(&p)
                          : p.count > 0 && !p.day && read_numbers(&p, ambiguous);
    return fine && write_iso(a, p.year, p.month, p.day, iso);
}

static bool has_form(struct str s, const char *form) /* 0 is any digit */
{
    size_t n = strlen(form);
    bool fits = s.n == n;
    for (size_t i = 0; i < n && fits; i++)
        fits = form[i] == '0' ? ascii_is_digit(s.p[i]) : s.p[i] == form[i];
    return fits;
}

static int digits(struct str s, size_t from, size_t n)
{
    int v = 0;
    for (size_t i = from; i < from + n && i < s.n; i++)
        v = 10 * v + (s.p[i] - '0');
    return v;
}

bool date_is_iso(struct str s)
{
    bool day = has_form(s, "0000-00-00"), month = day || has_form(s, "0000-00");
    if (!month && !has_form(s, "0000"))
        return false;
    int m = month ? digits(s, 5, 2) : 0, d = day ? digits(s, 8, 2) : 0;
    return (m || !month) && (d || !day) && is_day(digits(s, 0, 4), m, d);
}
