// The work on one paper with what Node offers: undici, which its documentation calls the fastest client, a connection per
// worker, and ioredis.
import fs from 'node:fs'
import Redis from 'ioredis'
import { Pool } from 'undici'
import { charger, processes, prompt, verdict, workers } from './job.mjs'

const env = process.env
export const connection = { path: env.REDIS_SOCKET, maxRetriesPerRequest: null }
export const redis = new Redis({ ...connection, enableAutoPipelining: true })
const pool = new Pool(env.AI_URL, { connections: Math.ceil(workers / processes), pipelining: 1 })
const headers = { 'content-type': 'application/json', authorization: 'Bearer sk-bench' }
const sha = await redis.script('LOAD', fs.readFileSync(env.CHARGE_SCRIPT, 'utf8'))
const charge = charger((keys, words) => redis.evalsha(sha, keys, ...words))

export async function screen (paper) {
  const reply = await pool.request({ path: '/v1/chat/completions', method: 'POST', headers, body: prompt(paper) })
  if (reply.statusCode !== 200) throw new Error(`the AI answers ${reply.statusCode}`)
  const { relevant, result } = verdict(paper, await reply.body.json())
  await charge(paper.doi, relevant, result)
}
