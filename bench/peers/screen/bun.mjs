// The work on one paper with what Bun brings along: its own Redis client, and its own fetch. That
// keeps at most 64 connections which nobody uses and closes the others, so that thousands of
// workers connect again and again: those get node:http and an agent.
import fs from 'node:fs'
import http from 'node:http'
import { RedisClient } from 'bun'
import { charger, processes, prompt, verdict, workers } from './job.mjs'

const FETCH_MAX = 1000 // workers
const env = process.env
export const redis = new RedisClient('redis+unix://' + env.REDIS_SOCKET)
const url = env.AI_URL + '/v1/chat/completions'
const headers = { 'content-type': 'application/json', authorization: 'Bearer sk-bench' }
const sha = await redis.send('SCRIPT', ['LOAD', fs.readFileSync(env.CHARGE_SCRIPT, 'utf8')])
const charge = charger((keys, words) => redis.send('EVALSHA', [sha, String(keys), ...words]))
const agent = new http.Agent({ keepAlive: true, maxSockets: Infinity, maxFreeSockets: Infinity })

async function askByFetch (body) {
  const reply = await fetch(url, { method: 'POST', headers, body })
  if (reply.status !== 200) throw new Error(`the AI answers ${reply.status}`)
  return reply.json()
}

function askByAgent (body) {
  return new Promise((resolve, reject) => {
    const options = {
      method: 'POST',
      headers: { ...headers, 'content-length': Buffer.byteLength(body) },
      agent
    }
    const request = http.request(url, options, (reply) => {
      if (reply.statusCode !== 200) reject(new Error(`the AI answers ${reply.statusCode}`))
      const parts = []
      reply.on('data', (part) => parts.push(part))
      reply.on('end', () => resolve(JSON.parse(Buffer.concat(parts))))
    })
    request.on('error', reject)
    request.end(body)
  })
}

const ask = workers / processes > FETCH_MAX ? askByAgent : askByFetch

export async function screen (paper) {
  const { relevant, result } = verdict(paper, await ask(prompt(paper)))
  await charge(paper.doi, relevant, result)
}
