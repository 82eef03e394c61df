// What the fields, keys and buttons do. One speech at a time: a new one ends the one before.

import { forget, keep, kept } from "./choices.js";
import { download } from "./download.js";
import { History } from "./history.js";
import { Player } from "./player.js";
import { RATE_HZ, Recording } from "./recording.js";
import { ask, events, SpeechError } from "./request.js";
import { isSample, sampleOf, SAMPLES } from "./samples.js";
import { allVoices, blend, languageName, list, offer } from "./voices.js";
import { Waveform } from "./waveform.js";
import { Words } from "./words.js";

const REDRAW_MS = 30;
const WARMING_MS = 1000; // between two looks at a server that is not ready yet
const FIELDS = { input: "text", voice: "voice", speed: "speed", language: "language" }; // by the request's names
const KEPT = ["text", "voice", "language", "speed", "other", "share", "ssml", "format"];
const IN_MORE = ["language", "key"]; // of the fields that can be wrong

const $ = (id) => document.getElementById(id);
const waveform = new Waveform($("waveform"));
const words = new Words($("words"), seek);
const history = new History($("history"), { "Play again": playAgain, Download: save });

let shown = null; // the recording on display
let asking = null; // the AbortController of the speech under way, until it has been heard
let player = null; // what plays `shown`, if anything does
let playedSamples = 0; // of `shown`
let voices = [];
let ownText = ""; // what a sample has taken the place of
let restored = false; // whether the fields hold what was kept, so that they may be kept in turn

// ------------------------------------------------------------------------------------- speak and play

async function speak() {
  leave();
  const mine = (asking = new AbortController());
  const recording = new Recording(wanted());
  show(recording);
  say("Waiting for the first sound …");
  const heard = play(); // here, while the key or click still counts as one
  let failure = null;
  try {
    await receive(recording, mine.signal);
  } catch (error) {
    failure = error; // shown when what has arrived before it has been heard
  }
  recording.end(failure === null);
  if (shown === recording) draw(); // its length is known
  if (asking === mine) player.more(); // a speech that broke off is played as far as it came
  if (recording.whole) arrived(recording);
  if (!(await heard) || asking !== mine) return; // stopped, or followed by another one, which has said so
  asking = null;
  idle();
  if (failure) showError(failure);
  else say(`Done: ${recording.speechS.toFixed(1)} s of speech.`);
}

async function receive(recording, signal) {
  const { response, sentMs } = await ask(recording.wanted, $("key").value, signal, (waitS) => {
    say(`The server is busy; asking again in ${waitS} s.`);
  });
  recording.answered(response.headers, sentMs);
  for await (const event of events(response, signal)) {
    signal.throwIfAborted(); // what has arrived before a stop may still come
    if (event.words) {
      recording.words.push(...event.words);
      words.add(event.words);
      continue;
    }
    const silentSoFar = !recording.speaks;
    recording.push(event.audio);
    player.more();
    if (silentSoFar && recording.speaks) say(recording.cached ? "Speaking; its beginning was cached." : "Speaking.");
  }
  if (!recording.speaks) throw new SpeechError("The server sent no speech.");
}

/** All of it is here, though it may not have been heard yet. */
function arrived(recording) {
  history.add(recording);
  $("last").hidden = false;
  $("download").disabled = false;
}

/** Plays `shown` from a sample to its end. Whether it came there: it may be stopped before, or another one follow. */
async function play(from = 0) {
  const mine = (player = new Player(shown, from));
  for (const id of ["stop", "pause"]) $(id).disabled = false;
  showPaused();
  const redraw = setInterval(draw, REDRAW_MS);
  await mine.finished;
  clearInterval(redraw);
  if (player !== mine) return false;
  draw();
  player = null;
  return true;
}

/** Speaks nothing anew: `recording` is here. */
async function playAgain(recording, from = 0) {
  leave();
  if (recording !== shown) show(recording);
  say("Playing again, from this page.");
  if (!(await play(from))) return;
  idle();
  say("Done.");
}

