// Loaded by tap before each test file (.taprc). tap loads a module for coverage into every Node process that a test
// starts. The module takes over the exit of the process, and a start takes twice as long. The tests are about the
// service as it is, and measure no coverage.

import processOnSpawn from 'process-on-spawn'

processOnSpawn.removeAllListeners()
delete process.env.NODE_OPTIONS
