#include "base/ip.h"

#include "tests/tap.h"

static struct arena arena;

static void is_ip(const char *text, const char *shown)
{
    struct ip a;
    bool fine = ip_parse(str_of(text), &a);
    ok(fine == (shown != NULL), "\"%s\" is %san address", text, shown ? "" : "not ");
    if (fine && shown)
        is_str(ip_text(&arena, &a), str_of(shown), "and is shown so");
}

static void test_addresses(void)
{
    is_ip("1.2.3.4", "1.2.3.4");
    is_ip("::ffff:1.2.3.4", "1.2.3.4");
    is_ip("2001:DB8:0::1", "2001:db8::1");
    is_ip("::", "::");
    is_ip("", NULL);
    is_ip("1.2.3", NULL);
    is_ip("[::1]", NULL);
    is_ip("fe80::1%eth0", NULL);
    is_ip("1111:2222:3333:4444:5555:6666:7777:8888:9999:0000", NULL);
    struct ip a;
    ok(!ip_parse(STR("::1\0"), &a), "nor is one with a NUL in it");
}

static void is_loopback(const char *text, bool is)
{
    struct ip a;
    ok(ip_parse(str_of(text), &a) && ip_is_loopback(&a) == is, "%s: %s", text,
       is ? "this machine" : "elsewhere");
}

static void is_public(const char *text, bool is)
{
    struct ip a;
    ok(ip_parse(str_of(text), &a) && ip_is_public(&a) == is, "%s is %spublic", text,
       is ? "" : "not ");
}

static void test_public(void)
{
    static const char *const private[] = {
        "127.0.0.1",  "10.1.2.3",    "172.31.255.255", "192.168.0.1",     "169.254.169.254",
        "100.64.0.1", "0.0.0.0",     "224.0.0.1",      "255.255.255.255", "198.18.0.1",
        "::1",        "::",          "fe80::1",        "fc00::1",         "::ffff:10.0.0.1",
        "ff02::1",    "2001:db8::1", "2002:a00:1::1",  "64:ff9b::a00:1",  "2001::1",
    };
    for (size_t i = 0; i < sizeof private / sizeof *private; i++)
        is_public(private[i], false);
    is_public("93.184.216.34", true);
    is_public("172.32.0.1", true);
    is_public("::ffff:8.8.8.8", true);
    is_public("2606:4700::1111", true);
}

static void has(const char *net, const char *address, bool is)
{
    struct ip_net n;
    struct ip a;
    int ignored;
    ok(ip_net_parse(str_of(net), &n, &ignored) == IP_NET_FINE && ip_parse(str_of(address), &a) &&
           ip_net_has(&n, &a) == is,
       "%s is %sin %s", address, is ? "" : "not ", net);
}

static void is_no_net(const char *net, enum ip_net_verdict why, int most)
{
    struct ip_net n;
    int bits_max = 0;
    is_int((int)ip_net_parse(str_of(net), &n, &bits_max), (int)why, "\"%s\" is no network", net);
    is_int(bits_max, most, "bits at most");
}

int main(void)
{
    arena_init(&arena);
    test_addresses();
    test_public();
    is_loopback("127.0.0.1", true);
    is_loopback("127.9.8.7", true);
    is_loopback("::ffff:127.0.0.1", true);
    is_loopback("::1", true);
    is_loopback("128.0.0.1", false);
    is_loopback("::2", false);
    is_loopback("::", false);
    has("10.0.0.0/8", "10.255.0.1", true);
    has("10.0.0.0/8", "11.0.0.1", false);
    has("10.1.2.3/8", "10.4.5.6", true);
    has("10.0.0.0/8", "::ffff:10.1.1.1", true);
    has("10.0.0.1", "10.0.0.1", true);
    has("10.0.0.1", "10.0.0.2", false);
    has("0.0.0.0/0", "9.9.9.9", true);
    has("0.0.0.0/0", "2001:db8::1", false);
    has("::/0", "9.9.9.9", true);
    has("2001:db8::/33", "2001:db8:7fff::1", true);
    has("2001:db8::/33", "2001:db8:8000::1", false);
    is_no_net("localhost/8", IP_NET_NO_ADDRESS, 0);
    is_no_net("10.0.0.0/33", IP_NET_BITS_WRONG, 32);
    is_no_net("10.0.0.0/", IP_NET_BITS_WRONG, 32);
    is_no_net("::/129", IP_NET_BITS_WRONG, 128);
    is_no_net("::/-1", IP_NET_BITS_WRONG, 128);
    arena_release(&arena);
    return tap_done();
}
