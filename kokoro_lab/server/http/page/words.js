// The text that is spoken: each word is marked while it is heard, and a click on it goes there.

export class Words {
  #element;
  #letters = []; // of the text, as the server counts them
  #laid = 0; // of these, in front of `#rest`
  #rest = null; // the text behind the last word that has a time
  #timed = []; // { startS, endS, span }
  #now = null; // the one that is marked

  /** `onSeek` is told, in seconds, where a click or key goes. */
  constructor(element, onSeek) {
    this.#element = element;
    element.addEventListener("click", (event) => {
      const word = this.#timed.find(({ span }) => span === event.target);
      if (word) onSeek(word.startS);
    });
    element.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!step || this.#timed.length === 0) return;
      event.preventDefault();
      const at = this.#timed.indexOf(this.#now) + step;
      onSeek(this.#timed[Math.min(Math.max(at, 0), this.#timed.length - 1)].startS);
    });
  }

  /** Shows `recording`, with the words that have a time by now. */
  show(recording) {
    this.#letters = [...recording.wanted.input];
    this.#laid = 0;
    this.#timed = [];
    this.#now = null;
    this.#rest = document.createTextNode(recording.wanted.input);
    this.#element.replaceChildren(this.#rest);
    this.#element.hidden = false;
    this.add(recording.words);
  }

  /** The times of further words. */
  add(words) {
    for (const { start, end, start_s: startS, end_s: endS } of words) {
      if (start < this.#laid) { // "$3" is two words in one place
        this.#timed.at(-1).endS = endS;
        continue;
      }
      const span = document.createElement("span");
      span.textContent = this.#letters.slice(start, end).join("");
      this.#rest.before(this.#letters.slice(this.#laid, start).join(""), span);
      this.#laid = end;
      this.#timed.push({ startS, endS, span });
    }
    this.#rest.data = this.#letters.slice(this.#laid).join("");
  }

  /** Marks the word that is heard at `playedS`; between two words, the one before. */
  mark(playedS) {
    const now = this.#timed.findLast(({ startS }) => startS <= playedS) ?? null;
    if (now === this.#now) return;
    this.#now?.span.classList.remove("now");
    this.#now = now;
    if (!now) return;
    now.span.classList.add("now");
    const { offsetTop, offsetHeight } = now.span;
    const box = this.#element; // scrolls itself, and not the page
    const below = offsetTop + offsetHeight - box.scrollTop - box.clientHeight;
    if (below > 0 || offsetTop < box.scrollTop) box.scrollTop = offsetTop - box.clientHeight / 3;
  }
}
