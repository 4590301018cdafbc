// e2b.mjs - drives a server with the E2B SDK, as its users do.
//   node e2b.mjs MODULES debug        E2B_DEBUG: the server's own sandbox
//   node e2b.mjs MODULES control KEY  the control plane, several sandboxes
// MODULES is a folder with node_modules/e2b; E2B_SANDBOX_URL, E2B_API_URL and
// WORK_DIR describe the server.
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
import { createHash } from 'node:crypto'
import fs from 'node:fs'

const [modules, mode, key] = process.argv.slice(2)
const require = createRequire(modules + '/here.js')
const e2b = await import(pathToFileURL(require.resolve('e2b')))
const { Sandbox, CommandExitError, TimeoutError, NotFoundError } =
  e2b.default ?? e2b
let work = process.env.WORK_DIR // of the sandbox that is tested

let checks = 0
let failed = 0
const ok = (what, good, more) => {
  checks++
  if (good) return
  failed++
  console.log('FAIL ', what, more === undefined ? '' : JSON.stringify(more))
}
const same = (what, is, want) =>
  ok(what, JSON.stringify(is) === JSON.stringify(want), is)
const throws = async (what, type, fn) => {
  try {
    ok(what + ' is refused', false, await fn())
  } catch (e) {
    ok(what, e instanceof type, e.constructor.name + ': ' + e.message)
    return e
  }
}
const sleep = (ms) => new Promise((r) => setTimeout(r, ms))
const until = async (what, fn) => {
  for (let i = 0; i < 200; i++) {
    if (await fn()) return ok(what, true)
    await sleep(50)
  }
  ok(what, false)
}
const sha = (bytes) => createHash('sha256').update(bytes).digest('hex')

async function commands(s) {
  const r = await s.commands.run('echo out; echo err >&2; echo $A; pwd', {
    envs: { A: 'is set' },
  })
  same('stdout', r.stdout, `out\nis set\n${work}\n`)
  same('stderr', r.stderr, 'err\n')
  same('exit code', r.exitCode, 0)
  const bad = await throws('exit code 3', CommandExitError, () =>
    s.commands.run('echo before; exit 3')
  )
  same('its code', bad?.exitCode, 3)
  same('its output', bad?.stdout, 'before\n')
  same('cwd', (await s.commands.run('pwd', { cwd: '/' })).stdout, '/\n')
  for (const user of ['root', 'user'])
    same(user, (await s.commands.run('echo x', { user })).stdout, 'x\n')
  await throws('another user', Error, () =>
    s.commands.run('id', { user: 'nobody-at-all' })
  )
  await throws('no such cwd', Error, () =>
    s.commands.run('pwd', { cwd: '/no/such/folder' })
  )
  const seen = []
  await s.commands.run('for i in 1 2 3; do echo $i; sleep 0.2; done', {
    onStdout: (x) => seen.push(x),
  })
  same('output as it comes', seen, ['1\n', '2\n', '3\n'])
  const long = await s.commands.run('seq 1 400000')
  same('long output', long.stdout.length, 2688895)
  ok('its end', long.stdout.endsWith('\n399999\n400000\n'))
  same('umlauts', (await s.commands.run("printf 'ä€😀%.0s' $(seq 9000)")).stdout
    .length, 9000 * 4)
  const many = await Promise.all(
    Array.from({ length: 20 }, (_, i) => s.commands.run('echo ' + i))
  )
  same('at once', many.map((x) => +x.stdout), [...Array(20).keys()])
}

