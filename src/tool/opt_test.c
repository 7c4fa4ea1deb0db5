#include "tool/opt.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/tap.h"

struct parsed {
    const char *text;
    int64_t number;
    double real;
    bool flag;
    struct opt_texts texts;
    char **operands;
    int status;
};

#define ARGS_MAX 8

/* args are separated by blanks. */
static struct parsed parse(const char *args, const char *operands)
{
    static char text[256];
    static char *argv[ARGS_MAX + 1];
    static struct parsed p;
    p = (struct parsed){.text = "none", .number = -1, .real = -1};
    snprintf(text, sizeof text, "%s", args);
    int argc = 0;
    argv[argc++] = "cmd";
    for (char *rest = text, *word; (word = strsep(&rest, " ")) && argc < ARGS_MAX;)
        if (*word)
            argv[argc++] = word;
    argv[argc] = NULL;
    const struct opt opts[] = {
        {"text", "T", "a text", .text = &p.text},
        {"number", "N", "a number", .number = &p.number, .least = 1, .most = 64},
        {"real", "R", "a fraction", .real = &p.real, .least = 0, .most = 1},
        {"flag", NULL, "a switch", .flag = &p.flag},
        {"each", "T", "several texts", .texts = &p.texts},
    };
    struct command c = {"cmd", operands, "Does things.", opts, sizeof opts / sizeof *opts};
    p.status = opt_parse(&c, argc, argv);
    p.operands = argv + 1;
    return p;
}

static int parse_needed(const char *args)
{
    const char *text = NULL, *other = NULL;
    const struct opt opts[] = {{"text", "T", "a text", .text = &text, .needed = true},
                               {"other", "T", "another", .text = &other}};
    char line[64], *argv[8] = {"cmd"};
    int argc = 1;
    snprintf(line, sizeof line, "%s", args);
    for (char *rest = line, *word; (word = strsep(&rest, " "));)
        argv[argc++] = word;
    struct command c = {"cmd", NULL, "Does things.", opts, 2};
    return opt_parse(&c, argc, argv);
}

static void wrong(const char *args, const char *operands)
{
    is_int(parse(args, operands).status, 2, "wrong: %s", args);
}

int main(void)
{
    check(freopen("/dev/null", "w", stderr)); /* the mistakes are wanted here */

    struct parsed p = parse("--each a --flag --each=b", NULL);
    ok(p.texts.count == 2 && strcmp(p.texts.list[0], "a") == 0 && strcmp(p.texts.list[1], "b") == 0,
       "an option that is given twice");
    p = parse("", NULL);
    is_int((int64_t)p.texts.count, 0, "or not at all");
    is_int(p.status, -1, "nothing: go on");
    is_str(str_of(p.text), STR("none"), "and nothing changes");
    p = parse("--text a --number 64 --real 0.25 --flag", NULL);
    is_int(p.status, -1, "all four kinds");
    is_str(str_of(p.text), STR("a"), "a text");
    is_int(p.number, 64, "a number");
    ok(p.real > 0.249 && p.real < 0.251, "a fraction");
    ok(p.flag, "a switch");
    p = parse("--text=a=b --number=1 --real=1", NULL);
    is_str(str_of(p.text), STR("a=b"), "with an equals sign");
    is_int(p.number, 1, "a number too");
    p = parse("--text=", NULL);
    is_str(str_of(p.text), STR(""), "an empty value");
    p = parse("--text --flag", NULL);
    is_str(str_of(p.text), STR("--flag"), "a value may look like an option");

    p = parse("one --number 2 two -- --flag -", "A B C D");
    is_int(p.status, -1, "four operands among options");
    is_str(str_of(p.operands[0]), STR("one"), "the first");
    is_str(str_of(p.operands[1]), STR("two"), "the second");
    is_str(str_of(p.operands[2]), STR("--flag"), "after -- everything is one");
    is_str(str_of(p.operands[3]), STR("-"), "and a dash always");
    ok(!p.flag, "so the switch is not set");

    wrong("--txet a", NULL);
    wrong("--text", NULL);
    wrong("--number 65", NULL);
    wrong("--number 0", NULL);
    wrong("--number 1x", NULL);
    wrong("--number=", NULL);
    wrong("--real 1.5", NULL);
    wrong("--real nan", NULL);
    wrong("--real x", NULL);
    wrong("--real=", NULL);
    wrong("--flag=1", NULL);
    wrong("-f", NULL);
    wrong("operand", NULL);
    wrong("--help=1", NULL);
    wrong("one", "A B");
    wrong("one two three", "A B");
    is_int(parse_needed("--other a"), 2, "an option that is needed");
    is_int(parse_needed("--other a --text b"), -1, "and given");

    int out = dup(1);
    fflush(stdout);
    check(freopen("/dev/null", "w", stdout));
    int help = parse("--help", NULL).status, short_help = parse("--number 2 -h", NULL).status;
    fflush(stdout);
    dup2(out, 1);
    close(out);
    is_int(help, 0, "--help is no mistake");
    is_int(short_help, 0, "nor is -h");
    return tap_done();
}
