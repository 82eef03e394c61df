// Sounds that are compared, in step: all of them run, and one is heard. To switch is to cross-fade between two that
// are at the same place, so that nothing begins again, and nothing clicks.

const FADE_S = 0.012;
const LEAD_S = 0.02; // what is scheduled closer than this may already be too late for the device

export class Switch {
  #context;
  #buffers = new Map();
  #running = new Map(); // name → { source, gain }
  #startS = 0;
  #sinceS = 0;
  #heardS = {};

  /** `changed` is called when another one is heard, or none. */
  constructor(rateHz, changed) {
    // At the rate of the sounds, so that the browser resamples what comes out, and all alike
    this.#context = new AudioContext({ sampleRate: rateHz, latencyHint: "interactive" });
    this.changed = changed;
    this.playing = null;
  }

  /** Sounds of one length, by their names; what was there before is gone. */
  async load(urls) {
    this.stop();
    const load = async (url) => {
      const answer = await fetch(url, { cache: "no-store" });
      if (!answer.ok) throw new Error(`${answer.status} ${answer.statusText}`);
      return this.#context.decodeAudioData(await answer.arrayBuffer());
    };
    const names = Object.keys(urls);
    const buffers = await Promise.all(names.map((name) => load(urls[name])));
    this.#buffers = new Map(names.map((name, at) => [name, buffers[at]]));
    this.#heardS = Object.fromEntries(names.map((name) => [name, 0]));
  }

  /** Begin with `name`, or switch to it. */
  play(name) {
    if (!this.#buffers.has(name) || this.playing === name) return;
    this.#context.resume();
    const atS = this.#context.currentTime + LEAD_S;
    if (this.playing === null) this.#start(atS);
    else this.#fade(this.playing, 0, atS);
    this.#heardS = this.#heardUntil(atS);
    this.#sinceS = atS;
    this.playing = name;
    this.#fade(name, 1, atS);
    this.changed();
  }

  stop() {
    if (this.playing === null) return;
    const atS = this.#context.currentTime + LEAD_S;
    this.#heardS = this.heardS;
    this.#fade(this.playing, 0, atS);
    for (const { source } of this.#running.values()) {
      source.onended = null;
      source.stop(atS + FADE_S);
    }
    this.playing = null;
    this.changed();
  }

  /** Seconds of each that were heard. */
  get heardS() {
    return this.#heardUntil(this.#context.currentTime);
  }

  get positionS() {
    return this.playing === null ? 0 : Math.max(0, this.#context.currentTime - this.#startS);
  }

  get lengthS() {
    return Math.max(0, ...[...this.#buffers.values()].map((buffer) => buffer.duration));
  }

  #heardUntil(atS) {
    if (this.playing === null) return { ...this.#heardS };
    const before = this.#heardS[this.playing];
    return { ...this.#heardS, [this.playing]: before + Math.max(0, atS - this.#sinceS) };
  }

  #start(atS) {
    this.#startS = atS;
    for (const [name, buffer] of this.#buffers) {
      const source = this.#context.createBufferSource();
      const gain = this.#context.createGain();
      source.buffer = buffer;
      gain.gain.value = 0;
      source.connect(gain).connect(this.#context.destination);
      source.start(atS);
      source.onended = () => this.stop();
      this.#running.set(name, { source, gain });
    }
  }

  #fade(name, to, atS) {
    const { gain } = this.#running.get(name).gain;
    gain.cancelScheduledValues(atS);
    gain.setValueAtTime(1 - to, atS);
    gain.linearRampToValueAtTime(to, atS + FADE_S);
  }
}
