local GENERATION = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
