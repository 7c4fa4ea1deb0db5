// BullMQ as docs.bullmq.io advises for throughput: addBulk; workers with a concurrency factor, several processes; jobs that are
// removed when they are done.   bullmq.mjs add | work
import { Queue, Worker } from 'bullmq'
import { fail, processes, total, workers } from './job.mjs'
import { connection, redis, screen } from './node.mjs'

const NAME = 'papers'
const BLOCK = 100
const BULK = 10 // blocks in one addBulk

async function add () {
  const queue = new Queue(NAME, { connection, defaultJobOptions: { removeOnComplete: true, attempts: 3 } })
  await queue.waitUntilReady()
  const began = performance.now()
  for (let block = 0; block * BLOCK < total; block += BULK) {
    const numbers = Array.from({ length: Math.min(BULK, total / BLOCK - block) }, (_, i) => block + i)
    const papers = (await redis.mget(numbers.map((n) => `papers:${n}`))).flatMap((text) => JSON.parse(text))
    await queue.addBulk(papers.map((paper) => ({ name: 'screen', data: paper })))
  }
  console.log(JSON.stringify({ seconds: (performance.now() - began) / 1000 }))
  process.exit(0)
}

function work () {
  const worker = new Worker(NAME, (job) => screen(job.data), {
    connection, concurrency: Math.ceil(workers / processes), lockDuration: 60000, removeOnComplete: { count: 0 }
  })
  worker.on('failed', (job, e) => fail(e))
  worker.on('error', fail)
}

if (process.argv[2] === 'add') add().catch(fail)
else work()
