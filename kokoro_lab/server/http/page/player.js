// Samples to sound without a gap: each block is scheduled to begin on the very sample at which the last ends.

import { RATE_HZ } from "./recording.js";

const PRE_BUFFER_S = 0.1; // what a late block may be late by; the same as in the benchmark's underruns
const BLOCK_S = 0.5; // at most
const AHEAD_S = 10; // scheduled at a time, so that a long text does not fill the memory twice
const FADE_S = 0.01; // a stop in the middle of a wave would click
const LEAD_S = 0.02; // what is scheduled closer than this may already be too late for the device

/** Plays a recording, which may still be growing, once. */
export class Player {
  #context;
  #gain; // of the run under way
  #recording;
  #from; // where the run under way begins
  #next; // the first sample that is not scheduled
  #starts = []; // of each run without a gap: { sample, frame }
  #sounding = new Set();
  #stopped = false;
  #over = false;
  #finish;

  /** Settles when the last sample has been played, or `stop` was called. */
  finished = new Promise((resolve) => { this.#finish = resolve; });
  gaps = 0;
  paused = false;

  /** From sample `from`. To be made in the handler of a click or key, or a browser may keep it silent. */
  constructor(recording, from = 0) {
    this.#recording = recording;
    this.#from = this.#next = from;
    // At the rate of the speech, so that the browser resamples the whole and not each block by itself
    this.#context = new AudioContext({ sampleRate: RATE_HZ, latencyHint: "interactive" });
    this.#begin();
    this.#context.resume();
    this.more();
  }

  /** More of the recording has come, or its end. */
  more() {
    this.#schedule();
    this.#finishIfDone();
  }

  /** Go on from there. */
  seek(sample) {
    if (this.#over) return;
    this.#fade();
    this.#sounding.clear();
    this.#starts = [];
    this.#from = this.#next = sample;
    this.#begin();
    this.more();
  }

  /** Silence, until `resume`. */
  pause() {
    this.#context.suspend();
    this.paused = true;
  }

  resume() {
    this.#context.resume();
    this.paused = false;
  }

  /** Silence within `FADE_S`, and for good. */
  stop() {
    if (this.#over) return;
    this.#stopped = true;
    this.#fade();
    this.#close();
  }

  /** How many samples have been heard. */
  get playedSamples() {
    if (this.#over && !this.#stopped) return this.#recording.samples;
    const { currentTime, outputLatency = 0 } = this.#context;
    const frame = (currentTime - outputLatency) * RATE_HZ;
    const at = this.#starts.findLastIndex((start) => start.frame <= frame);
    if (at < 0) return this.#from;
    const run = this.#starts[at];
    const end = this.#starts[at + 1]?.sample ?? this.#next; // the run behind a gap sounds only in a moment
    return Math.min(run.sample + frame - run.frame, end);
  }

  /** When `sample`, which has been scheduled, is heard, by `performance.now` in ms; null before that. */
  heardAtMs(sample) {
    const run = this.#starts.findLast((start) => start.sample <= sample);
    if (!run || sample >= this.#next || this.#context.state !== "running") return null;
    const atS = (run.frame + sample - run.sample) / RATE_HZ;
    const { currentTime, outputLatency = 0 } = this.#context;
    return performance.now() + 1000 * (atS - currentTime + outputLatency);
  }

  #begin() {
    this.#gain = this.#context.createGain();
    this.#gain.connect(this.#context.destination);
  }

  #fade() {
    const { currentTime } = this.#context;
    this.#gain.gain.setValueAtTime(1, currentTime);
    this.#gain.gain.linearRampToValueAtTime(0, currentTime + FADE_S);
    for (const source of this.#sounding) source.stop(currentTime + FADE_S);
  }

  #schedule() {
    if (this.#over) return;
    const { samples, complete } = this.#recording;
    const behind = this.#starts.length > 0 && this.#aheadS() <= LEAD_S;
    if (this.#starts.length === 0 || behind) {
      const waitingS = (samples - this.#next) / RATE_HZ;
      if (waitingS <= 0 || (waitingS < PRE_BUFFER_S && !complete)) return;
      if (behind) this.gaps += 1;
      const frame = Math.ceil((this.#context.currentTime + LEAD_S) * RATE_HZ);
      this.#starts.push({ sample: this.#next, frame });
    }
    while (this.#next < samples && this.#aheadS() < AHEAD_S) {
      this.#start(this.#recording.read(this.#next, this.#next + BLOCK_S * RATE_HZ));
    }
  }

  #nextFrame() {
    const { sample, frame } = this.#starts.at(-1);
    return frame + this.#next - sample;
  }

  #aheadS() {
    return this.#nextFrame() / RATE_HZ - this.#context.currentTime;
  }

  #start(block) {
    const buffer = this.#context.createBuffer(1, block.length, RATE_HZ);
    buffer.copyToChannel(block, 0);
    const source = this.#context.createBufferSource();
    source.buffer = buffer;
    source.connect(this.#gain);
    source.onended = () => {
      if (!this.#sounding.delete(source)) return; // of a run before a seek
      this.more();
    };
    source.start(this.#nextFrame() / RATE_HZ);
    this.#sounding.add(source);
    this.#next += block.length;
  }

  #finishIfDone() {
    const { samples, complete } = this.#recording;
    if (complete && this.#next >= samples && this.#sounding.size === 0) this.#close();
  }

  #close() {
    if (this.#over) return;
    this.#over = true;
    // The device still holds a little of the end, or of the fade
    setTimeout(() => this.#context.close(), 1000 * FADE_S + 200);
    this.#finish();
  }
}