function seek(second) {
  if (!shown?.samples) return;
  const sample = Math.min(Math.round(second * RATE_HZ), shown.samples - 1);
  if (player) player.seek(sample);
  else playAgain(shown, sample);
  draw();
}

function togglePause() {
  if (!player) {
    if (shown?.samples) playAgain(shown);
    return;
  }
  if (player.paused) player.resume();
  else player.pause();
  showPaused();
  say(player.paused ? "Paused." : "Speaking.");
}

function stop() {
  if (!player) return;
  leave();
  idle();
  say(shown.whole ? "Stopped." : "Stopped. What had not arrived is not kept.");
}

/** Ends what is asked for or played, and leaves on display what was heard of it. */
function leave() {
  if (player) draw(); // while it still knows how far it came
  asking?.abort();
  player?.stop();
  asking = player = null;
}

// ------------------------------------------------------------------------------------------ what is shown

function show(recording) {
  shown = recording;
  playedSamples = 0;
  $("error").textContent = "";
  for (const id of [...Object.values(FIELDS), "key"]) $(id).removeAttribute("aria-invalid");
  waveform.show(recording);
  waveform.describe("nothing has arrived yet.");
  words.show(recording);
  $("result").hidden = false;
  $("download").disabled = !recording.whole;
  draw();
}

function draw() {
  if (player) playedSamples = player.playedSamples;
  if (asking && player) shown.watch(player);
  waveform.draw(playedSamples);
  const playedS = playedSamples / RATE_HZ;
  words.mark(playedSamples > 0 ? playedS : -1);
  const position = $("position");
  position.disabled = shown.samples === 0;
  position.max = waveform.shownS || 1;
  position.value = playedS;
  position.setAttribute("aria-valuetext", `${Math.floor(playedS)} of ${Math.ceil(shown.lengthS)} seconds`);
  showFigures();
}

function idle() {
  const lost = [$("stop"), $("pause")].includes(document.activeElement);
  for (const id of ["stop", "pause"]) $(id).disabled = true;
  if (lost) $("speak").focus(); // a button that is disabled would lose it
  $("pause").textContent = "Pause";
  const playedS = (playedSamples / RATE_HZ).toFixed(1);
  waveform.describe(`${shown.lengthS.toFixed(1)} seconds of speech, ${playedS} of them played.`);
}

function showPaused() {
  $("pause").textContent = player.paused ? "Resume" : "Pause";
}

function say(sentence) {
  $("state").textContent = sentence;
}

function showFigures() {
  const { firstMs, heardMs, wallMs, speechS, gaps, cached, whole, ran } = shown;
  if (!shown.speaks) {
    for (const id of ["ttfa", "heard", "rtf", "length", "gaps", "ran", "summary"]) $(id).textContent = "";
    return;
  }
  const soon = `${((heardMs ?? firstMs) / 1000).toFixed(2)} s`;
  const from = cached ? " (cached: the server still had its beginning from the same request)" : "";
  const pace = whole ? ` Made ${(speechS / (wallMs / 1000)).toFixed(1)} times as fast as it is spoken.` : "";
  const waits = gaps ? ` The sound had to wait ${gaps} ${gaps === 1 ? "time" : "times"}.` : "";
  set("summary", `${speechS.toFixed(1)} s of speech by ${ran.Voice}, heard after ${soon}${from}.${pace}${waits}`);
  set("ttfa", `${Math.round(firstMs)} ms${cached ? ", cached" : ""}`);
  set("heard", heardMs === null ? "–" : `${Math.round(heardMs)} ms${cached ? ", cached" : ""}`);
  set("rtf", (wallMs / 1000 / speechS).toFixed(3));
  set("length", `${speechS.toFixed(2)} s`);
  set("gaps", String(gaps));
  const { Voice, Variant, Provider, Statistics, Fallbacks } = ran;
  const parts = [Voice, Variant, Provider, Statistics && `${Statistics} statistics`];
  set("ran", [...parts, Fallbacks && `substituted: ${Fallbacks}`].filter(Boolean).join(", "));
}

