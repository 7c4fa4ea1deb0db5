#include <stdlib.h>
#include <unicase.h>
#include <unictype.h>
#include <uninorm.h>
#include <unistr.h>

#include "engine/people/user.h"

#define NAME_BYTES_MAX 255 /* of a name and of its folded form: what their columns hold */

/* What libunistring makes is its own memory. p == NULL: it could not. */
struct text {
    uint8_t *p;
    size_t n;
};

static struct text composed(struct str s)
{
    struct text r;
    r.p = u8_normalize(UNINORM_NFC, (const uint8_t *)s.p, s.n, NULL, &r.n);
    return r;
}

/* Compatible forms go before and after the case: a bold capital A is an a, too. */
static struct text folded(struct str s)
{
    struct text r;
    r.p = u8_casefold((const uint8_t *)s.p, s.n, NULL, UNINORM_NFKC, NULL, &r.n);
    return r;
}

static bool in_name(ucs4_t c)
{
    if (c == '_' || c == '-')
        return true;
    /* Some letters cannot be seen: two names would look alike. */
    return uc_is_general_category_withtable(c, UC_CATEGORY_MASK_L | UC_CATEGORY_MASK_Nd) &&
           !uc_is_property_default_ignorable_code_point(c);
}

/* Folding takes some letters apart: a capital I with a dot leaves the dot behind. */
static bool in_folded(ucs4_t c)
{
    return in_name(c) || uc_is_general_category_withtable(c, UC_CATEGORY_MASK_Mn);
}

/* How many characters; -1 when one of them is not allowed. */
static int characters(struct text s, bool (*allowed)(ucs4_t c))
{
    int count = 0;
    for (size_t at = 0; at < s.n; count++) {
        ucs4_t c;
        int bytes = u8_mbtouc(&c, s.p + at, s.n - at);
        if (bytes <= 0 || !allowed(c))
            return -1;
        at += (size_t)bytes;
    }
    return count;
}

static const char *problem_of(struct text nfc, struct text fold)
{
    int count = characters(nfc, in_name);
    if (count < 0)
        return "a user name has letters, digits, '_' and '-' only";
    if (count < USER_NAME_CHARS_MIN)
        return "a user name has at least 3 characters";
    if (count > USER_NAME_CHARS_MAX)
        return "a user name has at most 32 characters";
    if (fold.n > NAME_BYTES_MAX)
        return "a user name has at most 255 bytes, when its ligatures are spelled out";
    if (characters(fold, in_folded) < 0)
        return "a user name has letters, digits, '_' and '-' only";
    return NULL;
}

const char *user_name_problem(struct str name)
{
    if (!name.p || name.n == 0)
        return "a user name has at least 3 characters";
    if (name.n > NAME_BYTES_MAX)
        return "a user name has at most 32 characters";
    if (!str_utf8_valid(name))
        return "a user name is UTF-8";
    struct text nfc = composed(name), fold = folded(name);
    const char *problem = "a user name has letters, digits, '_' and '-' only";
    if (nfc.p && fold.p)
        problem = problem_of(nfc, fold);
    free(nfc.p);
    free(fold.p);
    return problem;
}

struct str user_name_folded(struct arena *a, struct str name)
{
    struct text fold = folded(name);
    check(fold.p && fold.n <= NAME_BYTES_MAX);
    struct str out = str_dup(a, str_from((const char *)fold.p, fold.n));
    free(fold.p);
    return out;
}

/* Whether a later character would join the last one cannot be known: then less is found. */
bool user_name_prefix(struct arena *a, struct str begin, struct str *out)
{
    if (begin.n == 0 || begin.n > NAME_BYTES_MAX || !str_utf8_valid(begin))
        return false;
    struct text fold = folded(begin);
    bool fine = fold.p && fold.n <= NAME_BYTES_MAX && characters(fold, in_folded) > 0;
    if (fine)
        *out = str_dup(a, str_from((const char *)fold.p, fold.n));
    free(fold.p);
    return fine;
}

const char *user_password_problem(struct str password)
{
    if (!password.p || password.n < USER_PASSWORD_BYTES_MIN)
        return "a password has at least 8 bytes";
    if (password.n > USER_PASSWORD_BYTES_MAX)
        return "a password has at most 72 bytes";
    if (memchr(password.p, '\0', password.n))
        return "a password has no NUL in it"; /* bcrypt would not look at the rest */
    return NULL;
}
