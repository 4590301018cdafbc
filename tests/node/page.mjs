// The page at / in headless Chromium:
//   node page.mjs BASE TOKEN WORK_DIR CHROMIUM RESTART_COMMAND [SHOTS]
// Prints a line for each point, and exits with 1 when one of them fails.
// RESTART_COMMAND ends the server and starts it again on the same port.
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { launch } from './chromium.mjs'

const [base, token, work, program, restart, shots] = process.argv.slice(2)
const wait = ms => new Promise(f => setTimeout(f, ms))
const browser = await launch(program)
let failed = 0, count = 0

async function call(tool, body) {
    const r = await fetch(`${base}/api/${tool}`, {
        method: 'POST', body: JSON.stringify(body),
        headers: { 'X-Sandbox-Authorization': `Bearer ${token}`, 'Content-Type': 'application/json', Connection: 'close' }
    })
    return r.json()
}

const must = (ok, what) => { if (!ok) throw Error(what) }

async function point(name, fn) {
    count++
    try {
        await fn()
        console.log('ok    ' + name)
    } catch (e) {
        failed++
        console.log('FAIL  ' + name + ': ' + e.message)
    }
}

const open = (o, hash = '#' + token) => browser.open(base + '/' + hash, o)
const rows = text => `[...document.querySelectorAll('#list li')].filter(l => l.textContent.includes(${JSON.stringify(text)}))`
const click = text => `(b => b ? (b.click(), true) : false)([...document.querySelectorAll('button')].find(b => b.textContent === ${JSON.stringify(text)} && !b.disabled && b.checkVisibility()))`
const tabTo = name => `[...document.querySelectorAll('[role=tab]')].find(t => t.textContent === ${JSON.stringify(name)}).click()`
const control = async page => { await page.get(`document.getElementById('ctl').checked || document.getElementById('ctl').click()`) }
const screen = `[...document.querySelectorAll('#tty > div')].filter(d => !d.hidden).map(d => d.textContent).join('\\n')`

// ---- points ----

await point('a token in the fragment is kept, and leaves the URL', async () => {
    await call('bash', { command: 'echo first' })
    const page = await open()
    await page.until(rows('echo first') + '.length')
    must(!(await page.get('location.href')).includes(token), 'the URL shows the token')
    must(!(await page.get('document.documentElement.outerHTML')).includes(token), 'the page shows the token')
    await page.reload()
    await wait(300)
    await page.until(`document.querySelector('#list')&&` + rows('echo first') + '.length')
    must(!page.errors.length, page.errors.join('; '))
    await page.close()
})

await point('a token with a percent sign is no escape', async () => {
    const page = await open({}, '#50%')
    await page.until(`document.getElementById('login').open && document.getElementById('err').textContent`)
    must(await page.get(`token === '50%'`), 'it has another token')
    must(!page.errors.some(e => /URIError/.test(e)), page.errors.join('; '))
    await page.close()
})

await point('it works without storage, and behind a proxy that drops X-Hfsb', async () => {
    const page = await browser.open('')
    await page.call('Page.addScriptToEvaluateOnNewDocument', { source: `
        Object.defineProperty(window, 'sessionStorage', { get() { throw new DOMException('blocked', 'SecurityError') } })
        const get = Headers.prototype.get, real = fetch
        Headers.prototype.get = function (name) { return name === 'X-Hfsb' ? null : get.call(this, name) }
        window.polls = 0
        window.fetch = (url, o) => { if (/events/.test(url)) polls++; return real(url, o) }` })
    await page.go(base + '/#' + token)
    await page.until(rows('echo first') + '.length')
    await wait(300)
    const polls = await page.get('polls')
    must(polls < 5, `it has asked ${polls} times`)
    await page.close()
})

await point('a wrong token is refused, and another one asked for', async () => {
    const page = await open({}, '#wrong')
    await page.until(`document.getElementById('login').open && document.getElementById('err').textContent`)
    must(await page.get(`document.querySelectorAll('#list li').length === 0`), 'it shows events')
    await page.get(`document.getElementById('tok').value = ${JSON.stringify(token)}; document.querySelector('#login form button').click()`)
    await page.until(rows('echo first') + '.length')
    await page.close()
    const none = await open({}, '')
    await none.until(`document.getElementById('login').open`)
    await none.close()
})

await point('the URL of another token counts in the same tab, too', async () => {
    const page = await open({}, '#wrong')
    await page.until(`document.getElementById('login').open && document.getElementById('err').textContent`)
    await page.get(`location.hash = ${JSON.stringify(token)}`)
    await page.until(rows('echo first') + '.length')
    must(await page.get(`!document.getElementById('login').open && !location.href.includes(token) && sessionStorage.hfsb === token`), 'it is not kept, or shown')
    await page.get(`location.hash = 'another'`)
    await page.until(`document.getElementById('login').open && document.getElementById('err').textContent`)
    await page.close()
})

await point('a token that no field may have is refused like any other', async () => {
    const page = await open({}, '#' + encodeURIComponent('a\u200bb'))
    await page.until(`document.getElementById('login').open && document.getElementById('err').textContent`)
    await page.close()
})

