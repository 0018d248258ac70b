// Where the words that are looked for stand in a text: marked in place, each word wherever it stands, in any case.
import { html } from "./core.js";

const LONG = 600; // characters from which on a text begins shortly before its first match

const fold = (text) => text.normalize("NFKC").toLowerCase().replaceAll("ß", "ss");

/** The places of some words in a text, as `[begin, end]`, in order and without overlaps. */
export function placesOf(text, words) {
  // Folding can change how many characters there are, so that each folded one knows where it came from.
  const characters = [...text];
  const folded = [];
  const origins = [];
  let at = 0;
  for (const character of characters) {
    for (const one of fold(character)) {
      folded.push(one);
      origins.push([at, at + character.length]);
    }
    at += character.length;
  }
  const whole = folded.join("");
  const offsets = []; // of each folded character in `whole`, by units
  for (const [index, one] of folded.entries()) for (let unit = 0; unit < one.length; unit += 1) offsets.push(index);
  const found = [];
  for (const word of new Set(words.map(fold).filter(Boolean))) {
    for (let from = whole.indexOf(word); from >= 0; from = whole.indexOf(word, from + word.length)) {
      found.push([origins[offsets[from]][0], origins[offsets[from + word.length - 1]][1]]);
    }
  }
  found.sort(([a], [b]) => a - b);
  const merged = [];
  for (const [begin, end] of found) {
    if (merged.length && begin <= merged.at(-1)[1]) merged.at(-1)[1] = Math.max(merged.at(-1)[1], end);
    else merged.push([begin, end]);
  }
  return merged;
}

/** Whether each of some words stands in a text. */
export const hasAll = (text, words) => words.every((word) => placesOf(text, [word]).length > 0);

/** The words of what is looked for. */
export const wordsOf = (query) => query.split(/\s+/).filter(Boolean);

/** A text as pieces with its matches marked; one that is longer than `long` begins shortly before the first of them. */
export function marked(text, words, long = LONG) {
  const places = placesOf(text, words);
  const before = Math.floor(long / 5);
  const begin = places.length && text.length > long && places[0][0] > 2 * before ? places[0][0] - before : 0;
  const pieces = begin > 0 ? ["… "] : [];
  let at = begin;
  for (const [from, to] of places) {
    pieces.push(text.slice(at, from), html`<mark key=${from}>${text.slice(from, to)}</mark>`);
    at = to;
  }
  return [...pieces, text.slice(at)];
}

/** A text as it was written, with its matches marked. */
export const Marked = ({ text, words, ...rest }) => html`<div ...${rest} class=${`said text ${rest.class || ""}`} dir="auto">${marked(text, words)}</div>`;
