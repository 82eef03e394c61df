// What the scripts beside this one share: `node SCRIPT SCENARIO URL [ARGUMENT]` runs one scenario and prints
// what it found as one JSON object.

export const SLOW = "Here is the first of the sentences, all of it. " + "And this is a slow one, it takes its time. ".repeat(40);

/** All bytes of a stream, how many fragments they came in, and when the first and the last of them came. */
export async function drained(body) {
  const started = performance.now();
  const fragments = [];
  let firstMs = null;
  for await (const fragment of body) {
    firstMs ??= performance.now() - started;
    fragments.push(Buffer.from(fragment));
  }
  const audio = Buffer.concat(fragments).toString("base64");
  return { fragments: fragments.length, firstMs, lastMs: performance.now() - started, audio };
}

/** True once no speech is being made, false if that is not so within 5 s. */
export async function idle(url) {
  const deadline = performance.now() + 5000;
  while (performance.now() < deadline) {
    if ((await active(url)) === 0) return true;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return false;
}

export async function active(url) {
  return (await (await fetch(`${url}/status`)).json()).active;
}

export async function report(scenarios) {
  const [scenario, url, argument] = process.argv.slice(2);
  console.log(JSON.stringify(await scenarios[scenario](url, argument)));
}
