#include "app/extract/fields/date.h"

#include "tests/tap.h"

static struct arena arena;

static const struct {
    const char *text, *iso; /* NULL: it is no date; "?": it has two meanings */
} cases[] = {
    {"2020-05-17", "2020-05-17"},
    {"2020-05", "2020-05"},
    {"2020", "2020"},
    {" 2020/5/7 ", "2020-05-07"},
    {"2020.5.17", "2020-05-17"},
    {"20200517", "2020-05-17"},
    {"17 May 2020", "2020-05-17"},
    {"May 17th, 2020", "2020-05-17"},
    {"the 1st of September 2019", "2019-09-01"},
    {"Sept. 2019", "2019-09"},
    {"Sunday, 17 May 2020", "2020-05-17"},
    {"MAY 2020", "2020-05"},
    {"2020 May 17", "2020-05-17"},
    {"05/2020", "2020-05"},
    {"17/5/2020", "2020-05-17"},
    {"5/17/2020", "2020-05-17"},
    {"4/4/2020", "2020-04-04"},
    {"3/4/2020", "?"},
    {"03-04-2020", "?"},
    {"3.4.2020", "2020-04-03"},
    {"2020年5月17日", "2020-05-17"},
    {"2020 年 5 月", "2020-05"},
    {"２０２０年", "2020"},
    {"2020-05-17T12:30:00Z", "2020-05-17"},
    {"2020-05-17 12:30", "2020-05-17"},
    {"29 February 2020", "2020-02-29"},
    {"29 February 2019", NULL},
    {"29 February 1900", NULL},
    {"29 February 2000", "2000-02-29"},
    {"1850-01-31", "1850-01-31"},
    {"2020-13-01", NULL},
    {"2020-00-01", NULL},
    {"2020-04-31", NULL},
    {"2020-1-0", NULL},
    {"2019-2020", NULL},
    {"2020年13月", NULL},
    {"2020年5月17日18日", NULL},
    {"5月17日", NULL},
    {"17 May", NULL},
    {"May 17", NULL},
    {"17 May June 2020", NULL},
    {"17 18 May 2020", NULL},
    {"spring 2020", NULL},
    {"Q1 2020", NULL},
    {"0999", NULL},
    {"12", NULL},
    {"1 2 3 4", NULL},
    {"", NULL},
    {"soon", NULL},
    {"123456789012345678901234567890", NULL},
};

int main(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct str iso = STR("none");
        bool ambiguous;
        bool read = date_read(&arena, str_of(cases[i].text), &iso, &ambiguous);
        const char *want = cases[i].iso;
        bool two = want && *want == '?';
        ok(ambiguous == two, "%s has %s", cases[i].text, two ? "two meanings" : "no two meanings");
        if (!want || two) {
            ok(!read, "%s is no date", cases[i].text);
            continue;
        }
        is_str(iso, str_of(want), "%s", cases[i].text);
        ok(date_is_iso(iso), "%s is in ISO form", want);
    }
    ok(!date_is_iso(STR("2020-5-17")) && !date_is_iso(STR("2020-02-30")) &&
           !date_is_iso(STR("2020-00")) && !date_is_iso(STR("2020-01-00")) &&
           !date_is_iso(STR("20")) && !date_is_iso(STR("2020-1x")) && !date_is_iso(STR("")),
       "others are not");
    arena_release(&arena);
    return tap_done();
}
