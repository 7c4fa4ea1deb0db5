// The work on one paper, the same for every peer in JavaScript: build the prompt, ask the AI, read
// the verdict, charge. What it is told comes by the environment; bench/screen_peers.py sets it.
import fs from 'node:fs'

const env = process.env
export const workers = Number(env.WORKERS)
export const rank = Number(env.RANK || 0) // of this process
export const processes = Number(env.PROCESSES || 1)
export const total = Number(env.PAPERS) // in all
export const BLOCK = 100 // papers of a key
const BATCH_MAX = 100 // papers of one charge; as millrace

// The request as millrace writes it, up to the paper.
const head = fs.readFileSync(env.PROMPT_HEAD, 'utf8')

export function prompt (paper) {
  return (
    head +
    JSON.stringify(`Title: ${paper.title}\n\nAbstract: ${paper.abstract}\n\nDOI: ${paper.doi}`) +
    '}]}'
  )
}

// What the reply says, as it is stored.
export function verdict (paper, reply) {
  const { relevant, reason } = JSON.parse(reply.choices[0].message.content)
  if (typeof relevant !== 'boolean') throw new Error('no verdict')
  return {
    relevant,
    result: JSON.stringify({ ai_result: { relevant, reason }, block_key: paper.block })
  }
}

// Papers that are to be charged in the same turn of the event loop go in one call of the project's
// own script.
export function charger (evalsha) { // evalsha(keysAndArguments): a promise of the statuses
  const [uid, qid] = ['1', 'bench']
  const keys = [
    `user:${uid}:balance`,
    `user:${uid}:ledger`,
    `billing_queue:${uid}`,
    `result:${uid}:${qid}`,
    `query:${uid}:${qid}:status`,
    `progress:${uid}:${qid}:finished_count`,
    `query:${uid}:${qid}:failed`,
    `result:${uid}:${qid}:arrivals`,
    `result:${uid}:${qid}:relevant`
  ]
  let waiting = []

  async function send () {
    const batch = waiting
    waiting = []
    const words = keys.concat(batch.length, batch.map(c => c.relevant ? 'r' : 'n').join(''), 1,
      `,"timestamp":${Date.now()},"kind":"charge","qid":"${qid}","doi":"`)
    for (const { doi, result } of batch) words.push(doi, result)
    try {
      const told = await evalsha(keys.length, words) // 1: all are done; or a status for each
      const done = i => told === 1 || told[i] === 1 || told[i] === 2
      batch.forEach((c, i) => done(i) ? c.done() : c.fail(new Error(`charge: ${told}`)))
    } catch (e) {
      for (const c of batch) c.fail(e)
    }
  }

  return (doi, relevant, result) => new Promise((resolve, reject) => {
    waiting.push({ doi, relevant, result, done: resolve, fail: reject })
    if (waiting.length === 1) setImmediate(() => waiting.length && send())
    else if (waiting.length === BATCH_MAX) send()
  })
}

// Puts all papers into a queue: put(papers) with a few blocks of them, a few calls at once, so that
// neither side waits for the other.
export async function addAll (redis, put, bulk, calls) {
  let next = 0
  async function add () {
    while (next * BLOCK < total) {
      const numbers = Array.from(
        { length: Math.min(bulk, total / BLOCK - next) },
        (_, i) => next + i
      )
      next += numbers.length
      await put(
        (await redis.mget(numbers.map((n) => `papers:${n}`))).flatMap((text) => JSON.parse(text))
      )
    }
  }
  const began = performance.now()
  await Promise.all(Array.from({ length: calls }, add))
  console.log(JSON.stringify({ seconds: (performance.now() - began) / 1000 }))
}

export function fail (e) {
  console.error(e)
  process.exit(1)
}
process.on('unhandledRejection', fail)