await point('it says so as soon as it is connected again', async () => {
    const page = await open()
    await page.until(rows('echo first') + '.length')
    await page.get(`(real => { let n = 0; window.fetch = (url, o) => /events/.test(url) && !n++ ? Promise.reject(TypeError('cut')) : real(url, o) })(fetch)`)
    await call('exists', { path: 'wakes the poll' })
    await page.until(`/lost/.test(document.getElementById('net').textContent)`)
    await page.until(`document.getElementById('net').textContent === location.host`)
    await page.close()
})

const page = await open()
await page.until(rows('echo first') + '.length')

await point('the page only watches until it is switched', async () => {
    must(await page.get(`[...document.querySelectorAll('.act')].length > 2 && [...document.querySelectorAll('.act')].every(e => e.disabled)`), 'something can be used')
    await page.get(`document.getElementById('cmd').value = 'echo not-run'; document.getElementById('ask').requestSubmit()`)
    await wait(300)
    must(!await page.get(rows('not-run') + '.length'), 'a command was run')
    await control(page)
    must(await page.get(`[...document.querySelectorAll('.act')].every(e => !e.disabled)`), 'something cannot be used')
    must(await page.get(`document.getElementById('ctl').autocomplete === 'off'`), 'a browser that reloads may remember it')
})

await point('what is said covers nothing that can be clicked', async () => {
    await page.until(`document.getElementById('say').textContent`)
    must(await page.get(`tabs.filter(t => t.checkVisibility()).every(t => { const r = t.getBoundingClientRect(); return document.elementFromPoint(r.x + r.width / 2, r.y + r.height / 2) === t })`), 'a tab is covered')
    must(await page.get(`(s => !document.elementsFromPoint(s.x + 9, s.y + 9).includes(document.getElementById('say')))(document.getElementById('say').getBoundingClientRect())`), 'it takes clicks')
})

await point('the prompt runs a command, and its output has its colours', async () => {
    await page.get(`document.getElementById('cmd').value = "printf '\\\\033[31mred\\\\033[0m \\\\033[1;38;5;42mgreen\\\\033[0m plain\\\\n'"; document.getElementById('ask').requestSubmit()`)
    await page.until(`document.querySelector('.log')?.textContent.includes('red green plain')`)
    const seen = await page.get(`[...document.querySelectorAll('.log span')].map(s => s.textContent + ' ' + s.style.color + ' ' + s.style.fontWeight)`)
    must(seen[0] === 'red var(--c1) ' && seen[1] === 'green rgb(0, 215, 135) bold', JSON.stringify(seen))
    must(await page.get(rows('38;5;42') + `.some(l => l.textContent.includes('page'))`), 'it does not say who asked')
    await page.until(rows('38;5;42') + `.some(l => l.querySelector('.ok'))`)
})

await point('10,000 lines in a second do not freeze the page', async () => {
    await page.get(`window.longest = 0; window.frames_ = 0; (function tick(last) { requestAnimationFrame(now => { longest = Math.max(longest, now - last); frames_++; tick(now) }) })(performance.now())`)
    const run = call('bash', { command: `awk 'BEGIN { for (s = 0; s < 3; s++) { for (i = 0; i < 10000; i++) print s * 10000 + i " a line of output, as tests print them in their thousands"; fflush(); system("sleep 0.9") } print "the end" }'`, timeout: 60 })
    await page.until(`document.querySelector('.log')?.textContent.includes('a line of output')`)
    // somebody scrolls up: it stays there, and counts what is new
    await wait(300)
    await page.get(`document.querySelector('.body').scrollTop = 0`)
    await page.until(`!document.getElementById('new').hidden && parseInt(document.getElementById('new').textContent) > 100`)
    await page.get(`document.getElementById('new').click()`)
    await run
    await page.until(`document.querySelector('.log').lastChild.textContent === 'the end'`)
    const lines = await page.get(`document.querySelector('.log').childElementCount`)
    const [longest, frames] = await page.get('[longest, frames_]')
    must(lines <= 3000, lines + ' lines are kept')
    must(longest < 3000 && frames > 10, `a frame took ${longest} ms, of ${frames}`)
    console.log(`      longest frame ${Math.round(longest)} ms, ${frames} frames, ${lines} lines kept`)
})

await point('a diff has its words marked', async () => {
    await call('write', { path: 'code.py', content: 'def area(w, h):\n    return w * h\n\nprint(area(2, 3))\n' })
    await call('edit', { path: 'code.py', old_str: '    return w * h', new_str: '    return abs(w * h)' })
    await page.until(rows('code.py') + `.some(l => l.textContent.includes('+1'))`)
    await page.get(rows('+1') + '[0].click()')
    await page.until(`document.querySelector('.diff')`)
    const marks = await page.get(`[...document.querySelectorAll('.diff mark')].map(m => m.textContent)`)
    must(JSON.stringify(marks) === '["abs(",")"]', JSON.stringify(marks))
    must(await page.get(`document.querySelectorAll('.diff .d').length === 1 && document.querySelectorAll('.diff .a').length === 1`), 'other lines')
})

