// From a text to its samples as they arrive: one streaming request, and errors that a person can read.

export const RATE_HZ = 24000;

const BUSY = 429;
const TRIES = 4; // a listener who has just stopped one speech may come before its slot is free
const FULL_SCALE = 32768;

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
 * The answer to a request for speech, its head read and its body not yet; `speed` may be null.
 *
 * `onWait` is told, in seconds, of each wait for a busy server. Returns the response and `sentMs`, when the try
 * that was answered left, by `performance.now`: waiting for a slot is not part of any figure.
 */
export async function ask({ text, voice, speed, key }, signal, onWait) {
  const body = { model: "kokoro", input: text, response_format: "pcm", sample_rate: RATE_HZ };
  if (voice) body.voice = voice; // what is not given is the server's to choose
  if (speed !== null) body.speed = speed;
  const headers = { "Content-Type": "application/json" };
  if (key) headers.Authorization = `Bearer ${key}`;
  for (let tried = 1; ; tried += 1) {
    const sentMs = performance.now();
    let response;
    try {
      const options = { method: "POST", headers, body: JSON.stringify(body), signal, cache: "no-store" };
      response = await fetch("v1/audio/speech", options);
    } catch (error) {
      if (signal.aborted) throw error;
      throw new SpeechError("The server cannot be reached. Is it still running?");
    }
    if (response.ok) return { response, sentMs };
    if (response.status !== BUSY || tried === TRIES) throw await readError(response);
    const waitS = Number(response.headers.get("Retry-After")) || 1;
    onWait(waitS);
    await sleep(1000 * waitS, signal);
  }
}

/** The body of `response` as blocks of samples from -1 to 1; one that ends early is an error. */
export async function* samples(response, signal) {
  const reader = response.body.getReader();
  let odd = new Uint8Array(0); // the network may cut between the two bytes of a sample
  for (;;) {
    let read;
    try {
      read = await reader.read();
    } catch (error) {
      if (signal.aborted) throw error;
      throw new SpeechError("The speech broke off: the server failed, and its log says why.");
    }
    if (read.done) return;
    const bytes = new Uint8Array(odd.length + read.value.length);
    bytes.set(odd);
    bytes.set(read.value, odd.length);
    const count = bytes.length >> 1;
    odd = bytes.slice(2 * count);
    if (count > 0) yield decoded(bytes, count);
  }
}

function decoded(bytes, count) {
  const view = new DataView(bytes.buffer);
  const block = new Float32Array(count);
  for (let i = 0; i < count; i += 1) block[i] = view.getInt16(2 * i, true) / FULL_SCALE;
  return block;
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
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    }, { once: true });
  });
}
