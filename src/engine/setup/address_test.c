#include "engine/setup/address.h"

#include "tests/tap.h"

static struct arena arena;

static void is_problem(const char *text, const char *words)
{
    const char *got = address_list_problem(&arena, text);
    if (words)
        ok(got && strstr(got, words), "\"%s\": %s", text, got ? got : "no problem");
    else
        ok(!got, "\"%s\" is fine: %s", text, got ? got : "");
}

static void test_lists(void)
{
    is_problem("", NULL);
    is_problem("  ", NULL);
    is_problem("127.0.0.1, 10.0.0.0/8, ::1, unix", NULL);
    is_problem("0.0.0.0/0,::/0", NULL);
    is_problem("::ffff:10.0.0.0/104", NULL);
    is_problem("localhost", "\"localhost\" is no IP address");
    is_problem("127.0.0.1,", "\"\" is no IP address");
    is_problem("127.0.0.1 10.0.0.1", "is no IP address");
    is_problem("10.0.0.0/33", "a number from 0 to 32");
    is_problem("10.0.0.0/-1", "a number from 0 to 32");
    is_problem("10.0.0.0/", "a number from 0 to 32");
    is_problem("fd00::/129", "a number from 0 to 128");
    is_problem("10.0.0.1/8", "bits beyond");
    is_problem("10.000.0.1", "is no IP address");
    is_problem("1.2.3", "is no IP address");
    is_problem("fe80::1%eth0", "is no IP address");
    is_problem("unix/3", "is no IP address");
    char many[ADDRESS_PROXIES_MAX * 5 + 8] = "::1";
    for (int i = 1; i < ADDRESS_PROXIES_MAX; i++)
        memcpy(many + strlen(many), ",::1", 5);
    is_problem(many, NULL);
    memcpy(many + strlen(many), ",::1", 5);
    is_problem(many, "more than 64");
}

static void is_client(const char *trusted, const char *peer, const char *forwarded,
                      const char *want)
{
    struct address_list *l = address_list_new(&arena, trusted);
    struct str got = address_of_client(&arena, l, str_of(peer), str_of(forwarded));
    is_str(got, str_of(want), "from %s with \"%s\", trusting \"%s\"", peer,
           forwarded ? forwarded : "(none)", trusted);
}

static void test_clients(void)
{
    const char *us = "127.0.0.1, 10.0.0.0/8, fd00::/8, unix";
    is_client("", "1.2.3.4", NULL, "1.2.3.4");
    is_client("", "127.0.0.1", "6.6.6.6", "127.0.0.1");
    is_client("", "unix", "6.6.6.6", "unix");
    is_client(us, "1.2.3.4", "6.6.6.6", "1.2.3.4");
    is_client(us, "127.0.0.1", NULL, "127.0.0.1");
    is_client(us, "127.0.0.1", "1.2.3.4", "1.2.3.4");
    is_client(us, "unix", "1.2.3.4", "1.2.3.4");
    is_client("10.0.0.0/8", "unix", "1.2.3.4", "unix");
    is_client(us, "unix", NULL, "unix");
    is_client(us, "127.0.0.1", "6.6.6.6, 1.2.3.4", "1.2.3.4");
    is_client(us, "127.0.0.1", "6.6.6.6, 1.2.3.4, 10.9.9.9", "1.2.3.4");
    is_client(us, "127.0.0.1", "10.0.0.1, 10.0.0.2", "10.0.0.1");
    is_client(us, "127.0.0.1", "1.2.3.4,11.0.0.1", "11.0.0.1");
    is_client("10.0.0.0/8", "9.255.255.255", "1.2.3.4", "9.255.255.255");
    is_client("10.0.0.0/9", "10.128.0.0", "1.2.3.4", "10.128.0.0");
    is_client("10.0.0.0/9", "10.127.255.255", "1.2.3.4", "1.2.3.4");
    is_client("0.0.0.0/0", "7.7.7.7", "2001:db8::1, 1.2.3.4", "2001:db8::1");
}

