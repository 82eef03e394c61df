// The openai SDK for Node, as its users call it.

import OpenAI from "openai";

import { active, drained, idle, report, SLOW } from "./findings.mjs";

let sent = 0;

function connect(url, options = {}) {
  const counted = (...request) => {
    sent += 1;
    return fetch(...request);
  };
  return new OpenAI({ baseURL: `${url}/v1`, apiKey: "any", fetch: counted, ...options });
}

async function refusal(promise) {
  try {
    await promise;
  } catch (error) {
    const { name } = error.constructor;
    return { name, status: error.status, code: error.code, param: error.param, message: error.message, sent };
  }
  return { name: null, sent };
}

await report({
  async spoken(url, request) {
    const answer = await connect(url).audio.speech.create(JSON.parse(request));
    return { type: answer.headers.get("content-type"), audio: Buffer.from(await answer.arrayBuffer()).toString("base64") };
  },

  async streamed(url, text) {
    const answer = await connect(url).audio.speech.create({
      model: "tts-1", voice: "hum", input: text, response_format: "pcm",
    });
    return drained(answer.body);
  },

  async refused(url, request) {
    return refusal(connect(url, { maxRetries: 2 }).audio.speech.create(JSON.parse(request)));
  },

  async busy(url) {
    const speech = connect(url, { maxRetries: 1 }).audio.speech;
    return refusal(speech.create({ model: "tts-1", voice: "hum", input: "Hello." }));
  },

  async stopped(url) {
    const controller = new AbortController();
    const answer = await connect(url).audio.speech.create(
      { model: "tts-1", voice: "hum", input: SLOW, response_format: "pcm" },
      { signal: controller.signal },
    );
    const reader = answer.body.getReader();
    const first = await reader.read();
    const before = await active(url);
    controller.abort();
    return { bytes: first.value.length, before, idle: await idle(url) };
  },

  async models(url) {
    const names = [];
    for await (const model of connect(url).models.list()) names.push(model.id);
    return { names };
  },
});
