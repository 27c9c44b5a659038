import { existsSync } from 'node:fs'
import axe from 'axe-core'
import { chromium, type BrowserContextOptions, type Page } from 'playwright-core'

/** The path of Debian's package. Without a browser there, the tests that need one are skipped. */
export const CHROMIUM = process.env['CHROMIUM'] ?? '/usr/bin/chromium'

/** The reason to skip browser tests, or `false`. `.ci/run` must have a browser. */
export const withoutBrowser: string | false = process.env['CI'] === 'true' || existsSync(CHROMIUM)
  ? false
  : `there is no ${CHROMIUM} to open pages with (Debian: apt-get install chromium)`

/** Far longer than any page needs: the limit only ends a wait for something that never comes. */
const TIMEOUT_MS = 240_000

interface Test { teardown: (handler: () => Promise<void>) => unknown }

export interface Visit {
  page: Page
  /** Problems that the browser reported: script errors, error responses, violations of the content policy. */
  complaints: string[]
  /** Requests to other origins than the service. */
  foreign: string[]
}

export interface TestBrowser { visit: (path: string, options?: BrowserContextOptions) => Promise<Visit> }

/**
 * Opens Chromium for pages of `origin`. It closes when the test ends.
 *
 * @param args more arguments of its command line
 */
export async function openBrowser (t: Test, origin: string, args: string[] = []): Promise<TestBrowser> {
  // Chromium cannot use its sandbox as root.
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', ...args] })
  t.teardown(async () => { await browser.close() })
  return {
    async visit (path, options = {}) {
      const context = await browser.newContext({ viewport: { width: 1400, height: 900 }, ...options })
      context.setDefaultTimeout(TIMEOUT_MS)
      const page = await context.newPage()
      const complaints: string[] = []
      const foreign: string[] = []
      page.on('console', (message) => { if (message.type() === 'error') complaints.push(message.text()) })
      page.on('pageerror', ({ message }) => complaints.push(message))
      page.on('request', (request) => {
        const url = request.url()
        if (!url.startsWith(`${origin}/`) && !url.startsWith('data:')) foreign.push(url)
      })
      await page.goto(origin + path)
      return { page, complaints, foreign }
    }
  }
}

/** Returns what axe finds wrong with a page: names, roles, contrast. */
export async function faultsOf (page: Page): Promise<string[]> {
  await page.evaluate(axe.source)
  const { violations } = await page.evaluate<axe.AxeResults>('axe.run()')
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id}: ${html} ${failureSummary ?? ''}`)
  )
}
