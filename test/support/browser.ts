import { existsSync } from 'node:fs'
import { chromium, type BrowserContextOptions, type Page } from 'playwright-core'

/** Debian's package; elsewhere, or under another name, the tests that need a browser are skipped. */
const CHROMIUM = process.env['CHROMIUM'] ?? '/usr/bin/chromium'

/** Why there is no browser to test with, or `false`; `.ci/run` must have one. */
export const withoutBrowser: string | false = process.env['CI'] === 'true' || existsSync(CHROMIUM)
  ? false
  : `there is no ${CHROMIUM} to open pages with (Debian: apt-get install chromium)`

interface Test { teardown: (handler: () => Promise<void>) => unknown }

export interface Visit {
  page: Page
  /** What the browser reported as wrong: errors of programs, answers that are errors, violations of the policy. */
  complaints: string[]
  /** Requests to anybody but the service. */
  foreign: string[]
}

/** Opens Chromium, and in it pages of `origin`; all is closed when the test ends. */
export async function openBrowser (t: Test, origin: string): Promise<{ visit: (path: string, options?: BrowserContextOptions) => Promise<Visit> }> {
  // As root, Chromium has no sandbox.
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] })
  t.teardown(async () => { await browser.close() })
  return {
    async visit (path, options = {}) {
      const context = await browser.newContext({ viewport: { width: 1400, height: 900 }, ...options })
      const page = await context.newPage()
      const complaints: string[] = []
      const foreign: string[] = []
      page.on('console', (message) => { if (message.type() === 'error') complaints.push(message.text()) })
      page.on('pageerror', ({ message }) => complaints.push(message))
      page.on('request', (request) => { if (!request.url().startsWith(`${origin}/`) && !request.url().startsWith('data:')) foreign.push(request.url()) })
      await page.goto(origin + path)
      return { page, complaints, foreign }
    }
  }
}
