// Loaded into every server before its own code: tells the benchmark, when asked, what the process has
// used so far, and ends the process with the benchmark. It works wherever Node does.
process.on('message', () => { process.send({ cpu: process.cpuUsage(), rss: process.memoryUsage.rss() }) })
process.on('disconnect', () => { process.kill(process.pid, 'SIGTERM') })
process.channel.unref()