/** Only what changes is written, for whoever selects or reads it. */
function set(id, sentence) {
  if ($(id).textContent !== sentence) $(id).textContent = sentence;
}

function showError(error) {
  say("");
  $("error").textContent = error instanceof SpeechError ? error.message : `This page failed: ${error}`;
  const wrong = error.status === 401 ? "key" : FIELDS[error.field];
  if (!wrong) return;
  if (IN_MORE.includes(wrong)) $("more").open = true;
  $(wrong).setAttribute("aria-invalid", "true");
  $(wrong).focus();
}

async function save(recording) {
  const format = $("format").value;
  try {
    say("Preparing the file …");
    await download(recording, format, $("key").value);
    say("The file is in your downloads.");
  } catch (error) {
    showError(error);
  }
}

// -------------------------------------------------------------------------------------------- the fields

/** The fields of the request; what is not given is the server's to choose. */
function wanted() {
  const voice = blend($("voice").value, $("other").value, Number($("share").value));
  return {
    input: $("text").value,
    response_format: "pcm",
    timestamps: true,
    speed: $("speed").valueAsNumber,
    ...(voice && { voice }),
    ...($("language").value && { language: $("language").value }),
    ...($("ssml").checked && { input_format: "ssml" }),
  };
}

/** Whatever has changed: what depends on it follows, and it is kept. */
function changed() {
  const speed = `${$("speed").valueAsNumber.toFixed(2)} ×`;
  $("speed-said").textContent = speed;
  $("speed").setAttribute("aria-valuetext", speed);
  for (const id of ["voice", "other"]) offer($(id), voices, $("language").value);
  const first = $("voice").value;
  const share = Number($("share").value);
  $("other").disabled = !first;
  if (!first) $("other").value = "";
  const other = $("other").value;
  $("share").disabled = !other;
  $("share").setAttribute("aria-valuetext", `${10 * share} %`);
  $("mixed").textContent = other
    ? `${100 - 10 * share} % ${first}, ${10 * share} % ${other}: sent as ${blend(first, other, share)}`
    : first ? "" : "Choose a voice first, and another one to mix it with.";
  if (!restored) return;
  keep(Object.fromEntries(KEPT.map((id) => [id, $(id).type === "checkbox" ? $(id).checked : $(id).value])));
}

/** The text is now `text`; `sample` is its place among the samples, or "". */
function setText(text, sample = "") {
  if (!isSample($("text").value)) ownText = $("text").value;
  $("text").value = text;
  $("sample").value = sample;
  changed();
}

/** A text that nobody has written goes with the voice. */
function followVoice() {
  const tag = $("language").value || voices.find(({ id }) => id === $("voice").value)?.language;
  const sample = tag && sampleOf(tag);
  if (sample && isSample($("text").value) && SAMPLES[$("sample").value]?.language !== sample.language) {
    setText(sample.text, String(SAMPLES.indexOf(sample)));
  }
}

async function readFile(file) {
  if (!file) return;
  if (file.type && !/^text\/|xml/.test(file.type)) {
    showError(new SpeechError(`${file.name} is no text file.`, { field: "input" }));
    return;
  }
  setText(await file.text());
  $("ssml").checked = /\.(ssml|xml)$/i.test(file.name);
  changed();
  say(`${file.name} is in the field.`);
}

async function listVoices() {
  voices = await allVoices();
  for (const id of ["voice", "other"]) list($(id), voices);
  for (const tag of new Set(voices.map(({ language }) => language).filter(Boolean))) {
    $("language").append(new Option(languageName(tag), tag));
  }
  const unread = voices.filter((voice) => voice.unread);
  if (unread.length === 0) return;
  const reasons = [...new Set(unread.map((voice) => voice.unread))].join("; ");
  $("voices").textContent = `${unread.length} voices can be chosen only once a language is named here, since their own `
    + `cannot be read: ${reasons}.`;
}

