import { Command } from 'commander'
import { addAccount } from './account.ts'
import { addBackup } from './backup.ts'
import { addDoctor } from './doctor.ts'
import { addExam } from './exam.ts'
import { addKey } from './key.ts'
import { addListen } from './listen.ts'
import { addMigrate } from './migrate.ts'
import { addOpenapi } from './openapi.ts'
import { addSeed } from './seed.ts'
import { addStart } from './start.ts'
import { addStore } from './store.ts'
import { addStudio } from './studio.ts'
import { addTrigger } from './trigger.ts'
import { addWorker } from './worker.ts'

/** Returns the command line. Each command loads its modules when it runs, so that `--help` is fast. */
export function createProgram (): Command {
  const program = new Command('petstore')
    .description('The pet store HTTP service. Environment variables are its settings.')
    .helpCommand(false)
    .exitOverride()
    .configureOutput({
      outputError (text, write) { write(`${text.replace(/^error: /, '').trim().replaceAll('\n', ' ')}\n`) }
    })
  const commands = [
    addStart, addWorker, addMigrate, addSeed, addAccount, addKey, addStore, addStudio, addOpenapi, addBackup, addDoctor,
    addListen, addTrigger, addExam
  ]
  for (const addCommand of commands) addCommand(program)
  return program
}
