// Time and CPU time of a peer, as bench/jobs.c prints them.
export function stopwatch () {
  return { began: performance.now(), used: process.cpuUsage() }
}

export function tell (jobs, { began, used }) {
  const cpu = process.cpuUsage(used)
  console.log(JSON.stringify({
    jobs, seconds: (performance.now() - began) / 1000, cpu_us: cpu.user + cpu.system
  }))
}

export function spread (ms) {
  ms.sort((a, b) => a - b)
  console.log(JSON.stringify({
    rounds: ms.length,
    p50_ms: ms[ms.length >> 1],
    p99_ms: ms[Math.floor(ms.length * 0.99)],
    most_ms: ms.at(-1)
  }))
}

export function fail (e) {
  console.error(e)
  process.exit(1)
}
process.on('unhandledRejection', fail)
