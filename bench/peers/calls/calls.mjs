// bench_ai_calls on Node: calls.mjs http2|undici URL IN_FLIGHT ROUNDS CA_FILE BODY_FILE prints the
// same line of JSON. http2 is node:http2, a thousand calls to a connection; undici is HTTP/1.1, a
// connection to a call in flight, by the call that its documentation names the fastest.
import fs from 'node:fs'
import http2 from 'node:http2'
import { once } from 'node:events'
import { Client } from 'undici'

const [how, url, inFlight, rounds, caFile, bodyFile] = process.argv.slice(2)
const count = Number(inFlight)
const ca = fs.readFileSync(caFile)
const body = fs.readFileSync(bodyFile)
const { origin, pathname } = new URL(url)
const headers = { 'content-type': 'application/json', authorization: 'Bearer bench' }
const CALLS_ON_ONE = 1000
const WINDOW = 16 << 20 // of a connection; no call has to wait for it

async function http2Caller () {
  const sessions = []
  while (sessions.length * CALLS_ON_ONE < count) {
    const session = http2.connect(origin, { ca, settings: { enablePush: false } })
    await once(session, 'remoteSettings', { signal: AbortSignal.timeout(30000) })
    session.setLocalWindowSize(WINDOW)
    sessions.push(session)
  }
  const head = { ':method': 'POST', ':path': pathname, ...headers }
  const ask = (i) => new Promise((resolve, reject) => {
    const stream = sessions[i % sessions.length].request(head)
    let status
    let bytes = 0
    stream.on('response', (h) => { status = h[':status'] })
    stream.on('data', (part) => { bytes += part.length })
    stream.on('end', () => status === 200 && bytes > 0
      ? resolve()
      : reject(new Error(`status ${status}, ${bytes} bytes`)))
    stream.on('error', reject)
    stream.end(body)
  })
  return { ask, end: () => sessions.forEach((s) => s.close()) }
}

function undiciCaller () {
  const clients = []
  const ask = (i) => new Promise((resolve, reject) => {
    clients[i] ??= new Client(origin, { connect: { ca }, connectTimeout: 60000 })
    let status
    let bytes = 0
    clients[i].dispatch({ path: pathname, method: 'POST', headers, body }, {
      onRequestStart () {},
      onResponseStart (controller, code) { status = code },
      onResponseData (controller, part) { bytes += part.length },
      onResponseEnd () {
        if (status === 200 && bytes > 0) resolve()
        else reject(new Error(`status ${status}, ${bytes} bytes`))
      },
      onResponseError (controller, e) { reject(e) }
    })
  })
  return { ask, end: () => clients.forEach((c) => c.close()) }
}

let answered = 0
let failed = 0
let problem
const start = performance.now()
const { ask, end } = how === 'http2' ? await http2Caller() : undiciCaller()
await Promise.all(Array.from({ length: count }, async (_, i) => {
  for (let n = 0; n < Number(rounds); n++) {
    try {
      await ask(i)
      answered++
    } catch (e) {
      failed++
      problem = e
    }
  }
}))
const seconds = (performance.now() - start) / 1000
const { user, system } = process.cpuUsage()
if (problem) console.error('last failure:', problem.message)
console.log(JSON.stringify({
  answered,
  failed,
  seconds: Number(seconds.toFixed(2)),
  peak_rss_mb: Number((process.resourceUsage().maxRSS / 1024).toFixed(1)),
  cpu_us_per_call: Number(((user + system) / (count * Number(rounds))).toFixed(1))
}))
end()
