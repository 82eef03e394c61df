// The speech as a picture: what has been played in one colour, what is still to come in another.

const BIN_S = 0.02;
const SHOWN_AT_LEAST_S = 4; // so that a short beginning is not drawn as broad as all of it will be
const BAR_PX = 3;

export class Waveform {
  #canvas;
  #binSamples;
  #rateHz;
  #peaks = [];
  #inBin = 0;

  constructor(canvas, rateHz) {
    this.#canvas = canvas;
    this.#rateHz = rateHz;
    this.#binSamples = Math.round(BIN_S * rateHz);
  }

  clear() {
    this.#peaks = [];
    this.#inBin = 0;
    this.draw(0);
  }

  push(block) {
    for (const sample of block) {
      if (this.#inBin === 0) this.#peaks.push(0);
      const last = this.#peaks.length - 1;
      this.#peaks[last] = Math.max(this.#peaks[last], Math.abs(sample));
      this.#inBin = (this.#inBin + 1) % this.#binSamples;
    }
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
    const pen = canvas.getContext("2d");
    pen.scale(scale, scale);
    const style = getComputedStyle(canvas);
    const played = style.getPropertyValue("--accent");
    const unplayed = style.getPropertyValue("--unplayed");
    const bins = Math.max(this.#peaks.length, SHOWN_AT_LEAST_S / BIN_S);
    const loudest = this.#peaks.reduce((most, peak) => Math.max(most, peak), 0.1);
    for (let x = 0; x < width; x += BAR_PX) {
      const from = Math.floor((x / width) * bins);
      if (from >= this.#peaks.length) break;
      const to = Math.max(from + 1, Math.floor(((x + BAR_PX) / width) * bins));
      const peak = this.#peaks.slice(from, to).reduce((most, value) => Math.max(most, value), 0);
      const bar = Math.max(1, (peak / loudest) * height);
      pen.fillStyle = from * this.#binSamples < playedSamples ? played : unplayed;
      pen.fillRect(x, (height - bar) / 2, BAR_PX - 1, bar);
    }
  }
}
