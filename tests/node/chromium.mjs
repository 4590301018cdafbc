// Chromium, driven through its DevTools protocol over a pair of pipes: messages
// are JSON, each ended by a NUL. No library, no port.
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const FLAGS = ['--headless=new', '--no-sandbox', '--disable-gpu', '--disable-quic',
    '--no-first-run', '--disable-background-networking', '--disable-sync',
    '--disable-component-update', '--disable-dev-shm-usage', '--mute-audio',
    '--no-proxy-server', '--force-color-profile=srgb', '--remote-debugging-pipe']

export async function launch(program) {
    const profile = mkdtempSync(join(tmpdir(), 'hfsb-chromium-'))
    const child = spawn(program, [...FLAGS, '--user-data-dir=' + profile, 'about:blank'],
        { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] })
    const waiting = new Map, listeners = []
    let id = 0, rest = ''
    const gone = new Promise(f => child.on('exit', f))
    gone.then(() => waiting.forEach(w => w.reject(Error('Chromium has ended'))))
    child.stdio[4].setEncoding('utf8')
    child.stdio[4].on('data', text => {
        const parts = (rest + text).split('\0')
        rest = parts.pop()
        for (const part of parts) {
            const m = JSON.parse(part), w = waiting.get(m.id)
            if (!w) { listeners.forEach(f => f(m)); continue }
            waiting.delete(m.id)
            if (m.error) w.reject(Error(m.error.message)); else w.resolve(m.result)
        }
    })
    const send = (method, params = {}, sessionId) => new Promise((resolve, reject) => {
        waiting.set(++id, { resolve, reject })
        child.stdio[3].write(JSON.stringify({ id, method, params, sessionId }) + '\0')
    })
    const close = async () => {
        const end = setTimeout(() => child.kill('SIGKILL'), 5000)
        send('Browser.close').catch(() => 0)
        await gone
        clearTimeout(end)
        rmSync(profile, { recursive: true, force: true, maxRetries: 5 })
    }
    return { close, open: (url, size) => open(send, listeners, url, size) }
}

// A page in a tab of its own, with what it reported.
async function open(send, listeners, url, { width = 1280, height = 800, dark = false, mobile = false } = {}) {
    const { browserContextId } = await send('Target.createBrowserContext')
    const { targetId } = await send('Target.createTarget', { url: 'about:blank', browserContextId })
    const { sessionId } = await send('Target.attachToTarget', { targetId, flatten: true })
    const call = (method, params) => send(method, params, sessionId)
    const errors = []
    listeners.push(m => {
        if (m.sessionId !== sessionId) return
        if (m.method === 'Runtime.exceptionThrown') errors.push(m.params.exceptionDetails.exception?.description || m.params.exceptionDetails.text)
        if (m.method === 'Log.entryAdded' && m.params.entry.level === 'error') errors.push(m.params.entry.text)
        if (m.method === 'Page.javascriptDialogOpening') errors.push('dialog: ' + m.params.message)
    })
    await call('Page.enable')
    await call('Runtime.enable')
    await call('Log.enable')
    const page = {
        errors, call,
        async size(w, h, m = mobile) {
            await call('Emulation.setDeviceMetricsOverride', { width: w, height: h, deviceScaleFactor: 1, mobile: m })
        },
        // The value of an expression in the page.
        async get(expression) {
            const r = await call('Runtime.evaluate', {
                expression, awaitPromise: true, returnByValue: true, allowUnsafeEvalBlockedByCSP: false })
            if (r.exceptionDetails) throw Error(r.exceptionDetails.exception?.description || r.exceptionDetails.text)
            return r.result.value
        },
        async until(expression, ms = 30000) {
            const end = Date.now() + ms
            for (;;) {
                let why = ''
                const v = await page.get(expression).catch(e => { why = e.message }) // it may still load
                if (v) return v
                if (Date.now() > end) throw Error('still not: ' + expression + ' ' + why)
                await new Promise(f => setTimeout(f, 40))
            }
        },
        async type(text) {
            for (const ch of text) {
                if (ch === '\r' || ch === '\x1b') await page.key(ch === '\r' ? 'Enter' : 'Escape')
                else await call('Input.insertText', { text: ch })
            }
        },
        async key(key, modifiers = 0) {
            const keyCode = { Enter: 13, Escape: 27, Tab: 9 }[key] || key.toUpperCase().charCodeAt(0)
            const o = { key, modifiers, windowsVirtualKeyCode: keyCode, code: key.length === 1 ? 'Key' + key.toUpperCase() : key }
            await call('Input.dispatchKeyEvent', { type: 'keyDown', ...o })
            await call('Input.dispatchKeyEvent', { type: 'keyUp', ...o })
        },
        async shot(file) {
            const { data } = await call('Page.captureScreenshot', { format: 'png' })
            writeFileSync(file, Buffer.from(data, 'base64'))
        },
        go: u => call('Page.navigate', { url: u }),
        reload: () => call('Page.reload'),
        close: () => send('Target.disposeBrowserContext', { browserContextId })
    }
    await call('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: dark ? 'dark' : 'light' }] })
    await page.size(width, height, mobile)
    if (url) await page.go(url)
    return page
}
