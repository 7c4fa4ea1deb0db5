/* Input: a list, the peer, the header; NUL between them. */
#include <stdint.h>

#include "base/check.h"
#include "engine/setup/address.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a;
    arena_init(&a);
    struct str rest = {(const char *)data, size};
    const char *list = str_z(&a, str_cut(&rest, '\0'));
    struct str peer = rest.p ? str_cut(&rest, '\0') : STR("unix");
    const char *problem = address_list_problem(&a, list);
    check(!problem || *problem);
    struct address_list *l = address_list_new(&a, problem ? "127.0.0.1, ::/1, unix" : list);

    struct str client = address_of_client(&a, l, peer, rest);
    /* The result is a fixed point, and an empty list trusts no header. */
    struct address_list *none = address_list_new(&a, "");
    check(str_eq(address_of_client(&a, none, client, rest), client));
    check(str_eq(address_of_client(&a, l, client, STR_NULL), client));
    check(address_subject(&a, client).n > 0);
    arena_release(&a);
    return 0;
}
