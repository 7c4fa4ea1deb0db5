// pg-boss with fetch and complete of many jobs at a time; insert of many at a time.   pgboss.mjs add | work
//
// work() asks at most twice a second for a batch; for throughput the documentation offers the calls below it: fetch() takes
// a batch, complete() ends any number. So that no worker waits for the slowest of its batch, workers take from a
// small store that is filled beforehand, and ends are gathered.
import { PgBoss } from 'pg-boss'
import { fail, processes, total, workers } from './job.mjs'
import { redis, screen } from './node.mjs'

const NAME = 'papers'
const BLOCK = 100
const INSERT = 10 // blocks in one insert
const mine = Math.ceil(workers / processes)
const FETCH = Math.min(500, Math.max(100, mine))
const boss = new PgBoss({
  host: process.env.PGHOST, database: 'postgres', user: 'postgres', max: 6, supervise: false, schedule: false
})
boss.on('error', fail)
await boss.start()

async function add () {
  await boss.createQueue(NAME)
  const began = performance.now()
  for (let block = 0; block * BLOCK < total; block += INSERT) {
    const numbers = Array.from({ length: Math.min(INSERT, total / BLOCK - block) }, (_, i) => block + i)
    const papers = (await redis.mget(numbers.map((n) => `papers:${n}`))).flatMap((text) => JSON.parse(text))
    await boss.insert(NAME, papers.map((data) => ({ data })))
  }
  console.log(JSON.stringify({ seconds: (performance.now() - began) / 1000 }))
  process.exit(0)
}

let store = []
let fetching
let done = []
let completing = false

async function fetch () {
  const jobs = await boss.fetch(NAME, { batchSize: FETCH, priority: false })
  if (jobs.length === 0) await new Promise((resolve) => setTimeout(resolve, 100))
  store = store.concat(jobs)
  fetching = undefined
}

async function complete () {
  completing = true
  while (done.length) {
    const ids = done
    done = []
    await boss.complete(NAME, ids)
  }
  completing = false
}

async function worker () {
  for (;;) {
    if (store.length < FETCH) fetching ||= fetch().catch(fail)
    const job = store.pop()
    if (!job) {
      await fetching
      continue
    }
    await screen(job.data)
    done.push(job.id)
    if (!completing) complete().catch(fail)
  }
}

if (process.argv[2] === 'add') add().catch(fail)
else for (let i = 0; i < mine; i++) worker().catch(fail)
