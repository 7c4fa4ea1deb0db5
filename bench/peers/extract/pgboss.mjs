// pg-boss with rows in the same PostgreSQL, by pg, statements that are prepared by name. As its
// documentation offers for throughput: insert of many at a time; work() with batches, several
// workers, that ask again at once while batches are full.
//   pgboss.mjs push COUNT | work COUNT
import pg from 'pg'
import { PgBoss } from 'pg-boss'
import { command, concurrency, count, extract, fail, jobs, tell } from './job.mjs'

const NAME = 'documents'
const BULK = 1000
const POLLERS = Number(process.env.POLLERS || 4)
const where = { host: process.env.PGHOST, database: 'postgres', user: 'postgres' }
const boss = new PgBoss({ ...where, max: 6, supervise: false, schedule: false })
boss.on('error', fail)
await boss.start()

async function push () {
  await boss.createQueue(NAME, { partition: true })
  const all = jobs().map((data) => ({ data }))
  for (let i = 0; i < count; i += BULK) await boss.insert(NAME, all.slice(i, i + BULK))
  // Autovacuum would do it within a minute; until then PostgreSQL knows nothing about the tables
  // and plans badly.
  await boss.getDb().executeSql('VACUUM ANALYZE')
  process.exit(0)
}

function rows () {
  const pool = new pg.Pool({ ...where, max: Number(process.env.CONNECTIONS || 16) })
  const run = (name, text, values) => pool.query({ name, text, values })
  return {
    text: async (document) => {
      const { rows } = await run(
        'text', 'SELECT bytes FROM bench_piece WHERE document = $1 AND place = 0', [document])
      return rows[0].bytes.toString()
    },
    begin: (id) => run('begin',
      "UPDATE bench_result SET state = 'extracting', changed_at = now()" +
      " WHERE number = $1 AND state = 'pending'", [id]),
    end: (id, result) => run('end',
      "UPDATE bench_result SET state = 'completed', result = $1, changed_at = now()" +
      " WHERE number = $2 AND state = 'extracting'", [result, id])
  }
}

async function work () {
  const store = rows()
  const began = performance.now()
  const used = process.cpuUsage()
  let done = 0
  const batch = async (list) => {
    await Promise.all(list.map((job) => extract(store, job.data)))
    done += list.length
    if (done >= count) setImmediate(() => tell(began, used))
  }
  await boss.work(NAME, {
    batchSize: Math.ceil(concurrency / POLLERS),
    localConcurrency: POLLERS,
    burstWhenBatchFull: true,
    pollingIntervalSeconds: 0.5
  }, batch)
}

await { push, work }[command]()
