// The speech as a picture: what has been played in one colour, what is still to come in another.

import { RATE_HZ } from "./recording.js";

const BIN_SAMPLES = RATE_HZ / 50;
const SHOWN_AT_LEAST_S = 4; // so that a short beginning is not drawn as broad as all of it will be
const BAR_PX = 3;

export class Waveform {
  #canvas;
  #recording = null;
  #peaks = []; // of each whole bin that has arrived

  constructor(canvas) {
    this.#canvas = canvas;
  }

  /** Shows `recording` from now on, which may still be growing, or nothing. */
  show(recording) {
    this.#recording = recording;
    this.#peaks = [];
    this.draw(0);
  }

  /** What its width stands for. */
  get shownS() {
    const { lengthS = 0, complete = false } = this.#recording ?? {};
    return complete ? lengthS : Math.max(lengthS, SHOWN_AT_LEAST_S);
  }

  describe(words) {
    this.#canvas.setAttribute("aria-label", `Waveform: ${words}`);
  }

  draw(playedSamples) {
    const canvas = this.#canvas;
    const scale = window.devicePixelRatio || 1;
    const width = canvas.clientWidth;
    const height = canvas.clientHeight;
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    if (!this.#recording) return;
    this.#takePeaks();
    const pen = canvas.getContext("2d");
    pen.scale(scale, scale);
    const style = getComputedStyle(canvas);
    const played = style.getPropertyValue("--accent");
    const unplayed = style.getPropertyValue("--unplayed");
    const bins = (this.shownS * RATE_HZ) / BIN_SAMPLES;
    const loudest = this.#peaks.reduce((most, peak) => Math.max(most, peak), 0.1);
    for (let x = 0; x < width; x += BAR_PX) {
      const from = Math.floor((x / width) * bins);
      if (from >= this.#peaks.length) break;
      const to = Math.max(from + 1, Math.floor(((x + BAR_PX) / width) * bins));
      const peak = this.#peaks.slice(from, to).reduce((most, value) => Math.max(most, value), 0);
      const bar = Math.max(1, (peak / loudest) * height);
      pen.fillStyle = from * BIN_SAMPLES < playedSamples ? played : unplayed;
      pen.fillRect(x, (height - bar) / 2, BAR_PX - 1, bar);
    }
  }

  #takePeaks() {
    const { samples, complete } = this.#recording;
    for (;;) {
      const from = this.#peaks.length * BIN_SAMPLES;
      const to = from + BIN_SAMPLES;
      if (complete ? from >= samples : to > samples) return;
      this.#peaks.push(this.#recording.peak(from, to));
    }
  }
}
