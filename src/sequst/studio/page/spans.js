// Entities of one sentence as sorted lists that are never changed in place.

/** @typedef {import("./api.js").Entity} Entity */

/**
 * @param {Entity[]} entities
 * @param {number} word
 * @returns {Entity | null} the entity that holds the word
 */
export function entityAt(entities, word) {
  return entities.find((entity) => entity.start <= word && word < entity.end) ?? null;
}

/**
 * @param {Entity[]} entities
 * @param {number} start
 * @param {number} end
 * @returns {Entity[]} the entities without those that touch [start, end)
 */
export function without(entities, start, end) {
  return entities.filter((entity) => entity.end <= start || end <= entity.start);
}

/**
 * @param {Entity[]} entities
 * @param {Entity} entity
 * @returns {Entity[]} the entities with this one in place of those that it touches
 */
export function withEntity(entities, entity) {
  return [...without(entities, entity.start, entity.end), entity].sort((a, b) => a.start - b.start);
}

/**
 * @param {string[]} words
 * @param {Entity[]} entities
 * @param {Entity} entity
 * @returns {Entity[]} an entity for every other place with the same words that no entity touches
 */
export function sameWords(words, entities, entity) {
  const { type, start, end } = entity;
  const length = end - start;
  /** @type {Entity[]} */
  const found = [];
  for (let at = 0; at + length <= words.length; at++) {
    const free = without([...entities, ...found], at, at + length).length === entities.length + found.length;
    const same = words.slice(at, at + length).every((word, i) => word === words[start + i]);
    if (free && same) found.push({ type, start: at, end: at + length });
  }
  return found;
}

/**
 * @param {Entity[]} entities
 * @returns {Entity[]} the entities as the server takes them
 */
export function plain(entities) {
  return entities.map(({ type, start, end }) => ({ type, start, end }));
}

/**
 * @param {Entity[]} a
 * @param {Entity[]} b
 * @returns {boolean} whether both mark the same words with the same types
 */
export function sameEntities(a, b) {
  return JSON.stringify(plain(a)) === JSON.stringify(plain(b));
}

/**
 * Cuts a sentence into pieces: every word, and the text before, between and after words.
 * @param {string} text
 * @param {[number, number][]} offsets code points
 * @returns {{words: string[], gaps: string[]}} gaps[i] stands before word i, the last one after the last word
 */
export function cut(text, offsets) {
  const points = Array.from(text);
  /** @param {number} from @param {number} [to] */
  const piece = (from, to) => points.slice(from, to).join("");
  let at = 0;
  const gaps = offsets.map(([start, end]) => {
    const gap = piece(at, start);
    at = end;
    return gap;
  });
  return { words: offsets.map(([start, end]) => piece(start, end)), gaps: [...gaps, piece(at)] };
}
