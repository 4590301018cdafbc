/* hfsb.mjs - hfsb's edit engine as a JavaScript module over hfsb.wasm, for
   node, deno, bun and browsers.

       import { load } from './hfsb.mjs';
       const hfsb = await load();
       const { content, diff } = hfsb.edit('a = 1\n',
           { old_str: 'a = 1', new_str: 'a = 2' });

   Arguments and results are those of examples/bindings/hfsb_json.c. A refusal
   is an HfsbError whose message is written for the model. All texts are
   strings; one with a lone surrogate is refused. */

export class HfsbError extends Error {
    constructor({ status, message, line, column, key }) {
        super(message);
        Object.assign(this, { name: 'HfsbError', status, line, column, key });
    }
}

class Hfsb {
    #wasm;

    constructor(instance) {
        this.#wasm = instance.exports;
    }

    /* Copies bytes into the module's memory, followed by a NUL. The memory
       moves when it grows, so every view of it is made after the last call. */
    #put(text) {
        const bytes = new TextEncoder().encode(text);
        const at = this.#wasm.hfsb_bind_alloc(bytes.length + 1) >>> 0;
        if (!at) throw new HfsbError({ status: 'NOMEM', message: 'out of memory' });
        const memory = new Uint8Array(this.#wasm.memory.buffer);
        memory.set(bytes, at);
        memory[at + bytes.length] = 0;
        return [at, bytes.length];
    }

    /* The text at an address, up to its NUL. */
    #get(at) {
        const memory = new Uint8Array(this.#wasm.memory.buffer);
        return new TextDecoder().decode(
            memory.subarray(at, memory.indexOf(0, at)));
    }

    /* Any call by its name, with an object in and an object out. */
    call(name, args = {}) {
        let [named] = this.#put(name), json = 0, length, reply = 0;
        try {
            [json, length] = this.#put(JSON.stringify(args));
            reply = this.#wasm.hfsb_bind_call(named, json, length) >>> 0;
            if (!reply)
                throw new HfsbError({ status: 'NOMEM', message: 'out of memory' });
            const result = JSON.parse(this.#get(reply));
            if (result.error) throw new HfsbError(result.error);
            return result;
        } finally {
            for (const at of [named, json, reply]) this.#wasm.hfsb_bind_free(at);
        }
    }

    /* One edit {old_str, new_str, mode, replace_all, exact, line}, or a list
       of them. Returns {content, count, note, diff, diff_cut, lines}. */
    edit(content, edits, { path } = {}) {
        const list = Array.isArray(edits) ? edits : [edits];
        return this.call('edit', { content, path, edits: list });
    }

    /* A patch in any of three formats. read(path) returns a file's text, or
       null where it does not exist; an object of texts will do as well.
       Returns the changes, which are yours to write. */
    patch(patch, read) {
        const files = {};
        for (;;) {
            const { needs, changes } = this.call('patch', { patch, files });
            if (changes) return changes;
            const text = typeof read === 'function' ? read(needs)
                : Object.hasOwn(read ?? {}, needs) ? read[needs] : null;
            Object.defineProperty(files, needs, // "__proto__" is a path, too
                { value: text ?? null, enumerable: true });
        }
    }

    /* Head and tail of a long text; chars and head are numbers of characters,
       path is where the full text is. A number is that of chars. */
    truncate(text, limit = {}) {
        const { chars, head, path } =
            typeof limit === 'number' ? { chars: limit } : limit;
        return this.call('truncate', { text, chars, head, path }).text;
    }

    /* The output of a command without escape sequences, lines as a terminal
       would show them. */
    strip(text) {
        return this.call('strip', { text }).text;
    }

    get version() {
        return this.call('version').version;
    }
}

/* Loads the module: its bytes, a compiled WebAssembly.Module, a Response, or a
   URL; by default hfsb.wasm next to this file. */
export async function load(source = new URL('hfsb.wasm', import.meta.url)) {
    if (source instanceof URL && source.protocol === 'file:')
        source = await (await import('node:fs/promises')).readFile(source);
    else if (source instanceof URL || typeof source === 'string')
        source = await fetch(source);
    if (typeof Response !== 'undefined' && source instanceof Response)
        source = await source.arrayBuffer();
    const made = await WebAssembly.instantiate(source, {});
    return new Hfsb(made.instance ?? made);
}
