// BullMQ as docs.bullmq.io advises for throughput: addBulk; workers with a concurrency factor, several processes; jobs that are
// removed when they are done. With CHUNK a job is so many papers, one after the other.   bullmq.mjs add | work
import { Queue, Worker } from 'bullmq'
import { fail, processes, total, workers } from './job.mjs'
import { connection, redis, screen } from './node.mjs'

const NAME = 'papers'
const BLOCK = 100
const BULK = 10 // blocks in one addBulk
const CHUNK = Number(process.env.CHUNK || 1)

async function add () {
  const queue = new Queue(NAME, { connection, defaultJobOptions: { removeOnComplete: true, attempts: 3 } })
  await queue.waitUntilReady()
  const began = performance.now()
  for (let block = 0; block * BLOCK < total; block += BULK) {
    const numbers = Array.from({ length: Math.min(BULK, total / BLOCK - block) }, (_, i) => block + i)
    const papers = (await redis.mget(numbers.map((n) => `papers:${n}`))).flatMap((text) => JSON.parse(text))
    const jobs = []
    for (let i = 0; i < papers.length; i += CHUNK) jobs.push({ name: 'screen', data: papers.slice(i, i + CHUNK) })
    await queue.addBulk(jobs)
  }
  console.log(JSON.stringify({ seconds: (performance.now() - began) / 1000 }))
  process.exit(0)
}

async function screenAll (job) {
  for (const paper of job.data) await screen(paper)
}

function work () {
  const worker = new Worker(NAME, screenAll, {
    connection, concurrency: Math.ceil(workers / processes), lockDuration: 60000, removeOnComplete: { count: 0 }
  })
  worker.on('failed', (job, e) => fail(e))
  worker.on('error', fail)
}

if (process.argv[2] === 'add') add().catch(fail)
else work()
