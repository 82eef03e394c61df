// The form, the keys and the figures. One speech at a time: a new one ends the one before.

import { Player } from "./player.js";
import { ask, RATE_HZ, samples, SpeechError } from "./speech.js";
import { Waveform } from "./waveform.js";

const SPEECH = 10 ** (-54 / 20); // -54 dBFS, as in the benchmark: the primer and the dither are no speech
const REDRAW_MS = 50;

const $ = (id) => document.getElementById(id);
const waveform = new Waveform($("waveform"), RATE_HZ);
const FIELDS = { input: "text", voice: "voice", speed: "speed" };
const LANGUAGES = new Intl.DisplayNames(["en"], { type: "language" });

let current = null; // the speech under way: { abort, player }
let playedSamples = 0; // of the speech that the waveform shows

/** Where speech begins and ends in what has arrived, and when that was. */
class Figures {
  samples = 0;
  first = null;
  last = null;
  ttfaMs = null;
  wallMs = null;

  constructor(sentMs, kept) {
    this.sentMs = sentMs;
    this.kept = kept; // the server had this first audio from an equal speech before
  }

  push(block) {
    this.wallMs = performance.now() - this.sentMs;
    for (let i = 0; i < block.length; i += 1) {
      if (Math.abs(block[i]) >= SPEECH) {
        if (this.first === null) {
          this.first = this.samples + i;
          this.ttfaMs = this.wallMs;
        }
        this.last = this.samples + i;
      }
    }
    this.samples += block.length;
  }

  get speechS() {
    return this.first === null ? 0 : (this.last + 1 - this.first) / RATE_HZ;
  }
}

async function speak() {
  current?.stop();
  const controller = new AbortController();
  const player = new Player(RATE_HZ); // here, while the key or click still counts as one
  const mine = {
    player,
    stop() {
      controller.abort();
      player.stop();
    },
  };
  current = mine;
  clear();
  $("stop").disabled = false;
  say("Waiting for the first sound …");
  const redraw = setInterval(() => draw(player), REDRAW_MS);
  let failure = null;
  try {
    await receive(mine, controller.signal);
  } catch (error) {
    failure = error; // shown when what has arrived before it has been heard
  }
  player.end(); // a speech that broke off is played as far as it came
  await player.finished;
  clearInterval(redraw);
  if (current !== mine) return; // stopped, or followed by another one, which has said so
  idle();
  draw(player);
  if (failure) showError(failure);
  else say(`Done: ${$("length").textContent} of speech.`);
}

async function receive(mine, signal) {
  const { response, sentMs } = await ask(asked(), signal, (waitS) => {
    say(`The server is busy; asking again in ${waitS} s.`);
  });
  showWhatRan(response.headers);
  const figures = new Figures(sentMs, response.headers.get("X-Kokoro-First-Audio") === "cache");
  for await (const block of samples(response, signal)) {
    if (current !== mine) return;
    const silentSoFar = figures.first === null;
    figures.push(block);
    mine.player.push(block);
    waveform.push(block);
    if (silentSoFar && figures.first !== null) say("Speaking.");
    showFigures(figures, mine.player);
  }
  if (figures.first === null) throw new SpeechError("The server sent no speech.");
  waveform.describe(`${figures.speechS.toFixed(1)} seconds of speech.`);
  mine.player.end();
  await mine.player.finished;
  if (current === mine) showFigures(figures, mine.player); // gaps come to light while it plays
}

function stop() {
  if (!current) return;
  draw(current.player); // while the player still knows how far it came
  current.stop();
  idle();
  say("Stopped.");
}

function draw(player) {
  playedSamples = player.playedSamples;
  waveform.draw(playedSamples);
}

function idle() {
  current = null;
  const focused = document.activeElement === $("stop");
  $("stop").disabled = true;
  if (focused) $("speak").focus(); // a button that is disabled would lose it
}

function asked() {
  if ($("speed").validity.badInput) throw new SpeechError("The speed is not a number.", { field: "speed" });
  const speed = $("speed").value === "" ? null : $("speed").valueAsNumber;
  return { text: $("text").value, voice: $("voice").value, speed, key: $("key").value };
}

function say(words) {
  $("state").textContent = words;
}

function clear() {
  $("error").textContent = "";
  for (const id of Object.values(FIELDS).concat("key")) $(id).removeAttribute("aria-invalid");
  for (const id of ["ttfa", "heard", "rtf", "length", "gaps"]) $(id).textContent = "–";
  $("ran").textContent = "";
  waveform.clear();
  waveform.describe("nothing has been spoken yet.");
}

function showFigures(figures, player) {
  if (figures.first === null) return;
  $("ttfa").textContent = `${Math.round(figures.ttfaMs)} ms${figures.kept ? ", from the cache" : ""}`;
  const heardMs = $("heard").textContent === "–" ? player.heardAtMs(figures.first) : null;
  if (heardMs !== null) $("heard").textContent = `${Math.round(heardMs - figures.sentMs)} ms`;
  $("rtf").textContent = (figures.wallMs / 1000 / figures.speechS).toFixed(3);
  $("length").textContent = `${figures.speechS.toFixed(2)} s`;
  $("gaps").textContent = String(player.gaps);
}

function showWhatRan(headers) {
  const parts = [headers.get("X-Kokoro-Voice"), headers.get("X-Kokoro-Variant"), headers.get("X-Kokoro-Provider")];
  const fallbacks = headers.get("X-Kokoro-Fallbacks");
  if (fallbacks) parts.push(`substituted: ${fallbacks}`);
  $("ran").textContent = parts.filter(Boolean).join(", ");
}

function showError(error) {
  say("");
  $("error").textContent = error instanceof SpeechError ? error.message : `This page failed: ${error}`;
  const wrong = error.status === 401 ? "key" : FIELDS[error.field];
  if (!wrong) return;
  if (wrong === "key") $("access").open = true;
  $(wrong).setAttribute("aria-invalid", "true");
  $(wrong).focus();
}

async function listVoices() {
  const { voices } = await (await fetch("v1/audio/voices")).json();
  const groups = new Map();
  for (const { id, name, language } of voices) {
    if (!groups.has(language)) {
      const group = document.createElement("optgroup");
      group.label = LANGUAGES.of(language);
      groups.set(language, group);
      $("voice").append(group);
    }
    groups.get(language).append(new Option(name, id));
  }
}

async function showServer() {
  const health = await (await fetch("health")).json();
  const { version, variant, active_provider: provider, status, reason } = health;
  const warm = { ok: "ready", failed: "could not warm up" }[status] ?? "warming up: the first speech will take longer";
  $("server").textContent = `Version ${version}, ${variant} on ${provider}, ${warm}.${reason ? ` ${reason}` : ""}`;
}

$("form").addEventListener("submit", (event) => {
  event.preventDefault();
  speak();
});
$("text").addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  speak();
});
$("stop").addEventListener("click", stop);
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") stop();
});
window.addEventListener("resize", () => waveform.draw(playedSamples));

listVoices().catch(() => { $("error").textContent = "The list of voices cannot be had; the server’s own will speak."; });
showServer().catch(() => { $("server").textContent = "The server does not answer."; });
waveform.clear();
