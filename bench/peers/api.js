// The peer of bench/api: the same Redis reads and the same answers as millrace. One process.
'use strict'
const crypto = require('crypto')
const fastify = require('fastify')({ logger: false })
const Redis = require('ioredis')

const redis = new Redis({
  path: process.env.REDIS_SOCKET, password: process.env.REDISCLI_AUTH, enableAutoPipelining: true
})

const text = { type: 'string' }
const textOrNull = { type: 'string', nullable: true }
const integer = { type: 'integer' }
const answer = (properties) => ({
  schema: {
    response: {
      200: { type: 'object', properties: { success: { type: 'boolean' }, ...properties } }
    }
  }
})

async function session (request) {
  const token = (request.headers.authorization || '').slice('Bearer '.length)
  const sid = crypto.createHash('sha256').update(token).digest('hex')
  const found = await redis.hgetall('session:' + sid)
  if (!found.user_id) throw Object.assign(new Error('log in'), { statusCode: 401 })
  return found
}

fastify.get(
  '/api/me',
  answer({ uid: integer, username: text, balance: text, permission: integer }),
  async (request) => {
    const { user_id: uid } = await session(request)
    const [user, cents] = await Promise.all([
      redis.hgetall(`user:${uid}:info`),
      redis.get(`user:${uid}:balance`)
    ])
    return {
      success: true,
      uid: Number(uid),
      username: user.username,
      balance: (Number(cents) / 100).toFixed(2),
      permission: Number(user.permission)
    }
  }
)

const journal = {
  type: 'object',
  properties: {
    name: text,
    full_name: textOrNull,
    data_range: textOrNull,
    update_date: textOrNull,
    price: integer,
    years: { type: 'object', additionalProperties: integer }
  }
}

fastify.get(
  '/api/journals',
  answer({ journals: { type: 'array', items: journal } }),
  async (request) => {
    await session(request)
    const keys = [request.query.tag].flat().map((tag) => 'sys:tag_journals:' + tag)
    const names = (await redis.sinter(...keys)).sort()
    const [infos, prices, ...years] = await Promise.all([
      redis.hmget('sys:journals:info', ...names),
      redis.hmget('sys:journals:price', ...names),
      ...names.map((name) => redis.hgetall('contentlist_year_number:' + name))
    ])
    return {
      success: true,
      journals: names.map((name, i) => {
        const info = JSON.parse(infos[i])
        return {
          name,
          full_name: info.FullName,
          data_range: info.DataRange,
          update_date: info.UpdateDate,
          price: Number(prices[i]),
          years: years[i]
        }
      })
    }
  }
)

fastify.listen({ host: '127.0.0.1', port: Number(process.env.PORT) })
