// pg-boss as its documentation offers for throughput: insert of many at a time; work() with
// batches, several workers, that ask again at once while batches are full. The work is nothing.
//   pgboss.mjs push COUNT | work COUNT
import { PgBoss } from 'pg-boss'
import { fail, stopwatch, tell } from './figures.mjs'

const NAME = 'alone'
const BULK = 1000
const CALLS = 3
const USERS = 1000
const [command, number] = process.argv.slice(2)
const count = Number(number)
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

async function push () {
  await boss.createQueue(NAME, { partition: true })
  let next = 0
  const add = async () => {
    while (next < count) {
      const first = next
      next += BULK
      const numbers = Array.from({ length: Math.min(BULK, count - first) }, (_, i) => first + i)
      await boss.insert(NAME, numbers.map((n) => ({
        data: { id: `0-${String(n).padStart(12, '0')}`, uid: 1 + n % USERS }
      })))
    }
  }
  const watch = stopwatch()
  await Promise.all(Array.from({ length: CALLS }, add))
  tell(count, watch)
  // Autovacuum would do it within a minute; until then PostgreSQL knows nothing about the table and
  // plans badly.
  await boss.getDb().executeSql('VACUUM ANALYZE')
}

// Batches of 400, as they were fastest for screening (bench/screen_peers.py).
async function work () {
  const watch = stopwatch()
  let done = 0
  await new Promise((resolve, reject) => {
    const batch = async (jobs) => {
      done += jobs.length
      if (done >= count) resolve()
    }
    const options = {
      batchSize: 400, localConcurrency: 4, burstWhenBatchFull: true, pollingIntervalSeconds: 0.5
    }
    boss.work(NAME, options, batch).catch(reject)
  })
  tell(count, watch)
}

await { push, work }[command]()
process.exit(0)