async function processes(s) {
  const h = await s.commands.run('cat; echo end', {
    background: true,
    stdin: true,
  })
  await until('list', async () =>
    (await s.commands.list()).some((p) => p.pid === h.pid)
  )
  const p = (await s.commands.list()).find((x) => x.pid === h.pid)
  same('its command', [p.cmd, p.args], ['/bin/bash', ['-l', '-c', 'cat; echo end']])
  await s.commands.sendStdin(h.pid, 'hello\n')
  const big = 'x'.repeat(3_000_000)
  await s.commands.sendStdin(h.pid, big)
  await s.commands.closeStdin(h.pid)
  const r = await h.wait()
  same('stdin', sha(r.stdout), sha('hello\n' + big + 'end\n'))
  await until('not listed', async () =>
    (await s.commands.list()).every((x) => x.pid !== h.pid)
  )
  await throws('stdin after the end', NotFoundError, () =>
    s.commands.sendStdin(h.pid, 'x')
  )

  // a client that goes and comes back
  const slow = await s.commands.run('for i in 1 2 3 4 5 6; do echo $i; sleep 0.3; done; exit 7', {
    background: true,
  })
  await sleep(100)
  await slow.disconnect()
  const again = await s.commands.connect(slow.pid)
  const end = await throws('exit of a reconnect', CommandExitError, () =>
    again.wait()
  )
  same('its code', end?.exitCode, 7)
  ok('its output', end?.stdout.endsWith('5\n6\n'), end?.stdout)
  const late = await s.commands.connect(slow.pid)
  same('exit after the end', (await throws('late', CommandExitError, () => late.wait()))?.exitCode, 7)
  await throws('connect to none', NotFoundError, () => s.commands.connect(999999999))

  const sleeper = await s.commands.run('sleep 100', { background: true })
  same('kill', await sleeper.kill(), true)
  const killed = await throws('killed', CommandExitError, () => sleeper.wait())
  same('its words', killed?.error, 'signal: killed')
  await until('gone', async () => (await s.commands.kill(sleeper.pid)) === false)

  const marker = work + '/survived'
  const t0 = Date.now()
  await throws('timeout', TimeoutError, () =>
    s.commands.run(`sleep 4; touch ${marker}`, { timeoutMs: 700 })
  )
  ok('in time', Date.now() - t0 < 3000, Date.now() - t0)
  await until('and killed', async () => (await s.commands.list()).length === 0)
  ok('not survived', !fs.existsSync(marker))
}

async function terminals(s) {
  let text = ''
  const decoder = new TextDecoder()
  const t = await s.pty.create({
    cols: 90,
    rows: 30,
    onData: (d) => (text += decoder.decode(d, { stream: true })),
    timeoutMs: 30000,
  })
  const type = (x) => s.pty.sendInput(t.pid, new TextEncoder().encode(x))
  await type('stty size; echo $TERM\n')
  await until('size', () => text.includes('30 90'))
  await until('TERM', () => text.includes('xterm-256color'))
  await s.pty.resize(t.pid, { cols: 120, rows: 40 })
  await type('stty size\n')
  await until('resize', () => text.includes('40 120'))
  await throws('stdin of a terminal', Error, () => s.commands.sendStdin(t.pid, 'x'))
  await throws('close of a terminal', Error, () => s.commands.closeStdin(t.pid))
  await type('exit 5\n')
  same('exit', (await throws('of a terminal', CommandExitError, () => t.wait()))?.exitCode, 5)
  const k = await s.pty.create({ cols: 80, rows: 24, onData: () => {} })
  same('kill', await s.pty.kill(k.pid), true)
}

