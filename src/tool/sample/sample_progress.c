#include "tool/sample/sample_progress.h"

#include <stdio.h>
#include <unistd.h>

#include "loop/loop.h"

#define BAR_CELLS        24
#define TERMINAL_EACH_US 100000
#define LINE_EACH_US     2000000

void sample_progress_init(struct sample_progress *p, struct loop *l, int64_t total)
{
    int64_t now = loop_now_us(l);
    *p = (struct sample_progress){.loop = l,
                                  .total = total,
                                  .begun_us = now,
                                  .shown_us = now,
                                  .terminal = isatty(STDERR_FILENO) == 1};
}

double sample_progress_seconds(const struct sample_progress *p)
{
    return (double)(loop_now_us(p->loop) - p->begun_us) / 1e6;
}

static void draw_bar(int64_t done, int64_t total)
{
    char bar[BAR_CELLS + 1];
    for (int i = 0; i < BAR_CELLS; i++)
        bar[i] = done * BAR_CELLS > total * i ? '#' : '-';
    bar[BAR_CELLS] = '\0';
    fprintf(stderr, "\r\033[K[%s] ", bar);
}

void sample_progress_show(struct sample_progress *p, int64_t papers, int64_t bytes)
{
    int64_t now = loop_now_us(p->loop);
    if (now - p->shown_us < (p->terminal ? TERMINAL_EACH_US : LINE_EACH_US))
        return;
    p->shown_us = now;
    p->drawn = true;
    double rate = (double)papers * 1e6 / (double)(now - p->begun_us);
    double left_s = rate > 0 ? (double)(p->total - papers) / rate : 0;
    if (p->terminal)
        draw_bar(papers, p->total);
    fprintf(stderr, "%s%3d%%  %lld papers  %.1f MB  %.0f papers/s  %.0f s left%s",
            p->terminal ? "" : "millrace sample: ", (int)(papers * 100 / p->total),
            (long long)papers, (double)bytes / 1e6, rate, left_s, p->terminal ? "" : "\n");
}

void sample_progress_end(struct sample_progress *p)
{
    if (p->terminal && p->drawn)
        fprintf(stderr, "\r\033[K");
    p->drawn = false;
}
