// BullMQ as docs.bullmq.io advises for throughput: addBulk; workers with a concurrency factor,
// several processes; jobs that are removed when they are done. With CHUNK a job is so many papers,
// one after the other.   bullmq.mjs add | work
import { Queue, Worker } from 'bullmq'
import { addAll, fail, processes, workers } from './job.mjs'
import { connection, redis, screen } from './node.mjs'

const NAME = 'papers'
const BULK = 10 // blocks in one addBulk
const CALLS = 2
const CHUNK = Number(process.env.CHUNK || 1)

async function add () {
  const queue = new Queue(NAME, {
    connection,
    defaultJobOptions: { removeOnComplete: true, attempts: 3 }
  })
  await queue.waitUntilReady()
  await addAll(
    redis,
    (papers) => {
      const jobs = []
      for (let i = 0; i < papers.length; i += CHUNK)
        jobs.push({ name: 'screen', data: papers.slice(i, i + CHUNK) })
      return queue.addBulk(jobs)
    },
    BULK,
    CALLS
  )
  process.exit(0)
}

async function screenAll (job) {
  for (const paper of job.data) await screen(paper)
}

function work () {
  const worker = new Worker(NAME, screenAll, {
    connection,
    concurrency: Math.ceil(workers / processes),
    lockDuration: 60000,
    removeOnComplete: { count: 0 }
  })
  worker.on('failed', (job, e) => fail(e))
  worker.on('error', fail)
}

if (process.argv[2] === 'add') add().catch(fail)
else work()
