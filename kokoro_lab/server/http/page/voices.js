// The voices by language and sex, which of them can be chosen, and mixtures of two.

const LANGUAGES = new Intl.DisplayNames(["en"], { type: "language" });

export function languageName(tag) {
  return LANGUAGES.of(tag);
}

/**
 * What the server offers: `{ id, label, language, group, unread }`, in the order in which they are to be listed.
 * Those with a reason in `unread` can only read texts of another language, which is to be named.
 */
export async function allVoices() {
  const [{ voices }, { voices_not_offered: unread }] = await Promise.all(["v1/audio/voices", "status"].map(read));
  const named = (id) => {
    const name = id.slice(id.indexOf("_") + 1);
    return name.charAt(0).toUpperCase() + name.slice(1);
  };
  return [
    ...voices.map(({ id, language, gender }) => (
      { id, label: named(id), language, group: `${languageName(language)}, ${gender}` })),
    ...Object.entries(unread).map(([id, reason]) => (
      { id, label: named(id), language: null, group: `Cannot be read here: ${reason}`, unread: reason })),
  ];
}

/** Lists `voices` in `select`, behind what it holds already. */
export function list(select, voices) {
  const groups = new Map();
  for (const { id, label, group } of voices) {
    if (!groups.has(group)) {
      const element = document.createElement("optgroup");
      element.label = group;
      groups.set(group, element);
      select.append(element);
    }
    groups.get(group).append(new Option(label, id));
  }
}

/** Lets only those of `voices` be chosen in `select` that can read when `language` is named, or none is. */
export function offer(select, voices, language) {
  for (const { id, unread } of voices) {
    if (unread) select.querySelector(`option[value="${id}"]`).disabled = !language;
  }
}

/** The field `voice` of a request: `share` tenths of `other`, the rest of `voice`. */
export function blend(voice, other, share) {
  return other ? `${voice}(${10 - share})+${other}(${share})` : voice;
}

async function read(path) {
  return (await fetch(path)).json();
}