/** Puts what was kept into fields; a voice that is no longer there is the server's own. */
function restore(fields = KEPT) {
  const choices = { text: SAMPLES[0].text, ...kept() };
  for (const id of fields.filter((field) => field in choices)) {
    if ($(id).type === "checkbox") $(id).checked = choices[id];
    else $(id).value = choices[id];
    if ($(id).selectedIndex === -1) $(id).selectedIndex = 0;
  }
  const sample = SAMPLES.findIndex(({ text }) => text === $("text").value);
  $("sample").value = sample < 0 ? "" : String(sample);
  if (choices.other || choices.ssml) $("more").open = true; // never closed: somebody may be in it
  changed();
}

async function showServer() {
  const health = await (await fetch("health")).json();
  const { version, variant, active_provider: provider, status, reason } = health;
  const warm = { ok: "ready", failed: "could not warm up" }[status] ?? "warming up: the first speech will take longer";
  $("server").textContent = `The server is ${warm}.${reason ? ` ${reason}` : ""}`;
  $("version").textContent = `kokoro-lab ${version}, ${variant} on ${provider}`;
  if (!["ok", "failed"].includes(status)) setTimeout(lookAtServer, WARMING_MS);
}

function lookAtServer() {
  showServer().catch(() => { $("server").textContent = "The server does not answer."; });
}

// --------------------------------------------------------------------------------------- keys and buttons

$("form").addEventListener("submit", (event) => {
  event.preventDefault();
  speak();
});
document.addEventListener("keydown", (event) => {
  const { key, target } = event;
  const field = target.closest("textarea, select, button, summary, a, input:not([type=range])");
  // On a phone, Enter is the only key for a new line
  const enter = target === $("text") && !event.shiftKey && !matchMedia("(pointer: coarse)").matches;
  if (event.isComposing) return;
  if (key === "Escape") stop();
  else if (key === "Enter" && (enter || event.ctrlKey || event.metaKey)) speak();
  else if (key === " " && !field) togglePause();
  else return;
  event.preventDefault();
});
$("stop").addEventListener("click", stop);
$("pause").addEventListener("click", togglePause);
$("download").addEventListener("click", () => save(shown));
$("position").addEventListener("input", () => seek($("position").valueAsNumber));
$("normal").addEventListener("click", () => {
  $("speed").value = 1;
  changed();
});
$("sample").addEventListener("change", () => {
  const place = $("sample").value;
  setText(SAMPLES[place]?.text ?? ownText, place);
});
$("text").addEventListener("input", () => { $("sample").value = ""; });
for (const id of ["voice", "language"]) $(id).addEventListener("change", followVoice);
$("form").addEventListener("input", changed);
$("format").addEventListener("change", changed);
$("file").addEventListener("change", () => readFile($("file").files[0]));
$("text").addEventListener("dragover", (event) => event.preventDefault());
$("text").addEventListener("drop", (event) => {
  if (event.dataTransfer.files.length === 0) return; // a dragged text is the browser's
  event.preventDefault();
  readFile(event.dataTransfer.files[0]);
});
$("forget").addEventListener("click", () => {
  $("form").reset();
  forget();
  restore();
  forget();
  say("Forgotten.");
});
window.addEventListener("resize", () => waveform.draw(playedSamples));

SAMPLES.forEach(({ label }, place) => $("sample").append(new Option(label, place)));
restore();
listVoices().then(
  () => {
    restored = true;
    restore(["voice", "other", "language"]); // whose options have come only now
  },
  () => { $("error").textContent = "The list of voices cannot be had; the server’s own will speak."; },
);
lookAtServer();
waveform.show(null);