await point('an edit is taken back by itself, a file to the start, all to a checkpoint', async () => {
    must(await page.get(click('Undo this edit')), 'no button')
    await page.until(rows('apply_patch') + `.some(l => l.querySelector('.ok'))`)
    must(readFileSync(join(work, 'code.py'), 'utf8').includes('    return w * h\n'), 'the file is as it was')
    await page.get(tabTo('Changes'))
    await page.until(`document.querySelector('#p2').textContent.includes('code.py')`)
    await page.get(`[...document.querySelectorAll('#p2 .row')].find(r => r.textContent.includes('code.py')).querySelector('button').click()`)
    const gone = Date.now() + 30000
    while (existsSync(join(work, 'code.py')) && Date.now() < gone) await wait(50)
    must(!existsSync(join(work, 'code.py')), 'the file is still there')
    await page.until(`[...document.querySelectorAll('#p2 .row')].some(r => /#\\d+.*edit code.py/.test(r.textContent))`)
    await page.get(`[...document.querySelectorAll('#p2 .row')].find(r => /#\\d+.*edit code.py/.test(r.textContent)).querySelector('button').click()`)
    const back = Date.now() + 30000
    while (!existsSync(join(work, 'code.py')) && Date.now() < back) await wait(50)
    must(readFileSync(join(work, 'code.py'), 'utf8').includes('abs(w * h)'), 'the checkpoint is not restored')
})

await point('an edit is taken back wherever its file is, and whatever its lines are', async () => {
    await page.get(tabTo('Details'))
    for (const [path, old, made, old_str, new_str] of [[join(work, 'whole.py'), 'a = 1\nb = 2\n', 'a = 3\nb = 2\n', 'a = 1', 'a = 3'],
        ['no-end', 'one\ntwo', 'one\nthree', 'two', 'three'], ['last.txt', 'one\ntwo\n', 'one\ntwo', 'two\n', 'two'],
        ['heads.sql', 'a\n-- x\n-- y\nb\nc\n', 'a\n++ x\n-- y\nb\nd\n', 'a\n-- x\n-- y\nb\nc', 'a\n++ x\n-- y\nb\nd']]) {
        const file = path.startsWith('/') ? path : join(work, path), name = file.split('/').pop()
        await call('write', { path, content: old })
        await call('edit', { path, old_str, new_str })
        must(readFileSync(file, 'utf8') === made, name + ' is not edited')
        await page.until(rows(name) + `.some(l => /\\+\\d/.test(l.textContent))`)
        await page.get(rows(name) + `.find(l => /\\+\\d/.test(l.textContent)).click()`)
        await page.until(`document.querySelector('#p0 .diff') && document.querySelector('.head').textContent.includes(${JSON.stringify(name)})`)
        if (name === 'heads.sql') must(await page.get(`document.querySelectorAll('#p0 .diff .d').length === 2 && document.querySelectorAll('#p0 .diff .a').length === 2`), 'changed lines are taken for the head of a file')
        must(await page.get(click('Undo this edit')), 'no button for ' + name)
        const end = Date.now() + 30000
        while (readFileSync(file, 'utf8') !== old && Date.now() < end) await wait(50)
        must(readFileSync(file, 'utf8') === old, `${name} is not as it was: ${await page.get(`document.getElementById('say').textContent`)}`)
    }
    // what a patch has made or removed has no reverse that does the same
    await call('apply_patch', { patch: '*** Begin Patch\n*** Add File: made.txt\n+one\n*** End Patch\n' })
    await page.until(rows('apply_patch') + `.some(l => l.textContent.includes('+1 \u22120'))`)
    await page.get(rows('apply_patch') + `.find(l => l.textContent.includes('+1 \u22120')).click()`)
    await page.until(`document.querySelector('#p0 .diff')?.textContent.includes('made.txt')`)
    must(!await page.get(`[...document.querySelectorAll('button')].some(b => b.textContent === 'Undo this edit')`), 'the button leaves an empty file')
})

await point('an edit is not taken back by a diff that hides a secret', async () => {
    await call('write', { path: 'secret.ini', content: 'key = hf_' + 'Ab3dEf6hIj'.repeat(3) + '\nsize = 1\n' })
    await call('edit', { path: 'secret.ini', old_str: 'size = 1', new_str: 'size = 2' })
    await page.get(tabTo('Details'))
    await page.until(rows('secret.ini') + `.some(l => l.textContent.includes('\u22121'))`)
    await page.get(rows('secret.ini') + `.find(l => l.textContent.includes('\u22121')).click()`)
    await page.until(`document.querySelector('.diff')?.textContent.includes('size = 2')`)
    must(await page.get(`document.querySelector('.diff').textContent.includes('***')`), 'the secret is shown')
    must(!await page.get(`[...document.querySelectorAll('button')].some(b => b.textContent === 'Undo this edit')`), 'the button writes *** into the file')
    // nor where the journal says so
    await page.get(`take({ run: 'x', call: 1, time: 0, tool: 'edit', state: 'done', success: true, path: 'p', diff: '--- p\\n+++ p\\n@@ -1 +1 @@\\n-a\\n+b\\n', diff_hidden: true }); choose(rows.get('x1'))`)
    must(await page.get(`document.querySelector('.diff').textContent.includes('+b') && ![...document.querySelectorAll('button')].some(b => b.textContent === 'Undo this edit')`), 'the button is there')
    // but by one whose text has such stars
    await page.get(`take({ run: 'x', call: 2, time: 0, tool: 'edit', state: 'done', success: true, path: 'p', diff: '--- p\\n+++ p\\n@@ -1 +1 @@\\n-a\\n+***b***\\n' }); choose(rows.get('x2'))`)
    must(await page.get(`[...document.querySelectorAll('button')].some(b => b.textContent === 'Undo this edit')`), 'no button for a text with stars')
    await page.get(`for (const k of ['x1', 'x2']) rows.get(k).li.remove(), rows.delete(k)`)
})

