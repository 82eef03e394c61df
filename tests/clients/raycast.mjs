// Plain `fetch`, with the body and the habits of kokoro-onnx-raycast-api's extension.

import { active, drained, idle, report, SLOW } from "./findings.mjs";

function ask(url, text, signal) {
  return fetch(`${url}/v1/audio/speech`, {
    method: "POST",
    headers: { "Content-Type": "application/json", Accept: "audio/pcm" },
    body: JSON.stringify({ text, voice: "hum", speed: 1.25, lang: "en-us", stream: true, format: "pcm" }),
    signal,
  });
}

await report({
  async start(url, text) {
    const answer = await ask(url, text);
    return { status: answer.status, type: answer.headers.get("content-type"), ...(await drained(answer.body)) };
  },

  async stop(url) {
    const controller = new AbortController();
    const reader = (await ask(url, SLOW, controller.signal)).body.getReader();
    await reader.read();
    const before = await active(url);
    controller.abort();
    const ended = await reader.read().catch((error) => error.name);
    return { before, ended, idle: await idle(url) };
  },

  // A second press of the key: nothing ends the first request but its reader, and that later
  async interrupt(url, text) {
    const first = new AbortController();
    const reader = (await ask(url, SLOW, first.signal)).body.getReader();
    await reader.read();
    const second = await ask(url, text);
    const both = await active(url);
    first.abort();
    return { both, status: second.status, ...(await drained(second.body)), idle: await idle(url) };
  },

  async refused(url) {
    const answer = await ask(url, "");
    return { status: answer.status, ...(await answer.json()) };
  },

  async voices(url) {
    const health = await fetch(`${url}/health`);
    return { health: health.status, ...(await (await fetch(`${url}/voices`)).json()) };
  },
});
