// Posts as vectors by BullMQ, with rows and vectors in MariaDB by mysql2, prepared statements on a
// pool; texts are cut by @langchain/textsplitters, as its documentation has it for Markdown. As
// docs.bullmq.io advises for throughput: addBulk, a concurrency factor, jobs that are removed when
// they are done. The work on one post: its row says processing, its content is read and cut, the
// service is asked for all its chunks at once, the vectors take the place of the former ones and
// the row is completed, in one transaction.
//   bullmq.mjs push COUNT | work COUNT
import { Queue, Worker } from 'bullmq'
import { RecursiveCharacterTextSplitter } from '@langchain/textsplitters'
import mysql from 'mysql2/promise'
import { Client } from 'undici'

const env = process.env
const [command, number] = process.argv.slice(2)
const count = Number(number)
const concurrency = Number(env.CONCURRENCY || 50)
const NAME = 'posts'
const BULK = 1000
const SPACE = 1
const connection = { path: env.REDIS_SOCKET, maxRetriesPerRequest: null }
const headers = { 'content-type': 'application/json', authorization: 'Bearer sk-bench' }
const idle = [] // connections that no call uses

function fail (e) {
  console.error(e)
  process.exit(1)
}
process.on('unhandledRejection', fail)

// The estimate that millrace has, for texts of ASCII.
const splitter = RecursiveCharacterTextSplitter.fromLanguage('markdown', {
  chunkSize: 500, chunkOverlap: 100, lengthFunction: (text) => Math.floor(text.length / 3) + 1
})

function ask (input) {
  const client = idle.pop() ?? new Client(env.AI_URL)
  const body = JSON.stringify({ model: 'default', input, encoding_format: 'base64' })
  return new Promise((resolve, reject) => {
    const parts = []
    let status
    client.dispatch(
      { path: '/v1/embeddings', method: 'POST', headers, body },
      {
        onRequestStart () {},
        onResponseStart (controller, code) {
          status = code
        },
        onResponseData (controller, part) {
          parts.push(part)
        },
        onResponseEnd () {
          idle.push(client)
          if (status === 200) resolve(JSON.parse(Buffer.concat(parts)))
          else reject(new Error(`the service answers ${status}`))
        },
        onResponseError (controller, e) {
          reject(e)
        }
      }
    )
  })
}

// Of length one, as 32-bit floats.
function vectors (reply, chunks) {
  const found = reply.data.sort((a, b) => a.index - b.index).map(({ embedding }) => {
    const bytes = Buffer.from(embedding, 'base64')
    const v = new Float32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4)
    let sum = 0
    for (const x of v) sum += x * x
    if (!Number.isFinite(sum) || sum === 0) throw new Error('a vector has no direction')
    const scale = 1 / Math.sqrt(sum)
    return Buffer.from(v.map((x) => x * scale).buffer)
  })
  if (found.length !== chunks) throw new Error(`${found.length} vectors for ${chunks} chunks`)
  return found
}

async function push () {
  const queue = new Queue(NAME, {
    connection,
    defaultJobOptions: {
      removeOnComplete: true, attempts: 3, backoff: { type: 'exponential', delay: 5000 }
    }
  })
  await queue.waitUntilReady()
  const all = Array.from({ length: count }, (_, i) => (
    { name: 'embed', data: { postId: i + 1 }, opts: { priority: 5, jobId: `post-${i + 1}` } }))
  for (let i = 0; i < count; i += BULK) await queue.addBulk(all.slice(i, i + BULK))
  process.exit(0)
}

const pool = mysql.createPool({
  socketPath: env.MYSQL_SOCKET,
  user: 'millrace',
  password: env.MYSQL_PWD,
  database: 'millrace',
  connectionLimit: Number(env.CONNECTIONS || 16)
})

// As many write at once, InnoDB may find a deadlock; such a transaction is repeated.
async function store (id, found) {
  for (;;) {
    try {
      return await storeOnce(id, found)
    } catch (e) {
      if (e.code !== 'ER_LOCK_DEADLOCK') throw e
    }
  }
}

async function storeOnce (id, found) {
  const sql = await pool.getConnection()
  try {
    await sql.query('BEGIN')
    await sql.execute('DELETE FROM bench_vector WHERE owner = ? AND space = ?', [id, SPACE])
    const rows = found.map(() => '(?, ?, ?, 1, ?)').join(', ')
    await sql.execute(
      `INSERT INTO bench_vector (space, owner, part, version, vector) VALUES ${rows}`,
      found.flatMap((v, part) => [SPACE, id, part, v]))
    await sql.execute(
      "UPDATE bench_post SET rag_status = 'completed', rag_error = NULL," +
      " changed_at = UTC_TIMESTAMP(3) WHERE id = ? AND rag_status = 'processing'", [id])
    await sql.query('COMMIT')
  } finally {
    sql.release()
  }
}

async function embed (id) {
  await pool.execute("UPDATE bench_post SET rag_status = 'processing'," +
    " changed_at = UTC_TIMESTAMP(3) WHERE id = ? AND rag_status = 'pending'", [id])
  const [[row]] = await pool.execute('SELECT content FROM bench_post WHERE id = ?', [id])
  const chunks = await splitter.splitText(row.content)
  await store(id, vectors(await ask(chunks), chunks.length))
}

async function work () {
  const began = performance.now()
  const used = process.cpuUsage()
  let done = 0
  const worker = new Worker(NAME, (job) => embed(job.data.postId), {
    connection,
    concurrency,
    removeOnComplete: { count: 0 }
  })
  worker.on('completed', () => {
    if (++done < count) return
    const cpu = process.cpuUsage(used)
    console.log(JSON.stringify({
      jobs: count, seconds: (performance.now() - began) / 1000, cpu_us: cpu.user + cpu.system
    }))
    process.exit(0)
  })
  worker.on('failed', (_, e) => fail(e))
  worker.on('error', fail)
}

await { push, work }[command]()
