#include "base/nearest.h"

#include "tests/tap.h"

static struct str guess(const char *typed)
{
    static const char *const known[] = {"serve", "sim", "config", "mysql.connections"};
    struct nearest n = nearest_to(str_of(typed));
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        nearest_try(&n, known[i]);
    return str_of(nearest_name(&n));
}

int main(void)
{
    is_str(guess("serve"), STR("serve"), "the name itself");
    is_str(guess("serv"), STR("serve"), "a letter is missing");
    is_str(guess("sserve"), STR("serve"), "a letter too many");
    is_str(guess("sevre"), STR("serve"), "two letters are swapped");
    is_str(guess("cnofig"), STR("config"), "another swap");
    is_str(guess("sin"), STR("sim"), "a wrong letter in a short name");
    is_str(guess("mysql.conections"), STR("mysql.connections"), "a long name");
    is_str(guess("abc"), STR_NULL, "nothing is near");
    is_str(guess(""), STR_NULL, "nothing was typed");
    is_str(guess("destination"), STR_NULL, "another word");

    char longer[200];
    memset(longer, 's', sizeof longer);
    struct nearest n = nearest_to(str_from(longer, sizeof longer));
    nearest_try(&n, "serve");
    ok(!nearest_name(&n), "a very long name is compared with nothing");

    struct nearest swap = nearest_to(STR("ab"));
    nearest_try(&swap, "ba");
    is_int((int64_t)swap.distance, 1, "a swap counts once");
    return tap_done();
}
