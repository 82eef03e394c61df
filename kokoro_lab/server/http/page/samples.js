// Texts to try a voice with.

/** `{ label, language, text }`; the first of a language is put in when a voice of that language is chosen. */
export const SAMPLES = [
  {
    label: "Two sentences",
    language: "en",
    text: "The quick brown fox jumps over the lazy dog. Then it sat down, and thought about what it had done.",
  },
  {
    label: "Numbers and dates",
    language: "en",
    text: "Dr. Smith paid $3.50 for 2 kg of apples on 3 May 2024, at 10:45 a.m., and 12½ % less the week after.",
  },
  {
    label: "A conversation",
    language: "en",
    text: "“Is anybody there?” she asked. Nobody answered.\n\n“Well then,” she said, louder, “I shall come in!” And so "
      + "she did: the door was open, the lamp was lit, and the tea, oddly enough, was still warm.",
  },
  { label: "Spanish", language: "es", text: "El sol sale despacio sobre el mar. ¿Quién viene conmigo a la playa?" },
  { label: "French", language: "fr", text: "Le soleil se lève lentement sur la mer. Qui vient avec moi à la plage ?" },
  { label: "Italian", language: "it", text: "Il sole sorge piano sul mare. Chi viene con me in spiaggia?" },
  { label: "Portuguese", language: "pt", text: "O sol nasce devagar sobre o mar. Quem vem comigo à praia?" },
  { label: "Hindi", language: "hi", text: "सूरज धीरे-धीरे समुद्र के ऊपर उगता है। मेरे साथ कौन चलेगा?" },
  { label: "Japanese", language: "ja", text: "太陽がゆっくりと海の上に昇ります。誰が一緒に来ますか。" },
  { label: "Chinese", language: "zh", text: "太阳从海面上慢慢升起。谁和我一起去海边？" },
];

/** The first sample of a language, by its tag; undefined if there is none. */
export function sampleOf(tag) {
  return SAMPLES.find(({ language }) => language === tag.slice(0, 2));
}

export function isSample(text) {
  return SAMPLES.some((sample) => sample.text === text);
}
