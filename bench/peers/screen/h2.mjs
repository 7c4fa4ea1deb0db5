// The work on one paper over HTTP/2 on plain TCP, with what Node brings along: node:http2, a few
// connections with many calls each. The server must speak it without being asked first; one that
// speaks HTTP/1.1 alone is told apart at the start.
import http2 from 'node:http2'
import { once } from 'node:events'
import { charger, fail, processes, prompt, verdict, workers } from './job.mjs'
import { redis, evalsha } from './redis.mjs'

export { redis }
const ROOM = 1.2 // streams to workers: one that has ended may still count
const SESSIONS = Number(process.env.H2_SESSIONS || 1)
// Bytes that may come before they are acknowledged, on a connection; no call has to wait for it.
const WINDOW = 16 << 20
const url = process.env.AI_URL
const charge = charger(evalsha)
const head = {
  ':method': 'POST',
  ':path': '/v1/chat/completions',
  'content-type': 'application/json',
  authorization: 'Bearer sk-bench'
}

async function connect () {
  const session = http2.connect(url, { settings: { enablePush: false } })
  const told = new Error(
    `${url} does not speak HTTP/2 without being asked first; this peer needs a simulator that does`
  )
  try {
    await once(session, 'remoteSettings', { signal: AbortSignal.timeout(5000) })
  } catch (e) {
    told.cause = e
    fail(told)
  }
  session.setLocalWindowSize(WINDOW)
  session.on('error', fail)
  session.on('goaway', (code) => fail(new Error(`${url} ends the connection: ${code}`)))
  return session
}

const mine = Math.ceil(workers / processes)
const sessions = [await connect()]
const limit = sessions[0].remoteSettings.maxConcurrentStreams
while (sessions.length < Math.max(SESSIONS, mine * ROOM / limit)) sessions.push(await connect())
let next = 0

function ask (body) {
  return new Promise((resolve, reject) => {
    const stream = sessions[next++ % sessions.length].request(head)
    let status
    const parts = []
    stream.on('response', (headers) => { status = headers[':status'] })
    stream.on('data', (part) => parts.push(part))
    stream.on('end', () => {
      if (status !== 200) return reject(new Error(`the AI answers ${status}`))
      resolve(JSON.parse(parts.length === 1 ? parts[0] : Buffer.concat(parts)))
    })
    stream.on('error', reject)
    stream.end(body)
  })
}

export async function screen (paper) {
  const { relevant, result } = verdict(paper, await ask(prompt(paper)))
  await charge(paper.doi, relevant, result)
}
