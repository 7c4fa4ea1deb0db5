// The work on one document, the same for every peer: its text is read, its row says extracting,
// the AI is asked, the reply checked against the fields, each quote looked for in the text, and the
// row is completed with the values. What it is told comes by the environment; bench/extract.py sets
// it. Nobody is charged.
import fs from 'node:fs'
import { Client } from 'undici'

const env = process.env
export const [command, number] = process.argv.slice(2)
export const count = Number(number)
export const concurrency = Number(env.CONCURRENCY || 100)
const { head, tail, fields } = JSON.parse(fs.readFileSync(env.QUESTION, 'utf8'))
const headers = { 'content-type': 'application/json', authorization: 'Bearer sk-bench' }
const idle = [] // connections that no call uses

function ask (body) {
  const client = idle.pop() ?? new Client(env.AI_URL)
  return new Promise((resolve, reject) => {
    const parts = []
    let status
    client.dispatch(
      { path: '/v1/chat/completions', method: 'POST', headers, body },
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
          else reject(new Error(`the AI answers ${status}`))
        },
        onResponseError (controller, e) {
          reject(e)
        }
      }
    )
  })
}

const fits = {
  text: (v) => typeof v === 'string',
  choice: (v, field) => field.choices.includes(v),
  number: Number.isFinite,
  integer: Number.isInteger,
  boolean: (v) => typeof v === 'boolean',
  date: (v) => /^\d{4}(-\d\d){0,2}$/.test(v)
}

// A number may come with its unit: "5.5 mg".
function read (field, value) {
  return ['number', 'integer'].includes(field.type) ? parseFloat(value) : value
}

function found (field, text, { value: original, quote }) {
  if (original === null) return { value: original }
  const value = read(field, original)
  if (!fits[field.of ?? field.type](value, field)) throw new Error(`${field.name} is ${value}`)
  const begin = text.indexOf(quote)
  return { value, original, quote, begin, end: begin + quote.length, verified: begin >= 0 }
}

function values (text, reply) {
  const said = JSON.parse(reply.choices[0].message.content)
  const all = {}
  for (const field of fields) {
    const v = said[field.name]
    if (v === undefined) throw new Error(`${field.name} is missing`)
    all[field.name] = Array.isArray(v)
      ? { value: v.map((x) => x.value), items: v.map((x) => found(field, text, x)) }
      : found(field, text, v)
  }
  return all
}

// store: text(document), begin(id), end(id, result): promises.
export async function extract (store, { id, document }) {
  const text = await store.text(document)
  await store.begin(id)
  const reply = await ask(head + JSON.stringify(`<<<DOCUMENT\n${text}\nDOCUMENT<<<`) + tail)
  await store.end(id, JSON.stringify(values(text, reply)))
}

export const jobs = () => Array.from({ length: count }, (_, i) => ({ id: i + 1, document: i + 1 }))

export function tell (began, used) {
  const cpu = process.cpuUsage(used)
  console.log(JSON.stringify({
    jobs: count, seconds: (performance.now() - began) / 1000, cpu_us: cpu.user + cpu.system
  }))
  process.exit(0)
}

export function fail (e) {
  console.error(e)
  process.exit(1)
}
process.on('unhandledRejection', fail)
