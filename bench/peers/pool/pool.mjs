// What one would write instead of pools, on Fastify, in PROCESSES processes on one port:
//   seed    RPOP from a list in Redis; the row is marked as used afterwards, one UPDATE after the
//           other in each process, while nothing waits for it
//   redis   RPOP alone: what was handed out is known to Redis only
//   locked  no Redis: SELECT … FOR UPDATE SKIP LOCKED and UPDATE in a transaction
// The lists are full from the start: nothing is refilled. No request is authenticated.
import cluster from 'node:cluster'
import Fastify from 'fastify'
import Redis from 'ioredis'
import mysql from 'mysql2/promise'

const { MODE, PROCESSES, PORT, REDIS_SOCKET, REDISCLI_AUTH, MYSQL_SOCKET, MYSQL_PWD } = process.env
const CONNECTIONS = Number(process.env.CONNECTIONS || 16) // of a process
const redis = new Redis({
  path: REDIS_SOCKET, password: REDISCLI_AUTH, enableAutoPipelining: true, lazyConnect: true
})
const sql = mysql.createPool({
  socketPath: MYSQL_SOCKET,
  user: 'millrace',
  password: MYSQL_PWD,
  database: 'millrace',
  connectionLimit: CONNECTIONS
})

// --- marks, as the seed makes them ---

const used = []
let marking = false

async function mark () {
  marking = true
  while (used.length) {
    await sql.execute('UPDATE bench_titles SET status = 0 WHERE id = ?', [used.shift()])
  }
  marking = false
}

const empty = () => Object.assign(new Error('nothing is left'), { statusCode: 409 })

async function seed (group) {
  const text = await redis.rpop(`bench:titles:pool:${group}`)
  if (!text) throw empty()
  const item = JSON.parse(text)
  used.push(item.id)
  if (!marking) mark()
  return item
}

async function popRedis (group) {
  const text = await redis.rpop(`bench:titles:pool:${group}`)
  if (!text) throw empty()
  return JSON.parse(text)
}

async function locked (group) {
  const c = await sql.getConnection()
  try {
    await c.query('START TRANSACTION')
    const [[item]] = await c.execute(
      'SELECT id, title AS text FROM bench_titles WHERE group_id = ? AND status = 1' +
      ' ORDER BY batch_id DESC, id LIMIT 1 FOR UPDATE SKIP LOCKED', [group])
    if (!item) throw empty()
    await c.execute('UPDATE bench_titles SET status = 0 WHERE id = ?', [item.id])
    await c.query('COMMIT')
    return item
  } catch (e) {
    await c.query('ROLLBACK')
    throw e
  } finally {
    c.release()
  }
}

// --- serving ---

const pop = { seed, redis: popRedis, locked }[MODE]
const item = {
  type: 'object', properties: { id: { type: 'integer' }, text: { type: 'string' } }
}
const reply = {
  type: 'object',
  properties: { success: { type: 'boolean' }, items: { type: 'array', items: item } }
}

async function serve () {
  if (MODE !== 'locked') await redis.connect()
  sql.pool.on('connection', (c) =>
    c.query('SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED'))
  const fastify = Fastify({ logger: false })
  fastify.post(
    '/api/pools/titles/:group/pop',
    { schema: { response: { 200: reply } } },
    async (request) => ({ success: true, items: [await pop(request.params.group)] })
  )
  await fastify.listen({ host: '127.0.0.1', port: Number(PORT) })
  console.log('ready')
}

if (cluster.isPrimary) for (let i = 0; i < Number(PROCESSES); i++) cluster.fork()
else await serve()