await point('files are shown, sent and fetched', async () => {
    await page.get(tabTo('Files'))
    await page.until(`document.querySelector('#p1').textContent.includes('code.py')`)
    await page.get(`[...document.querySelectorAll('#p1 .lk')].find(b => b.textContent === 'code.py').click()`)
    await page.until(`document.querySelector('#p1 pre')?.textContent.includes('def area')`)
    await page.get(`(() => { const t = new DataTransfer; t.items.add(new File(['sent by a person'], 'sent.txt')); const i = document.querySelector('input[type=file]'); i.files = t.files; i.onchange() })()`)
    await page.until(`document.querySelector('#p1').textContent.includes('sent.txt')`)
    must(readFileSync(join(work, 'sent.txt'), 'utf8') === 'sent by a person', 'other bytes')
    // a file that was refused can be sent again
    await page.get(`(async real => { window.fetch = (url, o) => o.method === 'PUT' ? Promise.resolve(new Response('{"error":"refused"}', { status: 409 })) : real(url, o); const t = new DataTransfer; t.items.add(new File(['x'], 'again.txt')); picker.files = t.files; await picker.onchange(); window.fetch = real })(fetch)`)
    await page.until(`document.getElementById('say').textContent === 'refused'`)
    must(await page.get('!picker.files.length'), 'the picker has it still: the same file is no change')
    await page.get(`HTMLAnchorElement.prototype.click = function () { window.saved = this.download; window.link = this.href }; URL.createObjectURL = b => { window.blob = b; return 'blob:x' }`)
    await page.get(`[...document.querySelectorAll('#p1 .row')].find(r => r.textContent.includes('sent.txt')).lastChild.click()`)
    await page.until('window.saved')
    must(await page.get(`blob.text().then(t => saved === 'sent.txt' && t === 'sent by a person')`), 'the download differs')
})

await point('files with any name, and without content', async () => {
    const names = ['a -> b', 'a (ignored)', 'two\nlines', 'empty.txt']
    names.forEach(n => writeFileSync(join(work, n), n === 'empty.txt' ? '' : 'it is ' + n))
    for (const n of names) {
        await page.get(`files('.')`)
        const text = JSON.stringify(n)
        await page.until(`[...document.querySelectorAll('#p1 .lk')].some(b => b.textContent === vis(${text}))`)
        await page.get(`[...document.querySelectorAll('#p1 .lk')].find(b => b.textContent === vis(${text})).click()`)
        await page.until(n === 'empty.txt' ? `document.querySelector('#p1').textContent.includes('An empty file.')`
            : `document.querySelector('#p1 pre')?.textContent === 'it is ' + ${text}`)
    }
    // the browser's console names the 416
    must(page.errors.every(e => /416/.test(e)), page.errors.join('; '))
    page.errors.length = 0
})

await point('hostile output and names stay text', async () => {
    const name = '<img src=x onerror=alert(1)>\u202etxt.exe'
    writeFileSync(join(work, name), '<script>alert(2)</script>\u202e\x1b]0;title\x07\x1b[2J<b>bold</b>')
    await call('bash', { command: 'cat ./*txt.exe; printf \'\\033]8;;javascript:alert(3)\\007link\\033]8;;\\007 \\033[999999999999C\\033[38;2;999;;;m<script>alert(4)</script>\\342\\200\\256evil\\n\'; echo "</script><script>alert(5)</script>"', description: '<script>alert(6)</script>' })
    await page.get(tabTo('Details'))
    await page.get(`document.getElementById('last').click()`)
    await page.until(`document.querySelector('.log')?.textContent.includes('alert(5)')`)
    const text = await page.get(`document.querySelector('.log').textContent`)
    must(text.includes('<script>alert(4)</script>') && text.includes('\u2039202e\u203a') && !text.includes('\u202e'), JSON.stringify(text))
    must(!text.includes('javascript:'), 'a link')
    await page.get(tabTo('Files'))
    await page.until(`document.querySelector('#p1').textContent.includes('onerror')`)
    await page.get(`[...document.querySelectorAll('#p1 .lk')].find(b => b.textContent.includes('onerror')).click()`)
    await page.until(`document.querySelector('#p1 pre')?.textContent.includes('alert(2)')`)
    must(await page.get(`!document.querySelector('main script, main b[c], #p1 img') && document.scripts.length === 1 && document.title === 'hfsb' && !document.body.textContent.includes('\\u202e')`), 'markup was made of it')
    must(!page.errors.length, page.errors.join('; '))
})

await point('characters that are not seen are shown by their numbers', async () => {
    for (const [text, shown] of [['a\u{e0041}b', 'a\u2039e0041\u203ab'], ['\u3164\u1160\uffa0\u034f', '\u20393164\u203a\u20391160\u203a\u2039ffa0\u203a\u203934f\u203a'],
        ['x\ufe0f\ufe01', 'x\u2039fe0f\u203a\u2039fe01\u203a'], ['\u26a0\ufe0f ok', '\u26a0\ufe0f ok'], ['\u202e\u2028\xad', '\u2039202e\u203a\u20392028\u203a\u2039ad\u203a'],
        ['\x1b\t\n\u00e9\u4e2d', '\u241b\t\n\u00e9\u4e2d']])
        must(await page.get(`vis(${JSON.stringify(text)}) === ${JSON.stringify(shown)}`), JSON.stringify(text))
})

