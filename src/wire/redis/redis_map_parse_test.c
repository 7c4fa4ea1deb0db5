/* What nodes of a cluster say about slots, read and refused. */
#include "wire/redis/redis_map_parse.h"

#include "tests/tap.h"
#include "wire/redis/redis_parse.h"

static void leads(struct arena *a, const char *words, bool ask, unsigned slot, const char *host,
                  const char *port)
{
    struct redis_redirect r;
    if (!ok(redis_redirect_parse(a, str_of(words), "asked", &r), "\"%s\" is one", words))
        return;
    ok(r.ask == ask && r.slot == slot, "  to slot %u", slot);
    is_str(str_of(r.to.host), str_of(host), "  its host");
    is_str(str_of(r.to.port), str_of(port), "  its port");
}

static void leads_nowhere(struct arena *a, const char *words)
{
    struct redis_redirect r;
    ok(!redis_redirect_parse(a, str_of(words), "asked", &r), "\"%s\" is none", words);
}

static void redirections(struct arena *a)
{
    leads(a, "MOVED 3999 127.0.0.1:6381", false, 3999, "127.0.0.1", "6381");
    leads(a, "ASK 16383 ::1:7000", true, 16383, "::1", "7000");
    leads(a, "ASK 0 db-1.example.org:1", true, 0, "db-1.example.org", "1");
    leads(a, "MOVED 1 :6381", false, 1, "asked", "6381");
    leads(a, "MOVED 1 ?:6381", false, 1, "asked", "6381");
    leads_nowhere(a, "");
    leads_nowhere(a, "MOVED");
    leads_nowhere(a, "MOVED 1");
    leads_nowhere(a, "MOVED 1 host");
    leads_nowhere(a, "MOVED 16384 h:1");
    leads_nowhere(a, "MOVED -1 h:1");
    leads_nowhere(a, "MOVED x h:1");
    leads_nowhere(a, "MOVED 1 h:0");
    leads_nowhere(a, "MOVED 1 h:65536");
    leads_nowhere(a, "MOVED 1 h:");
    leads_nowhere(a, "TRYAGAIN 1 h:1");
}

/* The ranges of a reply as it is on the wire; -1: it is refused. */
static int ranges_of(struct arena *a, const char *bytes, struct redis_range **out)
{
    struct redis_scan s;
    size_t count;
    redis_scan_init(&s);
    check(redis_scan(&s, str_of(bytes)) == 1);
    return redis_slots_parse(a, redis_build(a, &s, bytes), "asked", out, &count) ? (int)count : -1;
}

#define MASTER "*3\r\n$9\r\n127.0.0.1\r\n:7001\r\n$2\r\nid\r\n"

static void slots(struct arena *a)
{
    struct redis_range *r;
    is_int(ranges_of(a,
                     "*2\r\n*4\r\n:0\r\n:99\r\n" MASTER MASTER "*3\r\n:100\r\n:16383\r\n"
                     "*4\r\n$-1\r\n:7002\r\n$2\r\nid\r\n*0\r\n",
                     &r),
           2, "two ranges");
    ok(r[0].first == 0 && r[0].last == 99, "the first one");
    is_str(str_of(r[0].master.host), STR("127.0.0.1"), "its host");
    is_str(str_of(r[0].master.port), STR("7001"), "its port");
    is_str(str_of(r[1].master.host), STR("asked"), "a node without a host is the one that says it");
    is_int(ranges_of(a, "*0\r\n", &r), 0, "a node that knows of none");
    is_int(ranges_of(a, "-ERR This instance has cluster support disabled\r\n", &r), -1, "no");
    is_int(ranges_of(a, "*1\r\n*3\r\n:5\r\n:4\r\n" MASTER, &r), -1, "an end before its begin");
    is_int(ranges_of(a, "*1\r\n*3\r\n:-1\r\n:4\r\n" MASTER, &r), -1, "below the first slot");
    is_int(ranges_of(a, "*1\r\n*3\r\n:0\r\n:16384\r\n" MASTER, &r), -1, "beyond the last slot");
    is_int(ranges_of(a, "*1\r\n*2\r\n:0\r\n:4\r\n", &r), -1, "no master");
    is_int(ranges_of(a, "*1\r\n*3\r\n:0\r\n:4\r\n*2\r\n:1\r\n:2\r\n", &r), -1, "no host");
    is_int(ranges_of(a, "*1\r\n*3\r\n:0\r\n:4\r\n*2\r\n$1\r\nh\r\n:0\r\n", &r), -1, "no port");
    is_int(ranges_of(a, "*1\r\n:1\r\n", &r), -1, "no range");
}

int main(void)
{
    struct arena a;
    arena_init(&a);
    redirections(&a);
    slots(&a);
    is_int(redis_cluster_epoch(STR("cluster_state:ok\r\ncluster_current_epoch:12\r\nx:1\r\n")), 12,
           "the epoch of a cluster");
    is_int(redis_cluster_epoch(STR("cluster_state:ok\r\n")), -1, "that is not told");
    is_int(redis_cluster_epoch(STR("cluster_current_epoch:x\r\n")), -1, "or is no number");
    arena_release(&a);
    return tap_done();
}
