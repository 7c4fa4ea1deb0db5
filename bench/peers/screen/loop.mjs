// No queue at all: so many workers take the next paper from memory, block after block of plain JSON
// from Redis. What has been done is not known to anybody after a crash.   loop.mjs [h2], on Node or
// on Bun
import { BLOCK, fail, processes, rank, total, workers } from './job.mjs'

const client = process.versions.bun
  ? './bun.mjs'
  : process.argv[2] === 'h2'
    ? './h2.mjs'
    : './node.mjs'
const { redis, screen } = await import(client)
let nextBlock = rank
let papers = []
let at = 0
let reading

async function read () {
  const text = await redis.get(`papers:${nextBlock}`)
  nextBlock += processes
  papers = JSON.parse(text)
  at = 0
  reading = undefined
}

async function worker () {
  for (;;) {
    while (at >= papers.length) {
      if (!reading && nextBlock * BLOCK >= total) return
      await (reading ||= read())
    }
    await screen(papers[at++])
  }
}

for (let i = 0; i < Math.ceil(workers / processes); i++) worker().catch(fail)
