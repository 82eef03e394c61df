// The last speeches, newest first: to be played and kept again without being spoken again.

import { RATE_HZ } from "./recording.js";

const MOST = 10;
const MOST_S = 1800; // of all of them together, 86 MB; the newest stays however long it is
const SHOWN_LETTERS = 80;

export class History {
  #element;
  #recordings = [];
  #actions;

  /** `actions` are what can be done with a recording, by the words on the button. */
  constructor(element, actions) {
    this.#element = element;
    this.#actions = actions;
  }

  add(recording) {
    this.#recordings.unshift(recording);
    let samples = 0;
    this.#recordings = this.#recordings.filter((one, place) => {
      samples += one.samples;
      return place === 0 || (place < MOST && samples <= MOST_S * RATE_HZ);
    });
    this.#element.replaceChildren(...this.#recordings.map((one) => this.#item(one)));
  }

  #item(recording) {
    const item = document.createElement("li");
    const text = recording.wanted.input.trim().replace(/\s+/g, " ");
    const beginning = text.length > SHOWN_LETTERS ? `${text.slice(0, SHOWN_LETTERS)} …` : text;
    const said = document.createElement("div");
    const about = document.createElement("div");
    about.className = "quiet";
    about.textContent = `${recording.ran.Voice}, ${recording.speechS.toFixed(1)} s`;
    const buttons = document.createElement("div");
    buttons.className = "buttons";
    for (const [words, act] of Object.entries(this.#actions)) {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "plain";
      button.textContent = words;
      button.setAttribute("aria-label", `${words}: ${beginning}`);
      button.addEventListener("click", () => act(recording));
      buttons.append(button);
    }
    said.append(beginning, about);
    item.append(said, buttons);
    return item;
  }
}