// What a Log shows after these texts, as lines; with `end` the output is complete.
const logged = (what, end) => `(async () => {
    const log = Log(document.createElement('div'))
    log.write(${what})
    ${end ? 'log.end()' : ''}
    for (let i = 0; i < 20; i++) await new Promise(requestAnimationFrame)
    return [...log.el.children].map(d => d.textContent)
})()`

await point('output is shown to its end, and long lines are cut', async () => {
    const same = async (got, want) => { const s = JSON.stringify(await page.get(got)); must(s === JSON.stringify(want), s.slice(0, 200)) }
    // an escape across the part that a frame shows
    await same(logged(`'x'.repeat(49997) + '\x1b[31mred\x1b[0m\\nnext'`), ['x'.repeat(49997) + 'red', 'next'])
    await same(logged(`'a\x1b\\nb\x1b[\x1b[32mc\x1b]0;no end\\nd'`), ['a', 'bc', 'd'])
    await same(logged(`'seen \x1b]0;title'`), ['seen '])
    await same(logged(`'seen \x1b]0;title'`, true), ['seen ]0;title'])
    await same(logged(`'y'.repeat(3e5) + '\\nnext'`), ['y'.repeat(1e5) + ' [200000 characters skipped]', 'next'])
    await same(logged(`'\x1b[31ma\x1b[32mb'.repeat(2000) + '\\rshort'`), ['short'])
    must((await page.get(logged(`'\x1b[31ma\x1b[32mb'.repeat(2000)`)))[0].endsWith('ab [2000 characters skipped]'), 'colours')
    // of a flood the newest lines, in their own colours
    await same(logged(`'\x1b[31mpart' + Array.from({ length: 1e5 }, (_, i) => i + '\\n').join('')`), Array.from({ length: 3000 }, (_, i) => String(97000 + i)))
    // and how many came before them: in a flood, after a line has begun, and line by line
    const lost = (first, rest) => page.get(`(async () => {
        const log = Log(document.createElement('div')), frames = async n => { while (n--) await new Promise(requestAnimationFrame) }
        log.write(${first})
        await frames(3)
        log.write(${rest})
        await frames(20)
        const is = [getComputedStyle(document.body.appendChild(log.el), '::before').content, log.el.dataset.lost]
        log.clear()
        log.write('again')
        await frames(3)
        is.push(log.el.dataset.lost)
        log.el.remove()
        return is
    })()`)
    const many = n => `'x\\n'.repeat(${n})`
    for (const [first, rest, n] of [[many(9000), `''`, 6000], [`'part'`, many(9000), 6000], [many(2000), many(1500), 500], [many(10), `''`, 0]]) {
        const [shown, is, after] = await lost(first, rest)
        must(is === (n ? `[${n} lines skipped]` : '') && after === '' && /lost|skipped|""/.test(shown), [first, rest, shown, is, after].join())
    }
    must((await page.get(logged(`('z'.repeat(9e4) + '\\n').repeat(10)`))).length === 10, 'a few long lines')
    must(await page.get(`Log(document.createElement('div')).more.hidden`), 'a button without a text')
    must(await page.get(`(async () => { const box = document.body.appendChild(document.createElement('div')), log = Log(box); box.style = 'height: 50px; overflow: auto'; box.append(log.el); const frames = async () => { for (let i = 0; i < 4; i++) await new Promise(requestAnimationFrame) }; log.write('x\\n'.repeat(99)); await frames(); box.scrollTop = 0; await frames(); const said = []; for (const s of ['one\\n', 'two\\n']) { log.write(s); await frames(); said.push(log.more.textContent) } box.remove(); return said.join() })()`) === '1 new line,2 new lines', 'another number of new lines')
})

// What a terminal of 40 columns and 10 rows shows after some code, as lines
const drawn = code => `(async () => {
    const el = document.createElement('div'), t = Term(el, () => 0, 40, 10)
    ${code}
    for (let i = 0; i < 2; i++) await new Promise(requestAnimationFrame)
    return [...el.children].filter(d => !d.hidden).map(d => d.textContent.trimEnd()).join('|').replace(/\\|+$/, '')
})()`
const typed = (...texts) => drawn(texts.map(s => `t.write(${JSON.stringify(s)})`).join(';'))

