// pg-boss as its documentation offers for throughput: insert of many at a time; work() with
// batches, several workers in a process (localConcurrency), that ask again at once while batches
// are full (burstWhenBatchFull).   pgboss.mjs add | work
import { PgBoss } from 'pg-boss'
import { addAll, fail, processes, workers } from './job.mjs'
import { redis, screen } from './node.mjs'

const NAME = 'papers'
// More of them, with smaller batches, where batches wait for the AI.
const POLLERS = Number(process.argv[3] || 4)
const batchSize = Math.ceil(workers / processes / POLLERS)
const BULK = 10 // blocks in one insert
const CALLS = 3
const boss = new PgBoss({
  host: process.env.PGHOST,
  database: 'postgres',
  user: 'postgres',
  max: 6,
  supervise: false,
  schedule: false
})
boss.on('error', fail)
await boss.start()

async function add () {
  await boss.createQueue(NAME, { partition: true })
  await addAll(redis, (papers) => boss.insert(NAME, papers.map((data) => ({ data }))), BULK, CALLS)
  // Autovacuum would do it within a minute; until then PostgreSQL knows nothing about the table and
  // plans badly.
  await boss.getDb().executeSql('VACUUM ANALYZE')
  process.exit(0)
}

async function screenAll (jobs) {
  await Promise.all(jobs.map((job) => screen(job.data)))
}

const options = {
  batchSize,
  localConcurrency: POLLERS,
  burstWhenBatchFull: true,
  pollingIntervalSeconds: 0.5
}
if (process.argv[2] === 'add') add().catch(fail)
else boss.work(NAME, options, screenAll).catch(fail)
