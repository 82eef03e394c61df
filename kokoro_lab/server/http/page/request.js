// From a text to its speech as it arrives: one request, answered with events, and errors that a person can read.

const BUSY = 429;
const TRIES = 4; // a listener who has just stopped one speech may come before its slot is free

/** What the server, or the way to it, has to say. `field` is the request's field that is wrong, if one is. */
export class SpeechError extends Error {
  constructor(message, { field = null, status = null } = {}) {
    super(message);
    this.name = "SpeechError";
    this.field = field;
    this.status = status;
  }
}

/**
 * The answer to a request for speech, its head read and its body not yet.
 *
 * `wanted` has the fields of `POST /v1/audio/speech`; `onWait` is told, in seconds, of each wait for a busy
 * server. Returns the response and `sentMs`, when the try that was answered left, by `performance.now`: waiting
 * for a slot is not part of any figure.
 */
export async function ask(wanted, key, signal, onWait = () => {}) {
  const body = { model: "kokoro", stream_format: "sse", ...wanted };
  const headers = { "Content-Type": "application/json" };
  if (key) headers.Authorization = `Bearer ${key}`;
  for (let tried = 1; ; tried += 1) {
    const sentMs = performance.now();
    let response;
    try {
      const options = { method: "POST", headers, body: JSON.stringify(body), signal, cache: "no-store" };
      response = await fetch("v1/audio/speech", options);
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new SpeechError("The server cannot be reached. Is it still running?");
    }
    if (response.ok) return { response, sentMs };
    if (response.status !== BUSY || tried === TRIES) throw await readError(response);
    const waitS = Number(response.headers.get("Retry-After")) || 1;
    onWait(waitS);
    await sleep(1000 * waitS, signal);
  }
}

/**
 * What `response` tells, in order: `{ audio }`, bytes in the format that was asked for, and `{ words }`, when each
 * is heard. Joined, the bytes are the whole speech, without the silence that begins a raw stream. One that ends
 * early is an error.
 */
export async function* events(response, signal) {
  let ended = false;
  for await (const data of dataLines(response, signal)) {
    const event = JSON.parse(data);
    if (event.error) throw new SpeechError(`The speech broke off: ${event.error.message}`);
    if (event.type === "speech.audio.delta") yield { audio: decoded(event.audio) };
    if (event.type === "speech.audio.words") yield { words: event.words };
    ended = event.type === "speech.audio.done";
  }
  if (!ended) throw brokenOff();
}

/** The `data:` of each event, a line each. */
async function* dataLines(response, signal) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = ""; // the network may cut anywhere
  for (;;) {
    let read;
    try {
      read = await reader.read();
    } catch (error) {
      if (signal?.aborted) throw error;
      throw brokenOff();
    }
    if (read.done) return;
    const lines = (rest + read.value).split("\n");
    rest = lines.pop();
    for (const line of lines) if (line.startsWith("data: ")) yield line.slice(6);
  }
}

function brokenOff() {
  return new SpeechError("The speech broke off: the server failed, and its log says why.");
}

function decoded(base64) {
  return Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
}

async function readError(response) {
  const { status } = response;
  try {
    const { error } = await response.json();
    return new SpeechError(error.message, { field: error.param, status });
  } catch {
    return new SpeechError(`The server answered ${status} ${response.statusText}.`, { status });
  }
}

function sleep(ms, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    }, { once: true });
  });
}
