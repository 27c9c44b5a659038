import { pathToFileURL } from 'node:url'
import t from 'tap'

// Runs several test files in this process, one after the other. Loading the service takes most of the time of a short
// file, and each process loads it once.

for (const file of process.argv.slice(2)) {
  // The runner assigns the tests after this comment to the file.
  t.comment(`file ${file}`)
  await import(pathToFileURL(file).href)
}