async function files(s) {
  same('write', await s.files.write('d/a.txt', 'abc'), {
    path: work + '/d/a.txt',
    name: 'a.txt',
    type: 'file',
  })
  same('read', await s.files.read('d/a.txt'), 'abc')
  same('read ~', await s.files.read('~/d/a.txt'), 'abc')
  same('absolute', await s.files.read(work + '/d/a.txt'), 'abc')
  same('as bytes', [...(await s.files.read('d/a.txt', { format: 'bytes' }))], [97, 98, 99])
  await s.files.write('empty', '')
  same('empty', await s.files.read('empty'), '')
  same('several', (await s.files.write([
    { path: 'm/1', data: 'one' },
    { path: work + '/m/2', data: 'two' },
  ])).map((x) => x.path), [work + '/m/1', work + '/m/2'])
  same('the second', await s.files.read('m/2'), 'two')
  await throws('missing', NotFoundError, () => s.files.read('no/such'))
  await throws('a folder', Error, () => s.files.read('d'))
  same('exists', [await s.files.exists('d/a.txt'), await s.files.exists('no')], [true, false])
  same('make', [await s.files.makeDir('x/y/z'), await s.files.makeDir('x/y/z')], [true, false])
  await throws('make where a file is', Error, () => s.files.makeDir('d/a.txt'))
  const info = await s.files.getInfo('d/a.txt')
  same('info', [info.name, info.type, info.path, info.size, info.mode, info.permissions],
    ['a.txt', 'file', work + '/d/a.txt', 3, 0o644, '-rw-r--r--'])
  ok('time', Math.abs(info.modifiedTime - Date.now()) < 60000, info.modifiedTime)
  fs.symlinkSync('a.txt', work + '/d/link')
  const link = await s.files.getInfo('d/link')
  same('symlink', [link.type, link.symlinkTarget, link.permissions[0]],
    ['file', work + '/d/a.txt', 'L'])
  same('list', (await s.files.list('.')).map((x) => x.name).sort(), ['d', 'empty', 'm', 'x'])
  same('depth', (await s.files.list('x', { depth: 2 })).map((x) => x.path).sort(),
    [work + '/x/y', work + '/x/y/z'])
  await throws('list of a file', Error, () => s.files.list('empty'))
  await throws('list of none', NotFoundError, () => s.files.list('none'))
  const marked = await s.files.write('marked', 'x', { metadata: { kind: 'a b' } }).catch((e) => e)
  if (!/no extended attributes/.test(marked.message)) {
    same('metadata', marked.metadata, { kind: 'a b' })
    same('kept', (await s.files.getInfo('marked')).metadata, { kind: 'a b' })
  }
  await s.files.remove('marked')
  const moved = await s.files.rename('d/a.txt', 'new/b.txt')
  same('rename', moved.path, work + '/new/b.txt')
  await throws('rename of none', NotFoundError, () => s.files.rename('none', 'n2'))
  await s.files.remove('new')
  ok('removed', !(await s.files.exists('new')))
  await s.files.remove('new')
  const bytes = Buffer.alloc(40_000_000)
  for (let i = 0; i < bytes.length; i += 4) bytes.writeUInt32LE((i * 2654435761) >>> 0, i)
  await s.files.write('large', new Blob([bytes]))
  same('large', sha(await s.files.read('large', { format: 'bytes' })), sha(bytes))
  await s.files.write('streamed', new Blob([bytes]).stream())
  const hash = createHash('sha256')
  for await (const piece of await s.files.read('streamed', { format: 'stream' })) hash.update(piece)
  same('streams', hash.digest('hex'), sha(bytes))
  for (const name of ['large', 'streamed', 'd', 'm', 'x', 'empty']) await s.files.remove(name)
}

async function watches(s) {
  const events = []
  const ends = []
  await s.files.makeDir('w/in')
  const h = await s.files.watchDir('w', (e) => events.push(e), {
    recursive: true,
    includeEntry: true,
    onExit: (e) => ends.push(e),
  })
  const has = (type, name) => until(`${type} ${name}`, () =>
    events.some((e) => e.type === type && e.name === name))
  await s.files.write('w/a', '1')
  await has('create', 'a')
  await has('write', 'a')
  same('entry', events.find((e) => e.type === 'write' && e.name === 'a')?.entry?.path, work + '/w/a')
  await s.files.write('w/in/b', '1')
  await has('write', 'in/b')
  await s.files.makeDir('w/new')
  await s.files.write('w/new/c', '1')
  await has('create', 'new/c')
  await s.commands.run('chmod 600 w/a; mv w/a w/z')
  await has('chmod', 'a')
  await has('rename', 'a')
  await has('create', 'z')
  await s.files.remove('w/z')
  await has('remove', 'z')
  await h.stop()
  await until('stop', () => ends.length === 1)
  await throws('watch of none', NotFoundError, () => s.files.watchDir('none', () => {}))
  await s.files.write('file', '')
  await throws('watch of a file', Error, () => s.files.watchDir('file', () => {}))
  const g = []
  await s.files.watchDir('w', () => {}, { timeoutMs: 300, onExit: (e) => g.push(e) })
  await until('timeout of a watch', () => g.length === 1)
  ok('its kind', g[0] instanceof TimeoutError, g[0]?.constructor?.name)
  await s.files.remove('w')
  await s.files.remove('file')
}