static void test_spellings(void)
{
    const char *us = "127.0.0.1, 10.0.0.0/8";
    is_client(us, "::ffff:127.0.0.1", "1.2.3.4", "1.2.3.4");
    is_client(us, "127.0.0.1", "::ffff:1.2.3.4", "1.2.3.4");
    is_client(us, "127.0.0.1", "::FFFF:0102:0304", "1.2.3.4");
    is_client(us, "127.0.0.1", "1.2.3.4, ::ffff:10.1.1.1", "1.2.3.4");
    is_client("::ffff:10.0.0.0/104", "10.1.1.1", "1.2.3.4", "1.2.3.4");
    is_client(us, "127.0.0.1", "2001:0DB8:0000::0001", "2001:db8::1");
    is_client(us, "127.0.0.1", "  1.2.3.4\t", "1.2.3.4");
    is_client(us, "127.0.0.1", "1.2.3.4:567", "1.2.3.4");
    is_client(us, "127.0.0.1", "[2001:db8::1]:8", "2001:db8::1");
    is_client(us, "127.0.0.1", "[2001:db8::1]", "2001:db8::1");
    is_client(us, "127.0.0.1", "2001:db8::1", "2001:db8::1");
    is_client("fd00::/8", "fd12::1", "1.2.3.4:1 , [fd00::2]:3", "1.2.3.4");
}

static void test_junk(void)
{
    static const char *const junk[] = {
        "",
        "unknown",
        "_hidden",
        "1.2.3.4:",
        "1.2.3.4:x",
        "1.2.3:4",
        "1.2.3.4:65536",
        "[1.2.3.4]",
        "[::1",
        "[::1]x",
        "[::1]:",
        "[]",
        "::1]",
        "1.2.3.4 5.6.7.8",
        "1.2.3.4/8",
        "999.1.1.1",
        "01.2.3.4",
        "[::1]:-1",
        "unix",
        "\"1.2.3.4\"",
        "1.2.3.4444444444444444444444444444444444444444444444444444444444444444444444444",
    };
    for (size_t i = 0; i < sizeof junk / sizeof junk[0]; i++) {
        is_client("127.0.0.1", "127.0.0.1", junk[i], "127.0.0.1");
        is_client("127.0.0.1, 10.0.0.0/8", "127.0.0.1",
                  arena_printf(&arena, "6.6.6.6, %s, 10.0.0.7", junk[i]), "10.0.0.7");
    }
    struct address_list *l = address_list_new(&arena, "127.0.0.1");
    is_str(address_of_client(&arena, l, STR("127.0.0.1"), STR("1.2.3.4\0")), STR("127.0.0.1"),
           "a NUL is junk");
}

static void test_long(void)
{
    struct str s = STR("6.6.6.6");
    for (int i = ADDRESS_FORWARDED_MAX; i > 0; i--)
        s = str_printf(&arena, "%.*s, 10.0.0.%d", STR_ARG(s), i);
    is_client("10.0.0.0/8", "10.1.1.1", s.p, "10.0.0.32");
    is_client("10.0.0.0/8", "10.1.1.1", s.p + strlen("6.6.6.6, "), "10.0.0.32");
}

static void test_subjects(void)
{
    ok(address_loopback(STR("127.0.0.1")) && address_loopback(STR("127.9.9.9")) &&
           address_loopback(STR("::1")) && address_loopback(STR("::ffff:127.0.0.1")) &&
           address_loopback(STR("unix")),
       "addresses of this machine");
    ok(!address_loopback(STR("1.2.3.4")) && !address_loopback(STR("::2")) &&
           !address_loopback(STR("128.0.0.1")),
       "and of others");
    is_str(address_subject(&arena, STR("1.2.3.4")), STR("1.2.3.4"), "IPv4: the address");
    is_str(address_subject(&arena, STR("::ffff:1.2.3.4")), STR("1.2.3.4"), "in any form");
    is_str(address_subject(&arena, STR("2001:db8:1:2:3:4:5:6")), STR("2001:db8:1:2::/64"),
           "IPv6: its network");
    is_str(address_subject(&arena, STR("::1")), STR("::/64"), "this machine's too");
    is_str(address_subject(&arena, STR("unix")), STR("unix"), "unix");
    is_str(address_subject(&arena, STR("")), STR("unix"), "nothing");
}

int main(void)
{
    arena_init(&arena);
    test_lists();
    test_clients();
    test_spellings();
    test_junk();
    test_long();
    test_subjects();
    arena_release(&arena);
    return tap_done();
}
