// @retorquere/bibtex-parser.   papers.mjs read FILE…: prints "MB/s entries"
// papers.mjs load FOLDER SOCKET: every .bib below FOLDER as plain JSON into Redis, a hash per
// journal and year; prints "papers/s papers"
import fs from 'node:fs'
import path from 'node:path'
import { parse } from '@retorquere/bibtex-parser'
import Redis from 'ioredis'

// Names and titles as they are written: what it would do with them besides takes longer.
const entries = (text) =>
  parse(text, { sentenceCase: false, caseProtection: false, verbatimFields: [/^url$/, /^doi$/] })
    .entries
const [what, ...words] = process.argv.slice(2)

function read (files) {
  const texts = files.map((f) => fs.readFileSync(f, 'utf8'))
  for (const text of texts) entries(text.slice(0, 50000)) // warms up, and is not counted
  const began = performance.now()
  const count = texts.reduce((n, text) => n + entries(text).length, 0)
  const bytes = texts.reduce((n, text) => n + Buffer.byteLength(text), 0)
  console.log((bytes / (performance.now() - began) / 1000).toFixed(3), count)
}

async function load (folder, socket) {
  const redis = new Redis({ path: socket })
  const files = fs.readdirSync(folder, { recursive: true }).filter((f) => f.endsWith('.bib'))
  const began = performance.now()
  let count = 0
  for (const name of files) {
    const block = 'meta:' + path.basename(name, '.bib').replace(/-(\d+)$/, ':$1')
    const fields = entries(fs.readFileSync(path.join(folder, name), 'utf8')).map((e) => [
      e.fields.doi,
      JSON.stringify(e.fields)
    ])
    if (fields.length) await redis.hset(block, ...fields.flat())
    count += fields.length
  }
  console.log((count / (performance.now() - began) * 1000).toFixed(1), count)
  redis.disconnect()
}

if (what === 'read') read(words)
else await load(...words)
