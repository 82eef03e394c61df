// The page of one listener: set the level, then trial by trial, then the result. What is known here is what is asked:
// which of the three is which, only the server knows.
import { Switch } from "./switch.js";

const byId = (id) => document.getElementById(id);
const plays = document.querySelectorAll("[data-button]");
const answers = document.querySelectorAll("[data-answer]");
const KEYS = { a: "A", b: "B", x: "X" };
const ANSWERS = { 1: "A", 2: "B" };

let state;
let sounds;
let counts = {};
let busy = true;

async function ask(path, body) {
  const sent = body && { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  let answer;
  try {
    answer = await fetch(path, { cache: "no-store", ...sent });
  } catch {
    throw new Error("The server does not answer. Ask whoever runs the test; then load this page again.");
  }
  const found = await answer.json();
  if (!answer.ok) throw new Error(found.error);
  return found;
}

function say(text) {
  byId("message").textContent = text;
}

function show(section) {
  for (const id of ["level", "trial", "result"]) byId(id).hidden = id !== section;
  byId("kept").hidden = section === "result";
}

function head(words) {
  byId("heading").textContent = words;
  byId("progress").max = state.trials;
  byId("progress").value = state.answered;
}

function enough(button) {
  return (sounds.heardS[button] ?? 0) >= state.least_s;
}

function missing() {
  return Object.keys(state.sounds).filter((button) => !enough(button));
}

/** What is heard, for how long, and why there may be no answer yet; drawn many times a second. */
function draw() {
  if (!sounds || !state.sounds) return;
  const heard = sounds.heardS;
  for (const button of plays) {
    const name = button.dataset.button;
    const on = sounds.playing === name;
    button.setAttribute("aria-pressed", on);
    button.firstElementChild.textContent = on ? "♪" : "▶";
    button.style.setProperty("--heard", Math.min(1, (heard[name] ?? 0) / state.least_s));
  }
  byId("play-level").setAttribute("aria-pressed", sounds.playing === "level");
  byId("stop").disabled = sounds.playing === null;
  byId("position").value = sounds.positionS / (sounds.lengthS || 1);
  const left = busy ? [] : missing();
  const names = left.length > 1 ? `${left.slice(0, -1).join(", ")} and ${left.at(-1)}` : left[0];
  const each = left.length > 1 ? " of each" : "";
  const why = busy ? "" : left.length ? `Listen to ${names} first: at least ${state.least_s} s${each}.` : "Which one is X?";
  if (byId("why").textContent !== why) byId("why").textContent = why; // else it would be read out again and again
  for (const button of answers) button.setAttribute("aria-disabled", busy || left.length > 0);
  if (sounds.playing !== null) requestAnimationFrame(draw);
}

function play(button) {
  if (busy) return;
  if (sounds.playing !== button) counts[button] = (counts[button] ?? 0) + 1;
  sounds.play(button);
}

async function answer(letter) {
  if (busy || missing().length) return;
  busy = true;
  sounds.stop();
  const given = { trial: state.answered, answer: letter, plays: counts, heard_s: sounds.heardS };
  try {
    state = await ask("answers", given);
    say("");
  } catch (error) {
    say(error.message);
    busy = false;
    draw();
    return;
  }
  await next();
}

/** The trial that is not answered yet, or the result. */
async function next() {
  if (state.complete) {
    head(`Thank you. All ${state.trials} trials are answered.`);
    byId("result").innerHTML = state.result; // the server's own, with every text in it escaped
    show("result");
    return;
  }
  busy = true;
  counts = {};
  head(`Trial ${state.answered + 1} of ${state.trials}`);
  show("trial");
  draw();
  const urls = Object.entries(state.sounds).map(([button, id]) => [button, `sounds/${id}`]);
  try {
    await sounds.load(Object.fromEntries(urls));
    busy = false;
  } catch (error) {
    say(`The sounds did not come (${error.message}). Load this page again: it goes on here.`);
  }
  draw();
  byId("heading").focus({ preventScroll: true });
}

async function setLevel() {
  sounds ??= new Switch(state.sample_rate_hz, draw); // in the handler of a click, or a browser may keep it silent
  try {
    if (!sounds.lengthS) await sounds.load({ level: `sounds/${state.calibration}` });
    if (sounds.playing) sounds.stop();
    else sounds.play("level");
  } catch (error) {
    say(`The passage did not come (${error.message}). Load this page again.`);
  }
}

function begin() {
  sounds ??= new Switch(state.sample_rate_hz, draw);
  sounds.stop();
  next();
}

function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || !sounds) return;
  const key = event.key.toLowerCase();
  if (key === "escape" || key === " ") {
    if (sounds.playing === null) return; // space is then the button's that has the focus
    event.preventDefault();
    sounds.stop();
  } else if (!byId("trial").hidden && KEYS[key]) play(KEYS[key]);
  else if (!byId("trial").hidden && ANSWERS[key]) answer(ANSWERS[key]);
}

byId("play-level").addEventListener("click", setLevel);
byId("begin").addEventListener("click", begin);
byId("stop").addEventListener("click", () => sounds.stop());
for (const button of plays) button.addEventListener("click", () => play(button.dataset.button));
for (const button of answers) button.addEventListener("click", () => answer(button.dataset.answer));
document.addEventListener("keydown", pressed);

try {
  state = await ask("state");
  say(state.note ?? "");
  if (state.complete) await next();
  else {
    head(state.answered ? `Welcome back: ${state.answered} of ${state.trials} trials are answered` : "Listening test");
    byId("begin").textContent = state.answered ? `Go on with trial ${state.answered + 1}` : `Begin: ${state.trials} trials`;
    show("level");
  }
} catch (error) {
  say(error.message);
}