await point('text on a colour can be read, dark and light', async () => {
    const bright = c => { const [r, g, b] = c.match(/\d+/g).map(v => (v / 255) ** 2.2); return .21 * r + .72 * g + .07 * b + .05 }
    for (const value of ['dark', 'light']) {
        await page.call('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value }] })
        for (const n of [40, 41, 42, 43, 44, 45, 46, 47, 100, 104, '37;40', '97;41', '30;42', '37;44', '30;47', '90;43', '7;32']) {
            const [f, g] = await page.get(`(s => { document.body.append(s); const c = getComputedStyle(s), r = [c.color, c.backgroundColor]; s.remove(); return r })(inked('x', sgr(PLAIN, '${n}')))`)
            const [a, b] = [bright(f), bright(g)], ratio = Math.max(a, b) / Math.min(a, b)
            must(ratio > 3, `${value}, ${n}: ${f} on ${g}, ${ratio.toFixed(1)}`)
        }
    }
    await page.call('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: 'light' }] })
})

await point('malformed escapes do not stop the terminal', async () => {
    for (const [texts, want] of [[['\x1b[\x1b[31mx'], 'x'], [['a\x1b[?1;?2hb'], 'ab'], [['\x1b]0;no end\x1b[32mgreen'], 'green'], [['\x1b\x1b[31mred'], 'red'],
        [['\x1b%Ga\x1b#8b\x1b(Bc\x1b=d'], 'abcd'], [['\x1b]0;t\r\nnext'], '|next'], [['\x1b[3', '1mx'], 'x'], [['\x1b]0;ti', 'tle\x07y'], 'y'],
        [['\x1b]0;t\x1b', '\\z'], 'z'], [['\x1b', '(', '0q\x1b(Bq'], '\u2500q'], [['\x1b[1\r2mx'], '2mx'], [['a\x1b\u00e9b'], 'a\u00e9b'],
        [['\x1b[' + '1;'.repeat(9000) + 'mx'], 'x'], [['\x1b_', 'x'.repeat(20000), '\x07\x1b[2J\x1b[Hclear'], 'clear']]) {
        const got = await page.get(typed(...texts))
        must(got.endsWith(want) && (got === want || texts.length > 2), JSON.stringify([texts, got]).slice(0, 200))
    }
})

await point('the terminal answers questions, not answers', async () => {
    const answers = text => page.get(`(() => { let s = ''; Term(document.createElement('div'), t => s += t, 40, 10).write(${JSON.stringify(text)}); return s })()`)
    for (const [text, want] of [['\x1b[c', '\x1b[?1;2c'], ['\x1b[0c', '\x1b[?1;2c'], ['\x1b[>c', '\x1b[>0;10;0c'], ['\x1b[?1;2c', ''], ['\x1b[?c', '']])
        must(await answers(text) === want, JSON.stringify([text, await answers(text)]))
})

await point('the terminal keeps its cursor and its columns when resized', async () => {
    const lines = 'l\\r\\n'.repeat(9)
    // quit vim after its window became smaller
    for (const [before, want] of [[lines + 'ready> ', /\|ready> after$/], ['ready> ', /^ready> after$/]]) {
        const got = await page.get(drawn(`t.write('${before}\\x1b[?1049h\\x1b[10;1Hvim'); t.resize(40, 5); t.write('\\x1b[?1049l'); t.write('after')`))
        must(want.test(got), got)
    }
    // a row has no more cells than columns
    for (const s of [`'x' + '\\x1b[999@'.repeat(20000)`, `'\\x1b[4h' + 'abc\\r'.repeat(1000)`])
        must(await page.get(`(async () => { const el = document.createElement('div'), t = Term(el, () => 0, 40, 10); t.write(${s}); t.resize(500, 10); await new Promise(requestAnimationFrame); await new Promise(requestAnimationFrame); return el.firstChild.textContent.length })()`) <= 41, s)
})

await point('the terminal keeps lines that no frame has shown', async () => {
    const lines = (from, to) => Array.from({ length: to - from }, (_, i) => 'l' + (from + i))
    const text = list => list.map(l => l + '\\r\\n').join('')
    for (const code of [`t.write('${text(lines(0, 100))}')`,
        `t.write('${text(lines(0, 50))}'); await new Promise(requestAnimationFrame); await new Promise(requestAnimationFrame); t.write('${text(lines(50, 100))}')`,
        `t.write('${text(lines(0, 100))}\\x1b[?1049hvim'); await new Promise(requestAnimationFrame); t.write('\\x1b[?1049l')`]) {
        const got = await page.get(drawn(code))
        must(got === lines(0, 100).join('|'), got.slice(0, 300))
    }
    // one that was put above the others stays above them
    const got = await page.get(drawn(`t.write('${text(lines(0, 9))}'); await new Promise(requestAnimationFrame); t.write('\\x1b[H\\x1bMtop\\x1b[10;1H' + '\\n\\n\\n')`))
    must(got.startsWith('top|l0|l1'), got)
    must(await page.get(`(async () => { const el = document.createElement('div'), t = Term(el, () => 0, 40, 10); t.write('x\\r\\n'.repeat(9000)); await new Promise(requestAnimationFrame); await new Promise(requestAnimationFrame); return el.childElementCount })()`) <= 2010, 'it keeps too many')
})

await point('no script but its own runs, and no markup is made from text', async () => {
    const r = await page.get(`(() => { const out = []; try { eval('1') ; out.push('eval') } catch {} try { document.body.insertAdjacentHTML('beforeend', '<p id=made>'); out.push('html') } catch {} const s = document.createElement('script'); try { s.text = 'window.ran = 1'; document.body.append(s) } catch {} if (window.ran) out.push('script'); return out.join() })()`)
    must(r === '', r)
    page.errors.length = 0
})

await point('a terminal with colours, keys, vim and another size', async () => {
    await page.get(tabTo('Terminal'))
    must(await page.get(click('Open a terminal')), 'no button')
    await page.until(screen + `.trim().length > 1`)
    await page.type(`PS1='ready> '; clear\r`)
    await page.until(screen + `.startsWith('ready> ')`)
    await page.type(`printf '\\033[44mblue\\033[0m\\n'; stty size; tty\r`)
    const size = (await page.until(`(/\\n(\\d+ \\d+)\\s*\\n/.exec(${screen}) || [])[1]`)).split(' ')
    must(await page.get(`[...document.querySelectorAll('#tty span')].some(s => s.textContent === 'blue' && s.style.backgroundColor === 'var(--c4)')`), 'no blue')
    await page.type('sleep 100\r')
    await wait(200)
    await page.key('c', 2)
    await page.until(screen + `.includes('^C')`)
    await page.size(1000, 600)
    await wait(300)
    await page.type(`clear; stty size\r`)
    await page.until(`(m => m && m[1] !== ${JSON.stringify(size.join(' '))})(/(?:^|\\n)(\\d+ \\d+)\\s*\\n/.exec(${screen}))`)
    // more than a message may have
    await page.type(`stty -echo; echo go; head -c 1500000 | wc -c; stty echo\r`)
    await page.until(screen + `.includes('\\ngo')`)
    await page.get(`keys.onpaste({ preventDefault() {}, clipboardData: { getData: () => ('x'.repeat(99) + '\\n').repeat(15000) } })`)
    await page.until('/\\n1500000\\s*\\n/.test(' + screen + ')')
    // what an input method composes
    await page.call('Input.imeSetComposition', { text: 'echo com', selectionStart: 8, selectionEnd: 8 })
    await page.call('Input.insertText', { text: 'echo composed' })
    await page.type('\r')
    await page.until(`/\\ncomposed\\s*\\n/.test(${screen})`)
    const vim = process.env.HFSB_VIM
    if (vim) {
        await page.type(`${vim} -u NONE note.txt\r`)
        await page.until(screen + `.includes('~')`)
        await page.type('ihello from the page\x1b')
        await page.until(screen + `.includes('hello from the page')`)
        if (shots) await page.shot(join(shots, 'vim.png'))
        // it follows the size of the window
        const note = `/(\\d+) \u00d7 (\\d+)/.exec(document.querySelector('#p3 .bar').textContent).slice(1).join()`, old = await page.get(note)
        await page.size(900, 500)
        const [cols, lines] = (await page.until(`${note} !== '${old}' && ${note}`)).split(',')
        await page.until(screen + `.split('\\n').filter(l => l.trim() === '~').length === ${lines} - 2`)
        const says = `/lines=${lines}\\b/.test(${screen}) && /columns=${cols}\\b/.test(${screen})`
        for (let tries = 0; ; tries++) { // vim may draw once more, and over it
            await page.type('\x1b:set lines? columns?\r')
            if (await page.until(says, 5000).catch(e => { if (tries > 5) throw e })) break
            await page.type('\r')
        }
        await page.type('\r')
        await page.type(':wq\r')
        await page.until(screen + `.includes('ready>') && !${screen}.includes('~')`)
        must(readFileSync(join(work, 'note.txt'), 'utf8') === 'hello from the page\n', 'vim wrote something else')
    } else console.log('      (without vim)')
    await page.type('exit 3\r')
    await page.until(`document.querySelector('#p3').textContent.includes('exit 3')`)
    await page.size(1280, 800)
})

await point('a command is stopped by its button', async () => {
    const run = call('bash', { command: 'sleep 60; echo never' })
    await page.get(tabTo('Details') + `; document.getElementById('last').click()`)
    await page.until(rows('never') + `.some(l => l.querySelector('.run') && l.ariaSelected === 'true')`)
    must(await page.get(click('Stop')), 'no button')
    must((await run).success === false, 'it was not stopped')
    await page.until(rows('never') + `.some(l => l.querySelector('.bad') && /ended by SIG(TERM|KILL)/.test(l.textContent))`)
    await page.get(rows('never') + `.find(l => l.querySelector('.bad')).click()`)
    await page.until(`/ended by SIG/.test(document.querySelector('.meta').textContent)`)
})

await point('one button stops all commands', async () => {
    const runs = [1, 2].map(n => call('bash', { command: `sleep 60; echo never-${n}` }))
    await page.until([1, 2].map(n => rows('never-' + n) + `.some(l => l.querySelector('.run'))`).join('&&'))
    must(await page.get(click('Stop all')), 'no button')
    for (const r of await Promise.all(runs)) must(r.success === false, 'one was not stopped')
    await page.until(`document.getElementById('all').hidden`)
})

await point('charts, ports and the plan', async () => {
    await call('plan_tool', { todos: [{ id: '1', content: 'look <b>here</b>', status: 'in_progress' }, { id: '2', content: 'then there', status: 'pending' }] })
    await page.until(`!document.getElementById('plan').hidden && document.getElementById('plan').textContent.includes('look <b>here</b>')`)
    await page.get(tabTo('Machine'))
    await page.until(`document.querySelectorAll('#charts .chart').length === 3 && document.querySelectorAll('.big svg').length === 3`)
    if (process.env.HFSB_PORTS) {
        await call('bash', { command: 'python3 -m http.server --bind 127.0.0.1 0 > /dev/null 2>&1 & sleep 1' })
        await page.until(`document.querySelector('#p4').textContent.includes('http.server')`)
        let focused = false
        for (let i = 0; i < 20 && !focused; i++) { // a port that comes or goes renews the list
            await page.get(`[...document.querySelectorAll('#p4 .row')].find(r => r.textContent.includes('http.server')).querySelector('button').focus(); window.polls_ = past.Memory.length`)
            await page.until('past.Memory.length > polls_')
            focused = await page.get(`document.activeElement.textContent === 'Open'`)
        }
        must(focused, 'a button loses the focus')
        await page.get(`window.link = ''; [...document.querySelectorAll('#p4 .row')].find(r => r.textContent.includes('http.server')).querySelector('button').click()`)
        const link = await page.until(`link.includes('/open/') && link`)
        must((await (await fetch(link)).text()).includes('Directory listing'), 'the port does not open')
    } else console.log('      (without ports: no python3)')
    await page.get(tabTo('Connect'))
    must(await page.get(`/claude mcp add/.test(p5.textContent) && /curl/.test(p5.textContent) && /codex/.test(p5.textContent) && !p5.textContent.includes(${JSON.stringify(token)})`), 'not all ways')
    // as where the page comes by http from another machine
    await page.get(`Object.defineProperty(navigator, 'clipboard', { value: undefined, configurable: true })`)
    must(await page.get(click('Copy')), 'no button')
    await page.until(`document.getElementById('say').textContent === 'Copying needs https'`)
    await page.get('delete navigator.clipboard')
})

await point('keys and names for those who do not see the page', async () => {
    await page.get(`document.activeElement.blur()`)
    await page.key('1')
    must(await page.get(`document.getElementById('t0').ariaSelected === 'true'`), 'no tab by its number')
    await page.key('j')
    const one = await page.get(`document.getElementById('list').getAttribute('aria-activedescendant')`)
    await page.key('j')
    must(one !== await page.get(`document.getElementById('list').getAttribute('aria-activedescendant')`), 'j does not move')
    const mute = await page.get(`[...document.querySelectorAll('button, input, select, textarea, [role=tabpanel], [role=listbox]')].filter(e => !(e.textContent.trim() || e.ariaLabel || e.labels?.length || e.getAttribute('aria-labelledby') || e.hidden || e.type === 'file')).map(e => e.outerHTML.slice(0, 80))`)
    must(!mute.length, 'without a name: ' + mute)
})

await point('arrows move between the tabs that are shown', async () => {
    const chosen = `document.activeElement.textContent + tabs.filter(t => t.ariaSelected === 'true').map(t => t.textContent)`
    for (const [from, key, to] of [['Details', 'ArrowLeft', 'Connect'], ['Connect', 'ArrowRight', 'Details'], ['Details', 'ArrowRight', 'Files'], ['Files', 'ArrowLeft', 'Details']]) {
        await page.get(tabTo(from) + `; tabs[TABS.indexOf('${from}')].focus()`)
        await page.key(key)
        must(await page.get(chosen) === to + to, `${from}, ${key}: ${await page.get(chosen)}`)
    }
    // at the start Details is shown
    await page.get('tab(0); tabs[1].focus()')
    await page.key('ArrowRight')
    must(await page.get(chosen) === 'FilesFiles', await page.get(chosen))
    await page.get(tabTo('Details'))
})

await point('a hidden tab stops asking, and finds out what it has missed', async () => {
    const { id } = await call('bash', { command: 'sleep 60; echo missed', background: true })
    await page.until(rows('echo missed') + `.some(l => l.querySelector('.run'))`)
    await page.get(`Object.defineProperty(document, 'hidden', { value: true, configurable: true }); window.clock_ = Date.now; Date.now = () => clock_() + 1e6`)
    await call('exists', { path: 'the last one seen' })
    await page.until(rows('the last one seen') + '.length')
    await call('kill', { id })
    await Promise.all(Array.from({ length: 20 }, async (_, k) => { for (let i = 0; i < 51; i++) await call('exists', { path: `many-${k}-${i}` }) }))
    must(!await page.get(rows('many-') + '.length'), 'it goes on asking')
    await page.get(`Date.now = clock_; delete document.hidden`)
    await page.until(`document.querySelectorAll('#list li').length >= 1000`)
    await page.until(rows('many-19-50') + '.length')
    await page.until(rows('echo missed') + `.every(l => l.querySelector('.bad'))`)
    must(await page.get(`document.querySelectorAll('#list li').length <= 2001`), 'too many rows')
})

await point('it connects again after a restart of the server', async () => {
    execFileSync('sh', ['-c', restart], { stdio: 'ignore' })
    await call('bash', { command: 'echo after-restart' }).catch(() => call('bash', { command: 'echo after-restart' }))
    await page.until(rows('after-restart') + '.length')
    must(!await page.get(rows('echo first') + '.length'), 'it still shows what the old server did')
    page.errors.length = 0
})

await point('it fits a phone', async () => {
    const phone = await open({ width: 360, height: 700, mobile: true, dark: true })
    await phone.until(rows('after-restart') + '.length')
    for (const name of ['Timeline', 'Details', 'Files', 'Changes', 'Terminal', 'Machine', 'Connect']) {
        await phone.get(tabTo(name))
        await wait(150)
        const wide = await phone.get(`[document.documentElement.scrollWidth, [...document.querySelectorAll('header *, #left *')].filter(e => e.checkVisibility() && e.getBoundingClientRect().right > innerWidth + 1 && !e.closest('svg')).length]`)
        must(wide[0] <= 360 && !wide[1], `${name} is ${wide[0]} wide, ${wide[1]} elements stick out`)
    }
    must(await phone.get(`getComputedStyle(document.body).backgroundColor`) === 'rgb(14, 18, 24)', 'it is not dark')
    must(!phone.errors.length, phone.errors.join('; '))
    await phone.close()
})

await browser.close()
console.log(failed ? `${failed} of ${count} points failed` : `page: ${count} points passed`)
process.exit(failed ? 1 : 0)
