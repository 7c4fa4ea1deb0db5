// Redis on Node: ioredis, with commands of one turn of the event loop in one write.
import fs from 'node:fs'
import Redis from 'ioredis'

export const connection = { path: process.env.REDIS_SOCKET, maxRetriesPerRequest: null }
export const redis = new Redis({ ...connection, enableAutoPipelining: true })
const sha = await redis.script('LOAD', fs.readFileSync(process.env.CHARGE_SCRIPT, 'utf8'))

export const evalsha = (keys, words) => redis.evalsha(sha, keys, ...words)
