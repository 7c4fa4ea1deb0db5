"""Celery on Redis as its user guide advises for many short tasks: no results, no events, no rate
limits, a prefetch of several tasks, one producer connection. The pool is that of the command line.
With CHUNK a task is so many papers, one after the other, as its
guide on canvas advises.   celery_app.py: adds all papers.

Green threads that charge at the same time share one call of the script; other workers charge each
for itself."""
import json
import os
import sys
import time

GREEN = "gevent" in sys.argv
if GREEN:
    import gevent
    from gevent.event import AsyncResult

from celery import Celery

import job

SOCKET = os.environ["REDIS_SOCKET"]
CHUNK = int(os.environ.get("CHUNK", "1"))  # papers in a task
app = Celery("peer", broker="redis+socket://" + SOCKET)
app.conf.update(task_ignore_result=True, task_store_errors_even_if_ignored=False,
                broker_transport_options={"visibility_timeout": 3600},
                worker_send_task_events=False,
                task_send_sent_event=False, task_create_missing_queues=True, broker_pool_limit=10,
                worker_hijack_root_logger=False, worker_disable_rate_limits=True,
                worker_enable_remote_control=False)
waiting = []


def charge(doi, relevant, result):
    """The first that comes lets all others run that can, then charges for them too."""
    if not GREEN:
        job.charge([(doi, relevant, result)])
        return
    done = AsyncResult()
    waiting.append(((doi, relevant, result), done))
    if len(waiting) == 1:
        gevent.sleep(0)
        batch = waiting[:]
        waiting.clear()
        for at in range(0, len(batch), 100):
            part = batch[at:at + 100]
            try:
                job.charge([c for c, _ in part])
                for _, other in part:
                    other.set(True)
            except Exception as e:
                for _, other in part:
                    other.set_exception(e)
    done.get()


@app.task(name="screen", ignore_result=True)
def screen(papers):
    for paper in papers:
        charge(paper["doi"], *job.ask(paper))


def add():
    began = time.monotonic()
    with app.producer_pool.acquire(block=True) as producer:
        for papers in job.papers():
            for at in range(0, len(papers), CHUNK):
                screen.apply_async((papers[at:at + CHUNK],), producer=producer, retry=False)
    print(json.dumps({"seconds": time.monotonic() - began}))


if __name__ == "__main__":
    add()
    sys.exit(0)
