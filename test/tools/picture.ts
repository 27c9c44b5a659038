// npm run picture: draws docs/images/first-page.png, the first page of a store with some pets and an order.

import { mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { chromium } from 'playwright-core'
import { createStore } from '../../src/create-store.ts'
import { CHROMIUM } from './browser.ts'

const FILE = join(import.meta.dirname, '../../docs/images/first-page.png')

const { url, apiKey, close } = await createStore({ name: 'My store', settings: { LAB: 'true' } })
// Chromium cannot use its sandbox as root.
const browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] })
try {
  const page = await browser.newPage({ viewport: { width: 1280, height: 1000 }, colorScheme: 'light' })
  await page.goto(`${url}/#key=${apiKey}`)
  await page.locator('#fill:enabled').click()
  await page.getByText('Added 5 pets').waitFor()
  await page.locator('#order:enabled').click()
  await page.locator('#count-orders').getByText('1', { exact: true }).waitFor()
  mkdirSync(dirname(FILE), { recursive: true })
  await page.evaluate('document.querySelector("#glance-title").closest("section").scrollIntoView()')
  await page.screenshot({ path: FILE })
} finally {
  await browser.close()
  await close()
}
