"""RQ: enqueue_many, and as many processes as are asked for, each a SimpleWorker, which its notes on
performance name for jobs of milliseconds: it does not fork for each job. The processes are forked
from one that has imported everything, as `rq worker-pool` does.

rq_app.py add | work"""
import json
import os
import signal
import sys
import time

from rq import Queue, SimpleWorker

import job

NAME = "papers"
BULK = 10  # blocks in one call


def screen(paper):
    job.charge([(paper["doi"], *job.ask(paper))])


def add():
    queue, began, bulk = Queue(NAME, connection=job.store), time.monotonic(), []

    def flush():
        if bulk:
            queue.enqueue_many([Queue.prepare_data("rq_app.screen", (p,), result_ttl=0, timeout=600,
                                                   description='') for p in bulk])
        bulk.clear()
    for papers in job.papers():
        bulk.extend(papers)
        if len(bulk) >= BULK * job.BLOCK:
            flush()
    flush()
    print(json.dumps({"seconds": time.monotonic() - began}))


def work():
    job.store.connection_pool.disconnect()
    worker = SimpleWorker([Queue(NAME, connection=job.store)], connection=job.store,
                          disable_default_exception_handler=True, log_job_description=False)
    worker.work(logging_level="ERROR")


def fork():
    children = []
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    for _ in range(int(os.environ["WORKERS"])):
        pid = os.fork()
        if pid == 0:
            import ctypes
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: it ends with its parent
            work()
            os._exit(1)
        children.append(pid)
    while True:
        signal.pause()


if __name__ == "__main__":
    add() if sys.argv[1] == "add" else fork()
