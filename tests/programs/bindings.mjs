/* bindings.mjs - the JavaScript module of examples/wasm; for bindings.sh.
     bindings.mjs DIR [FILE]   DIR has hfsb.mjs and hfsb.wasm; FILE has calls
                               and what the shared library replied */
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { isDeepStrictEqual as equal } from 'node:util';

const dir = process.argv[2];
const { load, HfsbError } =
    await import(pathToFileURL(`${dir}/hfsb.mjs`).href);
const hfsb = await load();
let checks = 0, failed = 0;

function same(what, is, want) {
    checks++;
    if (equal(is, want)) return;
    failed++;
    console.log(`FAIL  ${what}\n  is  `, is, '\n  want', want);
}

function refused(what, status, text, fn) {
    try {
        same(what, fn(), 'an error');
    } catch (e) {
        if (!(e instanceof HfsbError)) throw e;
        same(what, [e.status, e.message.includes(text)], [status, true]);
        return e;
    }
}

let r = hfsb.edit('a = 1\nb\n', { old_str: 'a = 1', new_str: 'a = €😀' },
    { path: 'x.js' });
same('edit', r.content, 'a = €😀\nb\n');
same('edit: diff', r.diff.split('\n')[1], '+++ b/x.js');
r = hfsb.edit('a\nb\n', [{ old_str: 'a', new_str: 'A' },
    { old_str: 'b', new_str: 'B\0' }]);
same('two edits', [r.content, r.count], ['A\nB\0\n', 2]);
refused('not found', 'NOT_FOUND', 'old_str not found',
    () => hfsb.edit('x\n', { old_str: 'no such line', new_str: '' }));
same('key', refused('an argument is missing', 'ARG', 'new_str',
    () => hfsb.edit('x\n', { old_str: 'x' }))?.key, 'new_str');
refused('half a character', 'SYNTAX', '',
    () => hfsb.edit('x\n', { old_str: 'x', new_str: '\ud800' }));
refused('an unknown call', 'ARG', 'no such call', () => hfsb.call('sing'));
refused('arguments that are no object', 'ARG', '',
    () => hfsb.call('edit', []));

const patch = '*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+two\n' +
    '*** Add File: __proto__\n+b\n*** End Patch\n';
same('patch', hfsb.patch(patch, { 'a.txt': 'one\n' }).map(c => c.content),
    ['two\n', 'b\n']);
const asked = [];
hfsb.patch(patch, path => {
    asked.push(path);
    return path === 'a.txt' ? 'one\n' : null;
});
same('patch asks for files once', asked, ['a.txt', '__proto__']);
refused('patch: not a text, which is not "no file"', 'ARG', 'must be a text',
    () => hfsb.patch('*** Begin Patch\n*** Add File: a.txt\n+b\n*** End Patch\n',
        () => Buffer.from('there')));
refused('patch: no file', 'IO', 'a.txt', () => hfsb.patch(patch));

same('strip', hfsb.strip('\x1b[1mbold\x1b[0m\r\n10%\r20%\n'), 'bold\n20%\n');
same('truncate', hfsb.truncate('€'.repeat(100), { chars: 10, head: 4 }),
    '€€€€\n\n... (90 of 100 chars omitted, showing first 4 + last 6) ...\n' +
    '€'.repeat(6));
same('truncate to a number', hfsb.truncate('x'.repeat(100), 10),
    hfsb.truncate('x'.repeat(100), { chars: 10 }));
same('truncate without one', hfsb.truncate('abc'), 'abc');
refused('truncate to nothing', 'ARG', 'at least 1',
    () => hfsb.truncate('abc', 0));
same('version', hfsb.version.split('.').length, 3);
same('numbers of 64 and 128 bits', hfsb.call('truncate',
    { text: 'abc', chars: 1.0, unused: [18446744073709551615, 1e-300,
        1.7976931348623157e308, 123456789.123456789] }).truncated, true);

/* 20 MB: the memory grows while the call uses it */
const big = 'line of a large file\n'.repeat(1e6);
r = hfsb.edit(`${big}end\n`, { old_str: 'end', new_str: 'END' });
same('a large file', [r.content.length, r.content.endsWith('\nEND\n')],
    [big.length + 4, true]);

/* nothing stays behind: the memory of a second instance stops growing */
const { instance } =
    await WebAssembly.instantiate(readFileSync(`${dir}/hfsb.wasm`));
const wasm = instance.exports;
same('it needs nothing from outside', WebAssembly.Module.imports(
    await WebAssembly.compile(readFileSync(`${dir}/hfsb.wasm`))), []);
function raw(json) {
    const bytes = new TextEncoder().encode(`edit\0${json}`);
    const at = wasm.hfsb_bind_alloc(bytes.length);
    new Uint8Array(wasm.memory.buffer).set(bytes, at);
    wasm.hfsb_bind_free(wasm.hfsb_bind_call(at, at + 5, bytes.length - 5));
    wasm.hfsb_bind_free(at);
}
let size = 0;
for (let i = 0; i < 2000; i++) {
    raw(JSON.stringify({ content: 'a\n'.repeat(1000 + i % 7),
        old_str: i % 2 ? 'a' : 'b', new_str: 'c', replace_all: true }));
    raw('{"content": 1');
    if (i === 20) size = wasm.memory.buffer.byteLength;
}
same('memory after 2,000 calls', wasm.memory.buffer.byteLength, size);

/* the same replies as the shared library's */
const lines = process.argv[3]
    ? readFileSync(process.argv[3], 'utf8').trimEnd().split('\n') : [];
for (const line of lines) {
    const [name, args, want] = JSON.parse(line);
    let is;
    try {
        is = hfsb.call(name, args);
    } catch (e) {
        if (!(e instanceof HfsbError)) throw e;
        is = { status: e.status, message: e.message };
    }
    same(line, is, want);
}
console.log(`node: ${checks} checks, ${failed} failed`);
process.exitCode = failed ? 1 : 0;
