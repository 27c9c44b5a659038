import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t from 'tap'

// Runs several test files in this process, one after the other, from the folder of their bundle. Loading the service
// takes most of the time of a short file, and each process loads it once.

const [, , folder = '', ...files] = process.argv

for (const file of files) {
  // The runner assigns the tests after this comment to the file.
  t.comment(`file ${file}`)
  await import(pathToFileURL(join(folder, file.replace(/\.ts$/, '.js'))).href)
}
