import type { RecordedRequest } from '../client/client.ts'
import type { Room } from './room.ts'

/** Something that a good client would have done differently. */
export interface Finding {
  text: string
  /** The requests in the journal that show it. */
  requests?: RecordedRequest[]
}

/** A part of the exam, with an account of its own. */
export interface Paper<Evidence> {
  name: string
  /** What a good client does: a sentence without its subject. */
  goodClient: string
  /** Sets the store up, gives the client its tasks, and returns what the verdict needs besides the journal. */
  sit: (room: Room) => Promise<Evidence>
  /** Judges the client. The same evidence and journal always give the same findings. */
  judge: (evidence: Evidence, journal: RecordedRequest[]) => Finding[]
}

/** A paper, whatever its evidence. */
export interface AnyPaper extends Pick<Paper<unknown>, 'name' | 'goodClient'> {
  sit: (room: Room) => Promise<(journal: RecordedRequest[]) => Finding[]>
}

/** Hides the evidence of a paper. */
export function definePaper<Evidence> ({ name, goodClient, sit, judge }: Paper<Evidence>): AnyPaper {
  return {
    name,
    goodClient,
    async sit (room) {
      const evidence = await sit(room)
      return (journal) => judge(evidence, journal)
    }
  }
}

/** What the paper is about did not come to pass, because the machine was too slow. It is held once more. */
export class Undecided extends Error {}
