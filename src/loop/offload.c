/* Helper threads. Jobs live on the stack of the task that waits for them:
 *
 *   task: queued ──> thread: running ──> done ──(eventfd)──> loop wakes the task
 *
 * A job leaves `queued` either to a thread or, cancelled, back to its task, both under the
 * lock; once a thread has it, the task waits for the end. */
#include "loop/offload.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/check.h"
#include "loop/loop_private.h"

#define NICE 5 /* offloaded work is long and less urgent than the loop's thread */

#define FILES 16383 /* the last one of 16,384 */

enum job_state { JOB_QUEUED, JOB_RUNNING, JOB_DONE };

struct job {
    struct list link;
    enum job_state state;
    void (*fn)(void *arg);
    void *arg;
    struct task *task;
};

struct offload_pool {
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct list queued, done; /* under the lock */
    size_t queued_count;      /* under the lock */
    bool stop;                /* under the lock */
    size_t waiting;           /* loop thread only: jobs whose tasks wait */
    int event_fd;
    struct event *ev;
    int thread_count;
    pthread_t threads[];
};

static void *thread_main(void *arg)
{
    struct offload_pool *p = arg;
    (void)!nice(NICE); /* of this thread alone, on Linux */
    pthread_mutex_lock(&p->lock);
    for (;;) {
        while (list_empty(&p->queued) && !p->stop)
            pthread_cond_wait(&p->more, &p->lock);
        if (p->stop)
            break;
        struct job *j = list_entry(list_pop(&p->queued), struct job, link);
        p->queued_count--;
        j->state = JOB_RUNNING;
        pthread_mutex_unlock(&p->lock);
        j->fn(j->arg);
        pthread_mutex_lock(&p->lock);
        j->state = JOB_DONE;
        list_push(&p->done, &j->link);
        uint64_t one = 1;
        check(write(p->event_fd, &one, sizeof one) == sizeof one);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

static void on_done(int fd, short what, void *arg)
{
    (void)what;
    struct offload_pool *p = arg;
    uint64_t count;
    (void)!read(fd, &count, sizeof count);
    pthread_mutex_lock(&p->lock);
    struct list *it;
    while ((it = list_pop(&p->done)))
        task_wake(list_entry(it, struct job, link)->task);
    pthread_mutex_unlock(&p->lock);
}

static void start_threads(struct offload_pool *p, int threads)
{
    sigset_t all, old; /* signals belong to the loop's thread */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    for (; p->thread_count < threads; p->thread_count++)
        check(pthread_create(&p->threads[p->thread_count], NULL, thread_main, p) == 0);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* Threads share the process's table of files, and from then on the kernel waits for all cores, for
 * 10 to 20 ms, in the call that makes it grow: the one that opens file 256, 512, 1,024… It grows
 * here, before the first thread; 128 KB. */
static void grow_file_table(int any_fd)
{
    int last = fcntl(any_fd, F_DUPFD_CLOEXEC, FILES);
    if (last >= 0) /* else the limit of files is lower */
        close(last);
}

static struct offload_pool *pool_new(struct loop *l)
{
    size_t bytes = (size_t)l->offload_threads * sizeof(pthread_t);
    struct offload_pool *p = check_memory(calloc(1, sizeof *p + bytes));
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->more, NULL);
    list_init(&p->queued);
    list_init(&p->done);
    p->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    check(p->event_fd >= 0);
    p->ev = event_new(l->base, p->event_fd, EV_READ | EV_PERSIST, on_done, p);
    check(p->ev && event_add(p->ev, NULL) == 0);
    grow_file_table(p->event_fd);
    start_threads(p, l->offload_threads);
    return p;
}

void offload_pool_free(struct offload_pool *p)
{
    pthread_mutex_lock(&p->lock);
    p->stop = true;
    pthread_cond_broadcast(&p->more);
    pthread_mutex_unlock(&p->lock);
    for (int i = 0; i < p->thread_count; i++)
        pthread_join(p->threads[i], NULL);
    event_free(p->ev);
    close(p->event_fd);
    pthread_cond_destroy(&p->more);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

bool offload_pending(const struct loop *l)
{
    return l->offload && l->offload->waiting > 0;
}

static bool enqueue(struct offload_pool *p, struct job *j)
{
    pthread_mutex_lock(&p->lock);
    bool room = p->queued_count < OFFLOAD_QUEUE_MAX;
    if (room) {
        list_push(&p->queued, &j->link);
        p->queued_count++;
        pthread_cond_signal(&p->more);
    }
    pthread_mutex_unlock(&p->lock);
    return room;
}

static enum job_state job_state(struct offload_pool *p, struct job *j)
{
    pthread_mutex_lock(&p->lock);
    enum job_state state = j->state;
    pthread_mutex_unlock(&p->lock);
    return state;
}

/* False: a thread has taken it already. */
static bool withdraw(struct offload_pool *p, struct job *j)
{
    pthread_mutex_lock(&p->lock);
    bool mine = j->state == JOB_QUEUED;
    if (mine) {
        list_del(&j->link);
        p->queued_count--;
    }
    pthread_mutex_unlock(&p->lock);
    return mine;
}

int offload(struct task *t, void (*fn)(void *arg), void *arg)
{
    struct loop *l = task_loop(t);
    if (!l->offload)
        l->offload = pool_new(l);
    struct offload_pool *p = l->offload;
    struct job j = {.fn = fn, .arg = arg, .task = t};
    if (!enqueue(p, &j))
        return task_fail(t, ERR_BUSY, "the queue of the helper threads is full (%d jobs)",
                         OFFLOAD_QUEUE_MAX);
    p->waiting++;
    int err = 0;
    while (!err && job_state(p, &j) != JOB_DONE)
        err = task_wait(t);
    if (err && !withdraw(p, &j)) {
        while (job_state(p, &j) != JOB_DONE)
            task_wait_always(t);
        err = 0;
    }
    /* The job is on this frame: on_done must not find it later. */
    pthread_mutex_lock(&p->lock);
    list_del(&j.link);
    pthread_mutex_unlock(&p->lock);
    p->waiting--;
    return err;
}
