// BullMQ as docs.bullmq.io advises for throughput: addBulk, a concurrency factor, jobs that are
// removed when they are done. The work is nothing.
//   bullmq.mjs push COUNT | work COUNT | start ROUNDS
// Each prints a line of JSON, as bench/jobs.c does.
import { Queue, Worker } from 'bullmq'
import { fail, spread, stopwatch, tell } from './figures.mjs'

const NAME = 'alone'
const BULK = 1000
const CALLS = 2
const USERS = 1000
const CONCURRENCY = 100
const connection = { path: process.env.REDIS_SOCKET, maxRetriesPerRequest: null }
const [command, number] = process.argv.slice(2)
const count = Number(number)

async function open () {
  const queue = new Queue(NAME, {
    connection,
    defaultJobOptions: { removeOnComplete: true, attempts: 3 }
  })
  await queue.waitUntilReady()
  return queue
}

function work (job) {
  const worker = new Worker(NAME, job, {
    connection,
    concurrency: CONCURRENCY,
    removeOnComplete: { count: 0 }
  })
  worker.on('failed', (_, e) => fail(e))
  worker.on('error', fail)
  return worker
}

async function push () {
  const queue = await open()
  let next = 0
  const add = async () => {
    while (next < count) {
      const first = next
      next += BULK
      const numbers = Array.from({ length: Math.min(BULK, count - first) }, (_, i) => first + i)
      await queue.addBulk(numbers.map((n) => ({
        name: 'job', data: { id: `0-${String(n).padStart(12, '0')}`, uid: 1 + n % USERS }
      })))
    }
  }
  const watch = stopwatch()
  await Promise.all(Array.from({ length: CALLS }, add))
  tell(count, watch)
}

async function workAll () {
  const watch = stopwatch()
  let done = 0
  await new Promise((resolve) => {
    work(async () => {}).on('completed', () => { if (++done === count) resolve() })
  })
  tell(count, watch)
}

// From add() to the begin of the work, in one process.
async function start () {
  const queue = await open()
  const took = []
  let begun
  await work(async () => begun(performance.now())).waitUntilReady()
  for (let i = 0; i < count; i++) {
    await new Promise((resolve) => setTimeout(resolve, 20 + i % 17))
    const at = new Promise((resolve) => { begun = resolve })
    const began = performance.now()
    await queue.add('job', { id: `0-${i}`, uid: 1 })
    took.push((await at) - began)
  }
  spread(took)
}

await { push, work: workAll, start }[command]()
process.exit(0)
