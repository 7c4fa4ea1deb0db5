// The peer of bench/http: one Redis read, answered as small JSON. One process, as its authors
// advise.
'use strict'
const fastify = require('fastify')({ logger: false })
const Redis = require('ioredis')

const redis = new Redis(process.env.REDIS_SOCKET, { enableAutoPipelining: true })

fastify.get(
  '/read',
  {
    schema: {
      response: {
        200: {
          type: 'object',
          properties: { success: { type: 'boolean' }, value: { type: 'string' } }
        }
      }
    }
  },
  async () => ({ success: true, value: await redis.get('bench') })
)

fastify.listen({ host: '127.0.0.1', port: Number(process.env.PORT) })
