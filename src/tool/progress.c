#include "tool/progress.h"

#include <stdio.h>
#include <unistd.h>

#include "loop/loop.h"

#define BAR_CELLS        24
#define TERMINAL_EACH_US 100000
#define LINE_EACH_US     2000000
#define LEFT_AFTER_S     1.0 /* before, the pace is that of the first rows: it says nothing */

void progress_init(struct progress *p, struct loop *l, const char *command, const char *noun,
                   int64_t total)
{
    int64_t now = loop_now_us(l);
    *p = (struct progress){.loop = l,
                           .command = command,
                           .noun = noun,
                           .total = total,
                           .begun_us = now,
                           .shown_us = now,
                           .terminal = isatty(STDERR_FILENO) == 1};
}

double progress_seconds(const struct progress *p)
{
    return (double)(loop_now_us(p->loop) - p->begun_us) / 1e6;
}

static void put_bar(double share)
{
    char bar[BAR_CELLS + 1];
    for (int i = 0; i < BAR_CELLS; i++)
        bar[i] = share * BAR_CELLS > i ? '#' : '-';
    bar[BAR_CELLS] = '\0';
    fprintf(stderr, "[%s] ", bar);
}

static void put_left(double seconds)
{
    int64_t s = (int64_t)(seconds + 0.5);
    if (s < 60)
        fprintf(stderr, "  %d s left", (int)s);
    else if (s < 3600)
        fprintf(stderr, "  %d min %d s left", (int)(s / 60), (int)(s % 60));
    else
        fprintf(stderr, "  %lld h %d min left", (long long)(s / 3600), (int)(s % 3600 / 60));
}

static void put(const struct progress *p, double seconds, double share, int64_t count)
{
    if (p->terminal)
        fprintf(stderr, "\r\033[K");
    else
        fprintf(stderr, "millrace %s: ", p->command);
    if (p->terminal && p->total > 0)
        put_bar(share);
    if (p->total > 0)
        fprintf(stderr, "%3d%%  ", (int)(share * 100));
    fprintf(stderr, "%lld %s  %.0f %s/s", (long long)count, p->noun, (double)count / seconds,
            p->noun);
    if (share > 0 && seconds >= LEFT_AFTER_S)
        put_left(seconds * (1 - share) / share);
    if (!p->terminal)
        fputc('\n', stderr);
}

void progress_show(struct progress *p, int64_t done, int64_t count)
{
    int64_t now = loop_now_us(p->loop);
    if (now - p->shown_us < (p->terminal ? TERMINAL_EACH_US : LINE_EACH_US))
        return;
    p->shown_us = now;
    p->drawn = true;
    if (done > p->total)
        done = p->total; /* a file has grown since total was taken */
    put(p, progress_seconds(p), p->total > 0 ? (double)done / (double)p->total : 0, count);
}

void progress_end(struct progress *p)
{
    if (p->terminal && p->drawn)
        fprintf(stderr, "\r\033[K");
    p->drawn = false;
}
