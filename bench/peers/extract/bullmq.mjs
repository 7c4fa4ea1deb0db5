// BullMQ with rows in MariaDB by mysql2, prepared statements on a pool. As docs.bullmq.io advises
// for throughput: addBulk, a concurrency factor, jobs that are removed when they are done.
//   bullmq.mjs push COUNT | work COUNT
import { Queue, Worker } from 'bullmq'
import mysql from 'mysql2/promise'
import { command, concurrency, count, extract, fail, jobs, tell } from './job.mjs'

const NAME = 'documents'
const BULK = 1000
const connection = { path: process.env.REDIS_SOCKET, maxRetriesPerRequest: null }

async function push () {
  const queue = new Queue(NAME, {
    connection,
    defaultJobOptions: { removeOnComplete: true, attempts: 3 }
  })
  await queue.waitUntilReady()
  const all = jobs().map((data) => ({ name: 'extract', data }))
  for (let i = 0; i < count; i += BULK) await queue.addBulk(all.slice(i, i + BULK))
  process.exit(0)
}

function rows () {
  const pool = mysql.createPool({
    socketPath: process.env.MYSQL_SOCKET,
    user: 'millrace',
    password: process.env.MYSQL_PWD,
    database: 'millrace',
    connectionLimit: Number(process.env.CONNECTIONS || 16)
  })
  return {
    text: async (document) => {
      const [[row]] = await pool.execute(
        'SELECT bytes FROM bench_piece WHERE document = ? AND place = 0', [document])
      return row.bytes.toString()
    },
    begin: (id) => pool.execute(
      "UPDATE bench_result SET state = 'extracting', changed_at = UTC_TIMESTAMP(3)" +
      " WHERE number = ? AND state = 'pending'", [id]),
    end: (id, result) => pool.execute(
      "UPDATE bench_result SET state = 'completed', result = ?, changed_at = UTC_TIMESTAMP(3)" +
      " WHERE number = ? AND state = 'extracting'", [result, id])
  }
}

async function work () {
  const store = rows()
  const began = performance.now()
  const used = process.cpuUsage()
  let done = 0
  const worker = new Worker(NAME, (job) => extract(store, job.data), {
    connection,
    concurrency,
    removeOnComplete: { count: 0 }
  })
  worker.on('completed', () => { if (++done === count) tell(began, used) })
  worker.on('failed', (_, e) => fail(e))
  worker.on('error', fail)
}

await { push, work }[command]()
