// @langchain/textsplitters on the documents of a file, which stand between \x1e, by the same
// estimate of tokens.   split.mjs FILE: prints "MB/s chunks", of CPU time
import fs from 'node:fs'
import { RecursiveCharacterTextSplitter } from '@langchain/textsplitters'

const BEYOND = /[^\x00-\x7f]/
const LEAST_S = 2

// As src/corpus/prose/tokens.h has it; a text of ASCII alone is not looked at twice.
function tokens (text) {
  if (!BEYOND.test(text)) return Math.floor(text.length / 3) + 1
  let ascii = 0
  let others = 0 // a character of four bytes is two units of UTF-16, and two tokens
  for (let i = 0; i < text.length; i++) {
    if (text.charCodeAt(i) < 0x80) ascii++
    else others++
  }
  return Math.floor(ascii / 3) + 1 + others
}

const splitter = RecursiveCharacterTextSplitter.fromLanguage('markdown', {
  chunkSize: 500, chunkOverlap: 100, lengthFunction: tokens
})

async function cut (documents) {
  let chunks = 0
  for (const text of documents) chunks += (await splitter.splitText(text)).length
  return chunks
}

const file = fs.readFileSync(process.argv[2], 'utf8')
const bytes = Buffer.byteLength(file)
const documents = file.split('\x1e')
await cut(documents.slice(0, 200)) // warms up, and is not counted
const began = process.cpuUsage()
let chunks = 0
let rounds = 0
let took = 0
do {
  chunks = await cut(documents)
  rounds++
  const { user, system } = process.cpuUsage(began)
  took = (user + system) / 1e6
} while (took < LEAST_S)
console.log((bytes * rounds / took / 1e6).toFixed(2), chunks)
