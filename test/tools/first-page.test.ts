import { execFile, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout } from 'node:timers/promises'
import { promisify } from 'node:util'
import type { Page } from 'playwright-core'
import t from 'tap'
import { startApp } from '../support/app.ts'
import { faultsOf, openBrowser, withoutBrowser } from './browser.ts'
import { build, ROOT } from '../support/cli.ts'
import { count, newPet } from '../support/fixtures.ts'

// The JavaScript of the page imports the built client.
t.before(build)

t.test('the first page in a browser', { skip: withoutBrowser }, async (t) => {
  const service = await startApp(t, { DELIVERY: 'true' })
  const origin = `http://127.0.0.1:${service.port}`
  const { visit } = await openBrowser(t, origin)

  await t.test('a new user can complete all steps with the keyboard alone', async (t) => {
    const { page, complaints, foreign } = await visit('/', { permissions: ['clipboard-read', 'clipboard-write'] })
    const tab = async (): Promise<string> => {
      await page.keyboard.press('Tab')
      return await page.evaluate<string>('document.activeElement.id || document.activeElement.textContent')
    }
    await page.locator('#open-form fieldset:enabled').waitFor()

    t.equal(await tab(), 'Skip to the steps')
    await page.keyboard.press('Enter')
    t.equal(await tab(), 'store-name')
    await page.keyboard.press('Control+a')
    await page.keyboard.type("Ada's Animals")
    await page.keyboard.press('Enter')

    await page.locator('#new-key:focus').waitFor()
    const key = await page.locator('#new-key-text').innerText()
    t.match(key, /^psk_[0-9A-Za-z]{8}_[0-9A-Za-z]+$/)
    t.match(await page.locator('#new-key').innerText(), 'shown only once')
    t.equal((await service.withKey(key).get('/account')).body.name, "Ada's Animals")
    t.equal(await tab(), 'new-key-copy')
    await page.keyboard.press('Enter')
    await page.getByText('The key was copied').waitFor()
    t.equal(await page.evaluate<string>('navigator.clipboard.readText()'), key)

    t.equal(await tab(), 'leave')
    t.equal(await tab(), 'open-code')
    t.match(await tab(), 'curl', 'the keyboard can scroll a request')
    t.match(await tab(), 'Copy')
    t.match(await tab(), 'POST /accounts {"name":"Ada\'s Animals"}\n201 Created', 'the response is below its request')
    t.equal(await tab(), 'message-text')
    await page.keyboard.press('Control+a')
    await page.keyboard.type('First!')
    await page.keyboard.press('Enter')
    await page.locator('#messages [data-status="delivered"]').waitFor()
    await page.getByText('no webhook had to accept it').waitFor()
    t.match(await page.locator('#messages').innerText(), /First!.*delivered after [\d.]+ m?s: no webhook/s)
    t.match((await service.withKey(key).get('/messages')).body, [{ message: 'First!', status: 'delivered' }])

    await page.locator('#fill:enabled').waitFor()
    t.equal(await tab(), 'Send')
    t.equal(await tab(), 'message-code')
    t.match(await tab(), 'curl')
    t.match(await tab(), 'Copy')
    t.match(await tab(), /^POST \/messages {"message":"First!"}\n201 Created\n{/)
    t.equal(await tab(), 'fill')
    await page.keyboard.press('Enter')
    await page.getByText('Added 5 pets').waitFor()
    await shows(page, { available: '5', pending: '0', sold: '0', units: '19', orders: '0' })
    t.equal(await tab(), 'order')
    await page.keyboard.press('Enter')
    await shows(page, { units: '18', orders: '1' })
    const { body: [{ petId }] } = await service.withKey(key).get('/store/orders')
    const pair = await page.locator('[data-request="order"] .answer').innerText()
    t.ok(pair.startsWith(`POST /store/orders {"petId":${petId}}\n201 Created\n`), pair)
    const next = await page.locator('[data-request="order"] code').innerText()
    t.notMatch(next, `"petId":${petId}}`, 'the request above orders the next pet')
    t.match(await page.locator('#events li').first().innerText(), /order\.placed|pet\.updated/)
    t.same(complaints, [])
    t.same(foreign, [])
  })

  await t.test('the page keeps the key in its tab, does not show it again, and forgets it on request', async (t) => {
    const { page } = await visit('/')
    await openStore(page)
    const key = await page.locator('#new-key-text').innerText()
    await page.reload()
    await page.locator('#present').waitFor()
    t.notMatch(await page.locator('body').innerText(), key)
    t.match(await page.locator('#present').innerText(), 'session storage')
    t.same(await page.evaluate('[localStorage.length, document.cookie]'), [0, ''])
    t.notOk(await (await visit('/')).page.locator('#present').isVisible(), 'another tab has no key')

    await page.locator('#leave').click()
    await page.locator('#store-name:focus').waitFor()
    t.equal(await page.evaluate('sessionStorage.length'), 0)
    t.ok(await page.locator('#message-text').isDisabled())
    t.equal(await page.locator('#feed-state').innerText(), 'Create a store first.')
  })

  await t.test('the page takes a key from its address, cleans the address, and shows the store', async (t) => {
    const [ada, ben] = [await service.openAccount('Store of Ada'), await service.openAccount('Store of Ben')]
    const cleo = await service.openAccount('Store of Cleo')
    const { page, complaints } = await visit(`/?from=start#key=${ada.key}`)
    await page.locator('#present-name').getByText('Store of Ada').waitFor()
    await page.locator('#feed-state[data-state="live"]').waitFor()
    t.equal(page.url(), `${origin}/?from=start`)
    t.notMatch(await page.locator('body').innerText(), ada.key!)
    t.equal(await page.locator('#open-title').innerText(), '1You are in Store of Ada')
    t.notOk(await page.locator('[data-request="open"]').isVisible(), 'no request for what this page did not do')
    await page.evaluate(`location.hash = 'key=${ben.key}'`)
    const question = page.locator('#other-store[open]')
    await question.getByText('Store of Ben').waitFor()
    t.equal(page.url(), `${origin}/?from=start`, 'also in an open tab')
    t.match(await question.innerText(), new RegExp(`Ben with the key ${ben.key!.slice(0, 12)}…. You are using Store of Ada`))
    await page.setViewportSize({ width: 390, height: 844 })
    t.ok(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'), 'a phone is wide enough')
    t.same(await faultsOf(page), [])
    if (process.env['SCREENSHOT'] !== undefined) await page.screenshot({ path: process.env['SCREENSHOT'] })
    await page.keyboard.press('Enter')
    await question.waitFor({ state: 'hidden' })
    t.equal(await page.locator('#present-name').innerText(), 'Store of Ada', 'Enter stays')
    t.same(await storedKeys(page), [ada.key])

    await page.goto(`${origin}/#key=${ben.key}`)
    await page.reload()
    await page.locator('#present-name').getByText('Store of Ada').waitFor()
    t.same(await storedKeys(page), [ada.key], 'a link that was not answered has no effect')
    await page.evaluate(`location.hash = 'key=${ben.key}'`)
    await page.getByRole('button', { name: 'Open the other store' }).click()
    await page.locator('#present-name').getByText('Store of Ben').waitFor()
    await page.reload()
    await page.locator('#present-name').getByText('Store of Ben').waitFor()
    t.same(await storedKeys(page), [ada.key, ben.key], 'the key of Ada is not lost')
    await page.locator('#back').click()
    await page.locator('#present-name').getByText('Store of Ada').waitFor()
    await page.evaluate(`location.hash = 'key=${cleo.key}'`)
    await question.getByText('Store of Cleo').waitFor()
    await page.evaluate(`location.hash = 'key=${ben.key}'`)
    await question.getByText('Store of Ben').waitFor()
    await page.getByRole('button', { name: 'Open the other store' }).click()
    await page.locator('#present-name').getByText('Store of Ben').waitFor()
    t.equal(await page.locator('#open-title').innerText(), '1You are in Store of Ben', 'the newer link counts')
    await page.locator('#back').click()
    await page.locator('#present-name').getByText('Store of Ada').waitFor()

    t.same(complaints, [])
    await page.evaluate("location.hash = 'key=psk_nonsense'")
    await page.getByText('The key of the link was not used').waitFor()
    t.equal(await page.locator('#present-name').innerText(), 'Store of Ada')
    await page.locator('#leave').click()
    t.same(await storedKeys(page), [])
    t.equal(await page.locator('#open-title').innerText(), '1Create a store')
    t.ok(await page.locator('[data-request="open"]').isVisible())
  })

  await t.test('the page follows a link after it has checked the key of its tab', async (t) => {
    const [ada, ben] = [await service.openAccount('Store of Ada'), await service.openAccount('Store of Ben')]
    const { page } = await visit(`/#key=${ada.key}`)
    await page.locator('#present-name').getByText('Store of Ada').waitFor()
    // The page checks a link sooner than a key whose responses are late.
    await page.route('**/account', async (route) => {
      if (await route.request().headerValue('authorization') === `Bearer ${ada.key}`) await setTimeout(500)
      await route.continue()
    })
    await page.goto('about:blank')
    await page.goto(`${origin}/#key=psk_nonsense`)
    await page.locator('#present-name').getByText('Store of Ada').waitFor()
    await page.getByText('The key of the link was not used').waitFor()

    await service.withKey(ada.key!).delete('/account')
    await page.goto('about:blank')
    await page.goto(`${origin}/#key=${ben.key}`)
    await page.locator('#present-name').getByText('Store of Ben').waitFor()
    t.same(await storedKeys(page), [ben.key], 'the page does not ask whether to leave a store that is gone')
  })

  await t.test('the page shows the error messages of the service', async (t) => {
    const { page } = await visit('/')
    await page.getByText('I already have an API key').click()
    await page.locator('#key-text').fill('psk_nonsense')
    await page.keyboard.press('Enter')
    await page.getByText('This is not an API key').waitFor()
    const owner = await service.openAccount()
    await owner.post('/lab/faults', { operation: 'createMessage', effect: { type: 'refuse', status: 500 } })
    await page.locator('#key-text').fill(owner.key!)
    await page.keyboard.press('Enter')
    await page.locator('#message-text:enabled').fill('Hello')
    await page.keyboard.press('Enter')
    t.match(await until(page, '#message-error'), /Lab fault \d+ replaced this response/)
    await page.locator('#message-text').fill('Hello again')
    t.equal(await page.locator('#message-error').innerText(), '', 'the error goes with its cause')
    t.ok(await page.locator('#order').isDisabled(), 'no pet can be ordered')
    t.notOk(await page.locator('[data-request="order"]').isVisible())
  })

  await t.test('the page notices a key that may only read, and offers no writes', async (t) => {
    const owner = await service.openAccount()
    await count(owner, await newPet(owner, { name: 'Rex' }), 2)
    const { body: { apiKey } } = await owner.post('/account/keys', { readOnly: true })
    const { page } = await visit(`/#key=${apiKey}`)
    await shows(page, { available: '1', units: '2' })
    await page.locator('#read-only').getByText('This API key may only read').waitFor()
    for (const id of ['message-text', 'fill', 'order', 'lab-lose', 'lab-snapshot']) {
      t.ok(await page.locator(`#${id}`).isDisabled(), id)
    }
    for (const name of ['message', 'order']) t.notOk(await page.locator(`[data-request="${name}"]`).isVisible(), name)
    t.ok(await page.locator('[data-request="events"]').isVisible())
    await page.locator('#leave').click()
    t.notOk(await page.locator('#read-only').isVisible())
    await openStore(page)
    t.ok(await page.locator('#message-text').isEnabled())
  })

  await t.test('a message says so if no webhook had to accept it', async (t) => {
    const owner = await service.openAccount()
    await owner.post('/webhooks', { url: 'https://example.com/hooks', events: ['pet.created'] })
    const { page } = await visit(`/#key=${owner.key}`)
    await page.locator('#message-form button:enabled').click()
    await page.getByText(/^delivered after [\d.]+ m?s: no webhook had to accept it$/).waitFor()
    t.pass('the webhook receives other events')
  })

  await t.test('what the user does while the page still reads the store is shown', async (t) => {
    const owner = await service.openAccount()
    const { page } = await visit('/')
    let goOn = (): void => {}
    const mayGoOn = new Promise<void>((resolve) => { goOn = resolve })
    await page.route('**/events?limit=1', async (route) => {
      await mayGoOn
      await route.continue()
    })
    await page.getByText('I already have an API key').click()
    await page.locator('#key-text').fill(owner.key!)
    await page.keyboard.press('Enter')
    await page.locator('#message-form button:enabled').click()
    while ((await owner.get('/messages')).body[0]?.status !== 'delivered') await setTimeout(10)
    await owner.post('/lab/faults', { operation: 'createMessage', effect: { type: 'refuse', status: 500 } })
    await page.locator('#message-form button:enabled').click()
    const error = await until(page, '#message-error')
    goOn()
    await page.locator('#feed-state[data-state="live"]').waitFor()
    await page.getByText(/^delivered after [\d.]+ m?s: no webhook had to accept it$/).waitFor()
    t.equal(await page.locator('#message-error').innerText(), error, 'it is no error of the connection')
  })

  await t.test('the request of each step works in a terminal', async (t) => {
    const { page } = await visit('/', { permissions: ['clipboard-read', 'clipboard-write'] })
    await openStore(page)
    await page.locator('#fill').click()
    await shows(page, { available: '5' })
    await page.locator('#message-text').fill('It\'s a "test" & more')
    const buttons = page.locator('button.copy')
    t.equal(await buttons.count(), 5)
    const owner = service.withKey(await page.locator('#new-key-text').innerText())
    const soldOut = await page.locator('#shelf tr').first().innerText()
    await page.locator('#order').click()
    await shows(page, { orders: '1', units: '18' })
    t.match(soldOut, /^Rex/, 'the first pet is sold out now')
    for (const language of ['Python', 'curl']) {
      await page.getByLabel('Requests in').selectOption(language)
      for (const text of await page.locator('[data-request] pre:not(.answer) code').allInnerTexts()) {
        t.match(text, language === 'curl' ? /^curl / : /^import urllib/)
      }
    }
    for (const [label, program, ...options] of [
      ['JavaScript', process.execPath, '--input-type=module', '-e'], ['Python', 'python3', '-u', '-c']
    ] as const) {
      if (spawnSync(program, ['--version']).status !== 0) {
        t.pass(`${label} is not run: there is no ${program} on this machine`, { skip: true })
        continue
      }
      await page.getByLabel('Requests in').selectOption(label)
      // The last request of the round before: a fault that loses the response to an order.
      await owner.delete('/lab/faults')
      for (const button of await buttons.all()) {
        await button.click()
        const pasted = await page.evaluate<string>('navigator.clipboard.readText()')
        t.notMatch(pasted, '<API_KEY>')
        const isStream = /followEvents|event-stream/.test(pasted)
        t.match(await runProgram(program, [...options, pasted], isStream ? 'pet.created' : undefined),
          isStream ? /pet\.created/ : /\bid\W+\w/, pasted)
      }
    }
    await page.getByLabel('Requests in').selectOption('curl')
    await owner.delete('/lab/faults')
    for (const button of await buttons.all()) {
      await button.click()
      const pasted = await page.evaluate<string>('navigator.clipboard.readText()')
      t.notMatch(pasted, '<API_KEY>')
      if (pasted.includes('event-stream')) {
        t.match(await run(`${pasted} -s -m 2 || true`), 'event: pet.created')
      } else {
        t.ok(JSON.parse(await run(`${pasted} -s -m 20`)).id, pasted)
      }
    }
    await page.locator('#events').getByText('Message “It\'s a "test" & more” was delivered').waitFor()
  })

  await t.test('axe finds no violation: light and dark, before and after, wide and narrow', async (t) => {
    for (const [colorScheme, width] of [['light', 360], ['dark', 390], ['dark', 1280]] as const) {
      const { page } = await visit('/', { colorScheme, viewport: { width, height: 800 }, reducedMotion: 'reduce' })
      t.equal(await backgroundOf(page), colorScheme, 'the page follows the preferred color scheme')
      t.same(await faultsOf(page), [], `${colorScheme} ${width} before`)
      await openStore(page)
      await page.locator('#message-form button').click()
      await page.locator('#messages [data-status="delivered"]').waitFor()
      await page.locator('#fill').click()
      await shows(page, { available: '5' })
      t.same(await faultsOf(page), [], `${colorScheme} ${width} after`)
      t.ok(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'), `${width} px are wide enough`)
      const isOnScreen = await page.locator('.lead p').isVisible() && await page.locator('.lab p').first().isVisible()
      t.ok(isOnScreen, 'the explanations stay')
      const cutOff = '[...document.querySelectorAll("pre")].filter((pre) => pre.scrollWidth > pre.clientWidth).length'
      t.equal(await page.evaluate(cutOff), 0, 'no line of a request is cut off')
      const rows = await page.evaluate<number[]>(
        '[...document.querySelectorAll(".top > *")].map((part) => Math.round(part.getBoundingClientRect().bottom))')
      if (width >= 390) t.ok(Math.max(...rows) - Math.min(...rows) < 40, `${rows} the header has two rows at most`)
      const height = await page.evaluate<number>('document.documentElement.scrollHeight')
      t.comment(`${width} px wide: ${height} px high`)
      if (width < 500) t.ok(height <= 2_500, `${height} px high on a phone`)
    }
  })
})

t.test('with closed signup, the first page says so and accepts a key', { skip: withoutBrowser }, async (t) => {
  const service = await startApp(t, { SIGNUP: 'closed', BASE_PATH: '/v1', PUBLIC_URL: 'https://pets.example' })
  const origin = `http://127.0.0.1:${service.port}`
  const { visit } = await openBrowser(t, origin)
  for (const path of ['/v1', '/v1/']) {
    const { page, complaints, foreign } = await visit(path)
    await page.getByText('Signup is closed on this service').waitFor()
    t.notMatch(await page.locator('main').innerText(), 'Create a store first')
    t.equal(await page.locator('#feed-state').innerText(), 'Enter an API key first.')
    t.notOk(await page.locator('#open-form').isVisible())
    t.ok(await page.locator('#key-text').isVisible())
    t.match(await page.locator('#message-title ~ *, pre').allInnerTexts(), [/curl https:\/\/pets\.example\/v1/])
    const reference = page.getByRole('link', { name: 'Reference', exact: true })
    t.equal(await reference.evaluate((link: { href: string }) => link.href), `${origin}/v1/docs`)
    t.same(complaints, [])
    t.same(foreign, [])
  }
})

async function openStore (page: Page): Promise<void> {
  await page.locator('#open-form button:enabled').click()
  await page.locator('#fill:enabled').waitFor()
}

/** Returns the keys that the tab keeps. */
async function storedKeys (page: Page): Promise<string[]> {
  return await page.evaluate('Object.keys(sessionStorage).sort().map((item) => sessionStorage.getItem(item))')
}

/** Waits until the page shows these figures. */
async function shows (page: Page, figures: Record<string, string>): Promise<void> {
  for (const [name, value] of Object.entries(figures)) {
    await page.locator(`#count-${name}`).getByText(value, { exact: true }).waitFor()
  }
}

async function backgroundOf (page: Page): Promise<'light' | 'dark' | 'neither'> {
  const color = await page.evaluate<string>('getComputedStyle(document.body).backgroundColor')
  const brightness = Math.max(...(color.match(/\d+/g) ?? []).map(Number))
  return brightness > 200 ? 'light' : brightness < 60 ? 'dark' : 'neither'
}

async function until (page: Page, selector: string): Promise<string> {
  await page.locator(`${selector}:not(:empty)`).waitFor()
  return await page.locator(selector).innerText()
}

/** Runs a program in the project, where Node resolves petstore-lab/client, until it ends or has printed a text. */
async function runProgram (program: string, parameters: string[], lastText?: string): Promise<string> {
  const child = spawn(program, parameters, { cwd: ROOT, stdio: ['ignore', 'pipe', 'inherit'] })
  const closed = once(child, 'close')
  let printed = ''
  for await (const chunk of child.stdout.setEncoding('utf8')) {
    printed += chunk as string
    if (lastText !== undefined && printed.includes(lastText)) child.kill()
  }
  await closed
  return printed
}

async function run (command: string): Promise<string> {
  const { stdout } = await promisify(execFile)('bash', ['-c', command])
  return stdout
}
