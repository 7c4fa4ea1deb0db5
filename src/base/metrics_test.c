#include "base/metrics.h"

#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "tests/tap.h"

static bool shows(const struct metrics *m, const char *text)
{
    struct buf out;
    buf_init(&out);
    metrics_render(m, &out);
    bool found = str_find(buf_str(&out), str_of(text)) >= 0;
    buf_release(&out);
    return found;
}

static void one_page(void)
{
    struct metrics *m = metrics_open(-1, 1, 0);
    struct buf out;
    buf_init(&out);
    metrics_render(m, &out);
    is_str(buf_str(&out), STR(""), "an empty page");

    int64_t *fine = metric(m, METRIC_COUNTER, "requests_total", "code=\"200\"", "Answered.");
    int64_t *gauge = metric(m, METRIC_GAUGE, "queue_length", "", "Back\\slash\nand line.");
    int64_t *bad = metric(m, METRIC_COUNTER, "requests_total", "code=\"500\"", "Answered.");
    ok(fine != bad, "other labels, other slot");
    ok(metric(m, METRIC_COUNTER, "requests_total", "code=\"200\"", "Answered.") == fine,
       "same name and labels, same slot");
    metric_add(fine, 2);
    metric_add(fine, 1);
    metric_add(bad, 1);
    metric_set(gauge, -7);
    metrics_render(m, &out);
    is_str(buf_str(&out),
           STR("# HELP queue_length Back\\\\slash\\nand line.\n"
               "# TYPE queue_length gauge\n"
               "queue_length{node=\"0\"} -7\n"
               "# HELP requests_total Answered.\n"
               "# TYPE requests_total counter\n"
               "requests_total{code=\"200\",node=\"0\"} 3\n"
               "requests_total{code=\"500\",node=\"0\"} 1\n"),
           "the page of Prometheus");
    int64_t *busy = metric(m, METRIC_COUNTER_US, "busy_seconds_total", "", "Time used.");
    int64_t *late = metric(m, METRIC_GAUGE_US, "late_seconds", "", "Too late by.");
    metric_add(busy, 61000000);
    metric_set(late, 250);
    ok(shows(m, "# TYPE busy_seconds_total counter\nbusy_seconds_total{node=\"0\"} 61.000000\n"),
       "a counter of time, in seconds");
    ok(shows(m, "# TYPE late_seconds gauge\nlate_seconds{node=\"0\"} 0.000250\n"), "a gauge");
    buf_release(&out);
    metrics_close(m);
    metrics_close(NULL);
}

static void histograms(void)
{
    struct metrics *m = metrics_open(-1, 1, 0);
    struct histogram *h = histogram_new(m, "wait_seconds", "Waiting.");
    histogram_add_us(h, -5);
    histogram_add_us(h, 100);
    histogram_add_us(h, 101);
    histogram_add_us(h, 2000000);
    histogram_add_us(h, 61000000);
    ok(shows(m, "# HELP wait_seconds Waiting.\n# TYPE wait_seconds histogram\n"
                "wait_seconds_bucket{le=\"0.0001\",node=\"0\"} 2\n"
                "wait_seconds_bucket{le=\"0.00025\",node=\"0\"} 3\n"),
       "buckets include their bound and what is below");
    ok(shows(m, "{le=\"1\",node=\"0\"} 3\nwait_seconds_bucket{le=\"2.5\",node=\"0\"} 4\n"),
       "in between");
    ok(shows(m, "{le=\"60\",node=\"0\"} 4\nwait_seconds_bucket{le=\"+Inf\",node=\"0\"} 5\n"
                "wait_seconds_sum{node=\"0\"} 63.000201\nwait_seconds_count{node=\"0\"} 5\n"),
       "the end of a histogram");

    struct histogram *again = histogram_new(m, "wait_seconds", "Waiting.");
    histogram_add_us(again, 1);
    ok(shows(m, "wait_seconds_count{node=\"0\"} 6\n"),
       "the same name continues the same histogram");
    histogram_free(again);
    histogram_free(h);
    metrics_close(m);
}

