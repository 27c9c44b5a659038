// Loaded into every server before its own code. Reports the resources that the process has used when the benchmark
// asks, and ends the process with the benchmark. It works on every platform of Node.
process.on('message', () => { process.send({ cpu: process.cpuUsage(), rss: process.memoryUsage.rss() }) })
process.on('disconnect', () => { process.kill(process.pid, 'SIGTERM') })
process.channel.unref()