async function polling(url) {
  const call = async (method, body) => {
    const r = await fetch(`${url}/filesystem.Filesystem/${method}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    })
    return r.json()
  }
  fs.mkdirSync(work + '/p')
  const { watcherId } = await call('CreateWatcher', { path: 'p' })
  ok('watcher', watcherId)
  fs.writeFileSync(work + '/p/f', 'x')
  const names = []
  await until('its events', async () => {
    const { events } = await call('GetWatcherEvents', { watcherId })
    names.push(...events.map((e) => e.type + ' ' + e.name))
    return names.includes('EVENT_TYPE_WRITE f')
  })
  ok('create first', names[0] === 'EVENT_TYPE_CREATE f', names)
  same('remove it', await call('RemoveWatcher', { watcherId }), {})
  same('once', (await call('RemoveWatcher', { watcherId })).code, 'not_found')
  fs.rmSync(work + '/p', { recursive: true })
}

async function git(s) {
  const r = await s.commands.run('command -v git').catch(() => null)
  if (!r) return
  await s.git.init('repo')
  await s.git.configureUser('A', 'a@example.org', { scope: 'local', path: 'repo' })
  await s.files.write('repo/f', 'x')
  await s.git.add('repo')
  await s.git.commit('repo', 'first')
  ok('git', (await s.git.status('repo')).fileStatus.length === 0)
  await s.files.remove('repo')
}

async function control() {
  const opts = { apiKey: key, timeoutMs: 60000, metadata: { kind: 'test' } }
  const a = await Sandbox.create({ ...opts, envs: { WHO: 'a' } })
  const b = await Sandbox.create({ ...opts, envs: { WHO: 'b' }, metadata: { kind: 'other' } })
  ok('two', a.sandboxId !== b.sandboxId)
  const top = work
  work = `${top}/sandboxes/${a.sandboxId}`
  for (const part of [commands, files, watches]) await part(a)
  same('home', (await a.commands.run('cd; pwd')).stdout, work + '\n')
  work = top
  ok('running', await a.isRunning())
  same('environments', [(await a.commands.run('echo $WHO')).stdout, (await b.commands.run('echo $WHO')).stdout], ['a\n', 'b\n'])
  if (process.getuid() === 0) {
    const uid = async (s) => (await s.commands.run('id -u')).stdout.trim()
    const owner = (s) => String(fs.statSync(`${top}/sandboxes/${s.sandboxId}`).uid)
    same('users of their own', [await uid(a), await uid(b)], [owner(a), owner(b)])
    ok('not the same', (await uid(a)) !== (await uid(b)) && (await uid(a)) !== '0')
    await throws('its home', Error, () => b.commands.run('ls ../' + a.sandboxId))
  }
  await a.files.write('f', 'of a')
  same('files apart', [await a.files.exists('f'), await b.files.exists('f')], [true, false])
  await throws('out of its root', Error, () => b.files.read('../' + a.sandboxId + '/f'))
  const list = async (query) => {
    const found = []
    const pages = Sandbox.list({ apiKey: key, query })
    while (pages.hasNext) found.push(...(await pages.nextItems()))
    return found
  }
  same('list', (await list()).map((x) => x.sandboxId).sort(), [a.sandboxId, b.sandboxId].sort())
  same('by metadata', (await list({ metadata: { kind: 'other' } })).map((x) => x.sandboxId), [b.sandboxId])
  const pages = Sandbox.list({ apiKey: key, limit: 1 })
  const first = await pages.nextItems()
  ok('a page', first.length === 1 && pages.hasNext)
  const second = await pages.nextItems()
  ok('the last page', second.length === 1 && !pages.hasNext && first[0].sandboxId !== second[0].sandboxId)
  const info = await a.getInfo()
  same('info', [info.sandboxId, info.state, info.metadata], [a.sandboxId, 'running', { kind: 'test' }])
  await a.setTimeout(120000)
  ok('timeout', (await a.getInfo()).endAt - Date.now() > 100000)
  const again = await Sandbox.connect(a.sandboxId, { apiKey: key })
  same('connect', await again.files.read('f'), 'of a')

  const url = await a.downloadUrl('f')
  const head = { 'E2b-Sandbox-Id': a.sandboxId }
  const get = (u) => fetch(u, { headers: head })
  same('signed', await (await get(url)).text(), 'of a')
  same('expiring', await (await get(await a.downloadUrl('f', { useSignatureExpiration: 60 }))).text(), 'of a')
  same('expired', (await get(await a.downloadUrl('f', { useSignatureExpiration: -60 }))).status, 401)
  same('another path', (await get(url.replace('path=f', 'path=g'))).status, 401)
  same('no signature', (await get(url.replace(/signature=[^&]*/, ''))).status, 401)
  same('another sandbox', (await fetch(url, { headers: { 'E2b-Sandbox-Id': b.sandboxId } })).status, 401)
  const form = new FormData()
  form.append('file', new Blob(['up']), 'up.txt')
  const up = await fetch(await a.uploadUrl('up.txt'), { method: 'POST', headers: head, body: form })
  same('signed upload', [up.status, await a.files.read('up.txt')], [200, 'up'])
  same('a read signature does not write', (await fetch(url, { method: 'POST', headers: head, body: form })).status, 401)

  // the server's own sandbox, whose token is the key
  fs.writeFileSync(work + '/own', 'of the server')
  const mark = createHash('sha256').update('own:read::' + key).digest('base64').replace(/=+$/, '')
  const own = process.env.E2B_SANDBOX_URL + '/files?path=own&signature=v1_'
  same('signed by the key', await (await fetch(own + encodeURIComponent(mark))).text(), 'of the server')
  same('signed by another', (await fetch(own + encodeURIComponent(mark.replace(/./, (c) => (c === 'A' ? 'B' : 'A'))))).status, 401)
  fs.unlinkSync(work + '/own')

  await throws('compressed', Error, () => a.files.write('z', 'text', { gzip: true }))
  await a.files.write('z', 'text')
  same('plain', await a.files.read('z', { gzip: true }), 'text')

  const sleeper = await b.commands.run('sleep 100', { background: true })
  await throws('pause', Error, () => b.pause())
  same('kill', await b.kill(), true)
  await throws('its command', Error, () => sleeper.wait())
  ok('not running', !(await b.isRunning()))
  await throws('its files', Error, () => b.files.list('.'))
  same('kill again', await Sandbox.kill(b.sandboxId, { apiKey: key }), false)
  const c = await Sandbox.create({ ...opts, timeoutMs: 1000 })
  await until('its timeout', async () => !(await c.isRunning()))
  await throws('a wrong key', Error, () => Sandbox.create({ ...opts, apiKey: key.slice(0, -1) + (key.endsWith('0') ? '1' : '0') }))
  const dirs = () => fs.readdirSync(work + '/sandboxes')
  await until('directories are removed', () => dirs().length === 1)
  same('the one left', dirs(), [a.sandboxId])
  await a.kill()
  await until('the last one', () => dirs().length === 0)
}

const all = mode === 'control' ? [control] : [commands, processes, terminals, files, watches, git]
try {
  const s = mode === 'control' ? null : await Sandbox.create({ debug: true })
  for (const part of all) {
    const t = Date.now()
    await part(s)
    console.log(part.name, Date.now() - t, 'ms')
  }
  if (s) await polling(process.env.E2B_SANDBOX_URL)
} catch (e) {
  failed++
  checks++
  console.log('FAIL ', e.stack)
}
console.log(`${checks} checks, ${failed} failed`)
process.exit(failed ? 1 : 0)
