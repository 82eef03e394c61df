// Blocks of samples to sound without a gap: each is scheduled to begin on the very sample at which the last ends.

const PRE_BUFFER_S = 0.1; // what a late block may be late by; the same as in the benchmark's underruns
const AHEAD_S = 10; // scheduled at a time; the rest waits as samples, so that a long text does not fill the memory
const FADE_S = 0.01; // a stop in the middle of a wave would click
const LEAD_S = 0.02; // what is scheduled closer than this may already be too late for the device

/** Plays one speech, once. */
export class Player {
  #context;
  #gain;
  #rateHz;
  #waiting = [];
  #sounding = new Set();
  #scheduledSamples = 0;
  #receivedSamples = 0;
  #starts = []; // of each run without a gap: { sample, frame }
  #complete = false;
  #stopped = false;
  #over = false;
  #finish;

  /** Settles when the last sample has been played, or `stop` was called. */
  finished = new Promise((resolve) => { this.#finish = resolve; });
  gaps = 0;

  /** To be made in the handler of a click or key, or a browser may keep it silent. */
  constructor(rateHz) {
    this.#rateHz = rateHz;
    // At the rate of the speech, so that the browser resamples the whole and not each block by itself
    this.#context = new AudioContext({ sampleRate: rateHz, latencyHint: "interactive" });
    this.#gain = this.#context.createGain();
    this.#gain.connect(this.#context.destination);
    this.#context.resume();
  }

  push(block) {
    if (this.#over) return;
    this.#waiting.push(block);
    this.#receivedSamples += block.length;
    this.#schedule();
  }

  /** No more will come. */
  end() {
    this.#complete = true;
    this.#schedule();
    this.#finishIfDone();
  }

  /** Silence within `FADE_S`, and for good. */
  stop() {
    if (this.#over) return;
    this.#stopped = true;
    const { currentTime } = this.#context;
    this.#gain.gain.setValueAtTime(1, currentTime);
    this.#gain.gain.linearRampToValueAtTime(0, currentTime + FADE_S);
    for (const source of this.#sounding) source.stop(currentTime + FADE_S);
    this.#close();
  }

  /** How many samples of the speech have been played. */
  get playedSamples() {
    if (this.#over && !this.#stopped) return this.#receivedSamples;
    const frame = this.#context.currentTime * this.#rateHz;
    const run = this.#starts.findLast((start) => start.frame <= frame);
    return run ? Math.min(run.sample + frame - run.frame, this.#scheduledSamples) : 0;
  }

  /** When `sample`, which has been scheduled, is heard, by `performance.now` in ms; null before that. */
  heardAtMs(sample) {
    const run = this.#starts.findLast((start) => start.sample <= sample);
    if (!run || sample >= this.#scheduledSamples || this.#context.state !== "running") return null;
    const atS = (run.frame + sample - run.sample) / this.#rateHz;
    const { currentTime, outputLatency = 0 } = this.#context;
    return performance.now() + 1000 * (atS - currentTime + outputLatency);
  }

  #schedule() {
    if (this.#over) return;
    const behind = this.#underrun();
    if (this.#starts.length === 0 || behind) {
      const waitingS = this.#waiting.reduce((sum, block) => sum + block.length, 0) / this.#rateHz;
      if (waitingS === 0 || (waitingS < PRE_BUFFER_S && !this.#complete)) return;
      if (behind) this.gaps += 1;
      const frame = Math.ceil((this.#context.currentTime + LEAD_S) * this.#rateHz);
      this.#starts.push({ sample: this.#scheduledSamples, frame });
    }
    while (this.#waiting.length > 0 && this.#aheadS() < AHEAD_S) this.#start(this.#waiting.shift());
  }

  #nextFrame() {
    const { sample, frame } = this.#starts.at(-1);
    return frame + this.#scheduledSamples - sample;
  }

  #aheadS() {
    return this.#nextFrame() / this.#rateHz - this.#context.currentTime;
  }

  #underrun() {
    return this.#starts.length > 0 && this.#aheadS() <= LEAD_S;
  }

  #start(block) {
    const buffer = this.#context.createBuffer(1, block.length, this.#rateHz);
    buffer.copyToChannel(block, 0);
    const source = this.#context.createBufferSource();
    source.buffer = buffer;
    source.connect(this.#gain);
    source.onended = () => {
      this.#sounding.delete(source);
      this.#schedule();
      this.#finishIfDone();
    };
    source.start(this.#nextFrame() / this.#rateHz);
    this.#sounding.add(source);
    this.#scheduledSamples += block.length;
  }

  #finishIfDone() {
    if (this.#complete && this.#waiting.length === 0 && this.#sounding.size === 0) this.#close();
  }

  #close() {
    if (this.#over) return;
    this.#over = true;
    this.#waiting = [];
    // The device still holds a little of the end, or of the fade
    setTimeout(() => this.#context.close(), 1000 * FADE_S + 200);
    this.#finish();
  }
}
