// The text and the choices, kept over a reload in this browser; never the key.

const NAME = `kokoro-lab ${location.pathname}`;

/** What was kept, by field; nothing where nothing was, or where a browser forbids it. */
export function kept() {
  try {
    return JSON.parse(localStorage.getItem(NAME)) ?? {};
  } catch {
    return {};
  }
}

export function keep(choices) {
  try {
    localStorage.setItem(NAME, JSON.stringify(choices));
  } catch {
    // Forbidden, or full: the page works without, and begins anew after a reload
  }
}

export function forget() {
  try {
    localStorage.removeItem(NAME);
  } catch {
    // There is nothing to forget
  }
}
