#include <stdlib.h>

#include "base/check.h"
#include "base/metrics.h"
#include "serve/node/process.h"
#include "serve/supervisor.h"
#include "tool/opt.h"
#include "tool/tool.h"

static const char about[] =
    "Runs the server: nodes, and where nothing else is configured a private MariaDB, a private\n"
    "Redis and a simulated AI. SIGHUP reloads settings and program without dropping a\n"
    "connection; SIGTERM or Ctrl-C finishes requests in progress and stops.";

int serve_main(int argc, char **argv)
{
    struct serve_options o = {.argv = argv};
    const struct opt opts[] = {
        OPT_CONFIG(&o.config_file),
        {"nodes", "N", "processes that serve; default: one per core", .text = &o.nodes},
        {"listen", "ADDR:PORT", "where to listen, or unix:/PATH; default: 127.0.0.1:8080",
         .text = &o.listen},
        {"allow-unsafe-stores", NULL,
         "start even if the settings of Redis or MySQL lose what they have confirmed",
         .flag = &o.allow_unsafe_stores},
    };
    struct command c = {"serve", NULL, about, opts, sizeof opts / sizeof *opts};
    int status = opt_parse(&c, argc, argv);
    if (status >= 0)
        return status;

    /* For exec at a reload: the whole command line, program name first. */
    char **whole = check_memory(calloc((size_t)argc + 2, sizeof *whole));
    whole[0] = "millrace";
    for (int i = 0; i < argc; i++)
        whole[i + 1] = argv[i];
    o.argv = whole;
    status = supervisor_main(&o);
    free(whole);
    return status;
}

int node_main(int argc, char **argv)
{
    int64_t index = 0, place = -1;
    bool simulated = false;
    const struct opt opts[] = {
        {"index", "N", "its slab of the metrics", .number = &index, .most = METRICS_NODES_MAX - 1},
        {"place", "N", "id of its slot; a restarted node has the same", .number = &place,
         .most = METRICS_NODES_MAX - 1},
        {"simulated", NULL, "the AI is the supervisor's simulated one, which needs no key",
         .flag = &simulated},
    };
    struct command c = {"node", NULL, "One serving process; started by \"millrace serve\" only.",
                        opts, sizeof opts / sizeof *opts};
    int status = opt_parse(&c, argc, argv);
    /* A supervisor of an older version passes no --place. */
    return status >= 0 ? status
                       : node_process((int)index, (int)(place < 0 ? index : place), simulated);
}
