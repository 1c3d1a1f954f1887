// The Rust code, called with JSON and bytes: on the page itself, and in a worker for models.

/** The address of the compiled code, beside this script. */
export const WASM = "simulcast.wasm";

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** One instance of the compiled code. After a trap it is replaced: its memory may hold anything. */
export class Engine {
  /**
   * @param {WebAssembly.Module} module
   * @param {{size: (name: string) => number, read: (name: string, at: number, into: Uint8Array) => boolean}} files
   */
  constructor(module, files = { size: () => -1, read: () => false }) {
    this.module = module;
    this.files = files;
    this.start();
  }

  start() {
    const text = (at, length) => decoder.decode(new Uint8Array(this.own.memory.buffer, at >>> 0, length >>> 0));
    const host = {
      file_size: (name, length) => BigInt(this.files.size(text(name, length))),
      file_read: (name, length, at, into, bytes) =>
        this.files.read(text(name, length), Number(at), new Uint8Array(this.own.memory.buffer, into >>> 0, bytes >>> 0)) ? 1 : 0,
    };
    this.own = new WebAssembly.Instance(this.module, { host }).exports;
  }

  put(bytes) {
    const at = this.own.room(bytes.length) >>> 0;
    if (bytes.length && !at) throw new RangeError("the file does not fit in the memory of this page");
    new Uint8Array(this.own.memory.buffer, at, bytes.length).set(bytes);
    return at;
  }

  /** The answer to a request; `file` is the file that it is about. */
  call(request, file = new Uint8Array()) {
    try {
      const bytes = encoder.encode(JSON.stringify(request));
      const at = this.put(bytes);
      this.own.ask(at, bytes.length, this.put(file), file.length);
      const taken = (from, length) => new Uint8Array(this.own.memory.buffer, from >>> 0, length >>> 0);
      const answer = JSON.parse(decoder.decode(taken(this.own.answer_at(), this.own.answer_len())));
      const made = taken(this.own.file_at(), this.own.file_len()).slice();
      return { answer, file: made };
    } catch (error) {
      this.start();
      return { answer: { usage: `this cannot be answered: ${error.message}` }, file: new Uint8Array() };
    }
  }
}
