// One speech: what was asked, the samples and words that have arrived, and the figures that they give.

export const RATE_HZ = 24000;

const SPEECH = 32768 * 10 ** (-54 / 20); // -54 dBFS, as in the benchmark: the dither is no speech
const WAV_HEAD_BYTES = 44;

export class Recording {
  samples = 0; // that have arrived
  complete = false; // no more will come
  whole = false; // and nothing is missing
  words = []; // { start, end } in letters of the text, { start_s, end_s } in the speech; those that have arrived
  firstMs = null; // TTFA
  heardMs = null; // the same, but played
  wallMs = null; // from the request to what arrived last
  gaps = 0; // how often the sound had to wait
  cached = false; // the server had the first audio from an equal speech before
  ran = {}; // what spoke, by its name in the headers
  files = new Map(); // by format: those that were asked for later

  #pcm = new Int16Array(RATE_HZ);
  #first = null;
  #last = null;
  #sentMs = null;

  /** `wanted` has the fields of the request. */
  constructor(wanted) {
    this.wanted = wanted;
  }

  /** The answer has begun; it was asked for at `sentMs`. */
  answered(headers, sentMs) {
    this.#sentMs = sentMs;
    this.cached = headers.get("X-Kokoro-First-Audio") === "cache";
    for (const name of ["Voice", "Variant", "Provider", "Statistics", "Fallbacks"]) {
      this.ran[name] = headers.get(`X-Kokoro-${name}`);
    }
  }

  /** `bytes` are samples of 16 bits, little-endian. */
  push(bytes) {
    this.wallMs = performance.now() - this.#sentMs;
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const count = bytes.byteLength >> 1;
    this.#makeRoom(count);
    for (let i = 0; i < count; i += 1) {
      const sample = view.getInt16(2 * i, true);
      this.#pcm[this.samples + i] = sample;
      if (Math.abs(sample) < SPEECH) continue;
      if (this.#first === null) {
        this.#first = this.samples + i;
        this.firstMs = this.wallMs;
      }
      this.#last = this.samples + i;
    }
    this.samples += count;
  }

  /** No more will come; `whole` is whether nothing is missing. */
  end(whole) {
    this.complete = true;
    this.whole = whole;
    this.#pcm = this.#pcm.slice(0, this.samples);
  }

  /** `player` plays it for the first time: when is the speech heard, and has it had to wait? */
  watch(player) {
    this.gaps = player.gaps;
    if (this.#first === null || this.heardMs !== null) return;
    const atMs = player.heardAtMs(this.#first);
    if (atMs !== null) this.heardMs = atMs - this.#sentMs;
  }

  get speaks() {
    return this.#first !== null;
  }

  get lengthS() {
    return this.samples / RATE_HZ;
  }

  /** From the first sample of speech to the last. */
  get speechS() {
    return this.speaks ? (this.#last + 1 - this.#first) / RATE_HZ : 0;
  }

  /** Samples `from` to `to`, from -1 to 1: those of them that have arrived. */
  read(from, to) {
    return Float32Array.from(this.#pcm.subarray(from, Math.min(to, this.samples)), (sample) => sample / 32768);
  }

  /** The loudest of samples `from` to `to`, from 0 to 1. */
  peak(from, to) {
    let most = 0;
    for (let i = from; i < Math.min(to, this.samples); i += 1) most = Math.max(most, Math.abs(this.#pcm[i]));
    return most / 32768;
  }

  /** What was heard, byte for byte, as a file. */
  wav() {
    const bytes = 2 * this.samples;
    const head = new DataView(new ArrayBuffer(WAV_HEAD_BYTES));
    const ascii = (at, name) => [...name].forEach((letter, i) => head.setUint8(at + i, letter.charCodeAt(0)));
    const number = (at, value) => head.setUint32(at, value, true);
    ascii(0, "RIFF");
    number(4, WAV_HEAD_BYTES - 8 + bytes);
    ascii(8, "WAVEfmt ");
    number(16, 16); // bytes of what follows, up to `data`
    number(20, 0x00010001); // PCM, one channel
    number(24, RATE_HZ);
    number(28, 2 * RATE_HZ); // bytes a second
    number(32, 0x00100002); // 2 bytes and 16 bits a sample
    ascii(36, "data");
    number(40, bytes);
    const samples = new DataView(new ArrayBuffer(bytes));
    for (let i = 0; i < this.samples; i += 1) samples.setInt16(2 * i, this.#pcm[i], true);
    return new Blob([head, samples], { type: "audio/wav" });
  }

  #makeRoom(count) {
    if (this.samples + count <= this.#pcm.length) return;
    const larger = new Int16Array(2 * (this.samples + count));
    larger.set(this.#pcm);
    this.#pcm = larger;
  }
}
