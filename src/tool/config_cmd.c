#include <stdio.h>
#include <unistd.h>

#include "base/buf.h"
#include "engine/judge/judge.h"
#include "engine/setup/config.h"
#include "tool/opt.h"
#include "tool/tool.h"

static int load(const struct command *cmd, struct arena *a, const char *file, struct config *c)
{
    const char *why = NULL;
    int err = config_load(a, file ? file : CONFIG_FILE_DEFAULT, !file, environ, c, &why);
    return err ? opt_error(cmd, OPT_FAILED, "%s", why) : 0;
}

/* What would refuse a start. */
static int check_all(const struct command *cmd, struct arena *a, const struct config *c)
{
    const char *why = config_problem(a, c);
    if (!why)
        why = judge_config_problem(a, c);
    return why ? opt_error(cmd, OPT_FAILED, "%s", why) : 0;
}

int config_main(int argc, char **argv)
{
    const char *file = NULL;
    bool check_only = false, markdown = false;
    const struct opt opts[] = {
        OPT_CONFIG(&file),
        {"check", NULL, "only check that they are valid", .flag = &check_only},
        {"markdown", NULL, "print the reference of all settings instead", .flag = &markdown},
    };
    struct command cmd = {
        "config", NULL,
        "Shows every setting with its value, where it comes from and what it means.", opts,
        sizeof opts / sizeof *opts};
    int status = opt_parse(&cmd, argc, argv);
    if (status >= 0)
        return status;

    struct arena a;
    struct buf b;
    struct config c;
    arena_init(&a);
    buf_init(&b);
    status = 0;
    if (markdown) {
        config_document(&b);
    } else {
        status = load(&cmd, &a, file, &c);
        if (status == 0 && check_only)
            status = check_all(&cmd, &a, &c);
        if (status == 0 && check_only)
            buf_add_lit(&b, "millrace " MILLRACE_VERSION ": the settings can be used\n");
        else if (status == 0)
            config_show(&c, &b);
    }
    fwrite(buf_str(&b).p, 1, b.len, stdout); /* nothing after an error */
    if (fflush(stdout) != 0)
        status = 1;
    buf_release(&b);
    arena_release(&a);
    return status;
}