static void full_page(void)
{
    struct buf log;
    buf_init(&log);
    log_capture(&log);
    struct metrics *m = metrics_open(-1, 1, 0);
    char labels[120];
    memset(labels, 'x', sizeof(labels));
    labels[sizeof(labels) - 1] = '\0';
    metric_add(metric(m, METRIC_COUNTER, "long_total", labels, ""), 1);
    ok(!shows(m, "long_total"), "labels that do not fit are not shown");
    for (int i = 0; i < METRICS_SLOTS_MAX - 10; i++) {
        snprintf(labels, sizeof(labels), "i=\"%d\"", i);
        metric_add(metric(m, METRIC_COUNTER, "many_total", labels, ""), i);
    }
    struct histogram *h = histogram_new(m, "late_seconds", "");
    histogram_add_us(h, 1);
    ok(!shows(m, "late_seconds"), "a histogram without room for all of it is not shown");
    for (int i = 0; i < 10; i++) {
        snprintf(labels, sizeof(labels), "i=\"%d\"", i);
        metric_add(metric(m, METRIC_COUNTER, "rest_total", labels, ""), i);
    }
    ok(shows(m, "rest_total{i=\"9\",node=\"0\"} 9\n"), "the last slot is used");
    int64_t *unseen = metric(m, METRIC_COUNTER, "unseen_total", "", "");
    metric_add(unseen, 1);
    ok(metric(m, METRIC_COUNTER, "unseen_total", "", "") == unseen && *unseen == 1,
       "a metric beyond the page works");
    ok(!shows(m, "unseen_total"), "but is not shown");
    struct str text = buf_str(&log);
    ok(str_find(text, STR("long_total")) > 0 && str_find(text, STR("late_seconds")) < 0,
       "logged once");
    log_capture(NULL);
    buf_release(&log);
    histogram_free(h);
    metrics_close(m);
}

static void count_as_node(int fd, int node, int64_t n)
{
    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0) {
        struct metrics *m = metrics_open(fd, 3, node);
        metric_add(metric(m, METRIC_COUNTER, "work_total", "", "Work."), n);
        struct histogram *h = histogram_new(m, "work_seconds", "Work.");
        histogram_add_us(h, n);
        histogram_free(h);
        metrics_close(m);
        _exit(0);
    }
    int status;
    check(waitpid(pid, &status, 0) == pid && status == 0);
}

static void several_nodes(void)
{
    int fd = memfd_create("metrics", MFD_CLOEXEC);
    check(fd >= 0);
    struct metrics *reader = metrics_open(fd, 3, -1);
    count_as_node(fd, 2, 20);
    count_as_node(fd, 0, 5);
    ok(shows(reader, "# HELP work_total Work.\n# TYPE work_total counter\n"
                     "work_total{node=\"0\"} 5\nwork_total{node=\"2\"} 20\n"),
       "the numbers of all nodes, under one head");
    ok(shows(reader, "work_seconds_count{node=\"0\"} 1\n") &&
           shows(reader, "work_seconds_count{node=\"2\"} 1\n"),
       "histograms of two nodes are not added up");

    int64_t *mine = metric(reader, METRIC_COUNTER, "reader_total", "", "");
    metric_add(mine, 1);
    ok(!shows(reader, "reader_total"), "readers write on no slab");

    struct metrics *successor = metrics_open(fd, 3, 2);
    ok(!shows(reader, "node=\"2\"") && shows(reader, "work_total{node=\"0\"} 5\n"),
       "opening a slab clears that one only");
    metrics_close(successor);
    metrics_close(reader);
    close(fd);
}

int main(void)
{
    one_page();
    histograms();
    full_page();
    several_nodes();
    int64_t *unseen = metric(NULL, METRIC_COUNTER, "a", "", "A.");
    metric_add(unseen, 1);
    ok(*unseen == 1, "a metric without a page counts");
    return tap_done();
}
