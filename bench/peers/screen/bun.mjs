// The work on one paper with what Bun brings along: its own fetch and its own Redis client.
import fs from 'node:fs'
import { RedisClient } from 'bun'
import { charger, prompt, verdict } from './job.mjs'

const env = process.env
export const redis = new RedisClient('redis+unix://' + env.REDIS_SOCKET)
const url = env.AI_URL + '/v1/chat/completions'
const headers = { 'content-type': 'application/json', authorization: 'Bearer sk-bench' }
const sha = await redis.send('SCRIPT', ['LOAD', fs.readFileSync(env.CHARGE_SCRIPT, 'utf8')])
const charge = charger((keys, words) => redis.send('EVALSHA', [sha, String(keys), ...words]))

export async function screen (paper) {
  const reply = await fetch(url, { method: 'POST', headers, body: prompt(paper) })
  if (reply.status !== 200) throw new Error(`the AI answers ${reply.status}`)
  const { relevant, result } = verdict(paper, await reply.json())
  await charge(paper.doi, relevant, result)
}
