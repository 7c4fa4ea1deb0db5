// pg-boss with fetch and complete of many jobs at a time; insert of many at a time.   pgboss.mjs add | work
//
// work() asks at most twice a second for a batch; for throughput the documentation offers the calls below it: fetch() takes
// a batch, complete() ends any number. So that no worker waits for the slowest of its batch, workers take from a
// small store that is filled beforehand, and ends are gathered.
import { PgBoss } from 'pg-boss'
import { addAll, fail, processes, workers } from './job.mjs'
import { redis, screen } from './node.mjs'

const NAME = 'papers'
const mine = Math.ceil(workers / processes)
const FETCH = 1000 // jobs
const GATHER_MS = 20
const BULK = 10 // blocks in one insert
const CALLS = 3
const boss = new PgBoss({
  host: process.env.PGHOST, database: 'postgres', user: 'postgres', max: 6, supervise: false, schedule: false
})
boss.on('error', fail)
await boss.start()

async function add () {
  await boss.createQueue(NAME, { partition: true })
  await addAll(redis, (papers) => boss.insert(NAME, papers.map((data) => ({ data }))), BULK, CALLS)
  // Autovacuum would do it within a minute; until then PostgreSQL knows nothing about the table and plans badly.
  await boss.getDb().executeSql('VACUUM ANALYZE')
  process.exit(0)
}

let store = []
let fetching
let done = []
let completing = false

async function fetch () {
  const jobs = await boss.fetch(NAME, { batchSize: FETCH })
  if (jobs.length === 0) await new Promise((resolve) => setTimeout(resolve, 100))
  store = store.concat(jobs)
  fetching = undefined
}

async function complete () {
  completing = true
  while (done.length) {
    await new Promise((resolve) => setTimeout(resolve, GATHER_MS))
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
