import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { chromium, type Locator, type Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { answers, build, CLI, launch, petstore, ROOT, startService, until } from '../support/cli.ts'
import { freshDatabase } from '../support/database.ts'
import { freePort } from '../support/port.ts'

/** The path in Debian's package. These tests are skipped if the file is missing. */
const CHROMIUM = process.env['CHROMIUM'] ?? '/usr/bin/chromium'

const missing = existsSync(CHROMIUM)
  ? false
  : `there is no ${CHROMIUM} to open Prisma Studio with (Debian: apt-get install chromium)`

/** Number of rows to edit while the service writes. */
const EDITS = 2

/** The button that saves an edit. */
const SAVE = 'Save 1 row'

t.before(build)

t.test(
  'Prisma Studio on the database of DATABASE_URL',
  { skip: process.env['CI'] === 'true' ? false : missing },
  async (t) => {
    const env = { DATABASE_URL: await freshDatabase(t) }
    const key = (await petstore(t, ['seed', '--pets', '100'], { env })).out.trim()
    const page = await openStudio(t, env)

    await t.test('shows the rows of a table', async (t) => {
      await page.getByText('pets', { exact: true }).first().click()
      await cell(page, 0, 'name').waitFor()
      t.same(await cell(page, 0, 'id').innerText(), '1')
      t.match(await cell(page, 0, 'name').innerText(), /^\w+ 1$/)
      t.match(
        await page.locator('body').innerText(),
        /\bcategories\b[^]*\borders\b[^]*\bwebhooks\b/,
        'and names the others'
      )
    })

    await t.test('links a pet to its category', async (t) => {
      const category = (await cell(page, 0, 'category_id').innerText()).trim()
      await cell(page, 0, 'category_id').getByLabel('Open categories').click()
      await cell(page, 0, 'description').waitFor()
      t.equal((await cell(page, 0, 'id').innerText()).trim(), category)
      t.equal(await page.locator('tbody tr').count(), 1, 'and to no other')
    })

    await t.test(
      'can change rows while the service is under load: no write fails, and no acknowledged write is lost',
      async (t) => {
        const { origin } = await startService(t, env)
        const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
        const pet = async (id: number) => await fetch(`${origin}/pets/${id}`, { headers })
        const tags = await Promise.all(
          Array.from({ length: EDITS }, async (_, i) => (await pet(i + 1)).headers.get('etag'))
        )

        const done = new AbortController()
        t.teardown(() => {
          done.abort()
        })
        const refused: string[] = []
        const acknowledged: string[] = []
        const writers = Array.from({ length: 12 }, async (_, writer) => {
          for (let i = 0; !done.signal.aborted; i++) {
            const name = `${writer} ${i}`
            const answer =
              writer % 2 === 0
                ? await fetch(`${origin}/messages`, {
                  method: 'POST',
                  headers,
                  body: JSON.stringify({ message: name })
                })
                : await fetch(`${origin}/pets/${50 + writer}`, {
                  method: 'PATCH',
                  headers,
                  body: JSON.stringify({ name })
                })
            if (answer.ok) acknowledged.push(name)
            else refused.push(`${answer.status} ${await answer.text()}`)
          }
        })
        await page.getByText('pets', { exact: true }).first().click()
        const { length: before } = acknowledged
        for (let i = 0; i < EDITS; i++) await edit(page, i, `Edited ${i}`)
        const { length: after } = acknowledged
        done.abort()
        await Promise.all(writers)

        t.same(refused, [])
        t.ok(after - before > EDITS, `${after - before} writes were acknowledged between the first edit and the last`)
        const messages = (await walk(`${origin}/messages?limit=100`, headers)) as Array<{ message: string }>
        const kept = new Set(messages.map(({ message }) => message))
        const latest = new Map(acknowledged.map((name) => [name.split(' ')[0]!, name]))
        t.same(
          acknowledged.filter((name) => Number(name.split(' ')[0]) % 2 === 0 && !kept.has(name)),
          [],
          'every message'
        )
        for (const [writer, name] of latest) {
          if (Number(writer) % 2 === 1) {
            t.match(await (await pet(50 + Number(writer))).json(), { name }, 'the last name of each pet')
          }
        }
        for (let i = 0; i < EDITS; i++) {
          const answer = await pet(i + 1)
          t.match(await answer.json(), { name: `Edited ${i}` }, 'every edit')
          t.equal(answer.headers.get('etag'), tags[i], 'without a new ETag')
        }
      }
    )
  }
)

async function openStudio (t: Test, env: Record<string, string>): Promise<Page> {
  const port = await freePort()
  const studio = launch(t, process.execPath, [CLI, 'studio', '--port', String(port), '--no-browser'], {
    // Prisma's command line is among the packages of the tests.
    cwd: join(ROOT, 'test'),
    env
  })
  await until(studio, async () => await answers(`http://localhost:${port}/`))
  // Chromium has no sandbox for root.
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] })
  t.teardown(async () => { await browser.close() })
  const page = await browser.newPage({ viewport: { width: 1500, height: 900 } })
  page.setDefaultTimeout(180_000)
  await page.goto(`http://localhost:${port}/`)
  return page
}

function cell (page: Page, row: number, column: string): Locator {
  return page.locator(`tbody td[data-grid-row-index="${row}"][data-grid-column-id="${column}"]`)
}

async function edit (page: Page, row: number, name: string): Promise<void> {
  await cell(page, row, 'name').dblclick()
  await page.keyboard.press('Control+a')
  await page.keyboard.type(name)
  await page.keyboard.press('Enter')
  // The driver of Studio does not wait for SQLite's lock: under load its user must save again.
  while (!await save(page)) await page.waitForTimeout(100)
  await page.getByRole('button', { name: SAVE }).waitFor({ state: 'detached' })
}

/** @returns whether the database took the edit */
async function save (page: Page): Promise<boolean> {
  await page.getByRole('button', { name: SAVE }).click()
  const answered = page.waitForResponse((response) => /"sql":"update /.test(response.request().postData() ?? ''))
  await page.getByRole('button', { name: 'yes, write to db' }).click()
  const [error] = await (await answered).json() as [unknown]
  return error === null
}

async function walk (address: string, headers: Record<string, string>): Promise<unknown[]> {
  const records: unknown[] = []
  for (let next: string | undefined = address; next !== undefined;) {
    const answer: Response = await fetch(next, { headers })
    records.push(...await answer.json() as unknown[])
    const link: string | undefined = /<([^>]*)>; rel="next"/.exec(answer.headers.get('link') ?? '')?.[1]
    next = link && new URL(link, address).href
  }
  return records
}
