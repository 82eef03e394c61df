// A speech as a file on the listener's disk.

import { ask, events } from "./request.js";

const NAME_LETTERS = 40;

/**
 * Saves `recording` in `format`. WAV is written here, of what was heard. For the others the server encodes the same
 * speech, which gives the same samples: one request, and none for a format that was saved before.
 */
export async function download(recording, format, key) {
  if (!recording.files.has(format)) {
    recording.files.set(format, format === "wav" ? recording.wav() : await encoded(recording, format, key));
  }
  const link = document.createElement("a");
  link.href = URL.createObjectURL(recording.files.get(format));
  link.download = `${nameOf(recording.wanted)}.${format}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

async function encoded(recording, format, key) {
  const { response } = await ask({ ...recording.wanted, response_format: format }, key);
  const parts = [];
  for await (const { audio } of events(response)) if (audio) parts.push(audio);
  return new Blob(parts);
}

/** The text's beginning, whole words, as every file system takes it. */
function nameOf({ input, input_format: kind }) {
  const text = kind === "ssml" ? input.replace(/<[^>]*>/g, " ") : input;
  const words = text.match(/[\p{L}\p{M}\p{N}]+/gu) ?? ["speech"];
  let name = words[0].slice(0, NAME_LETTERS);
  for (const word of words.slice(1)) {
    if (name.length + 1 + word.length > NAME_LETTERS) break;
    name += `-${word}`;
  }
  return name;
}
