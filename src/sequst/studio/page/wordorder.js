// Where words stand on the screen: which one an arrow key leads to.

/** @typedef {{word: number, x: number, y: number, height: number}} Spot */

/**
 * Returns the lines of words from top to bottom, each in reading direction.
 * @param {HTMLElement[]} words
 * @param {boolean} rightToLeft
 */
function linesOf(words, rightToLeft) {
  /** @type {Spot[][]} */
  const lines = [];
  const spots = words.map((element, word) => {
    const box = element.getClientRects()[0] ?? element.getBoundingClientRect();
    return { word, x: box.left + box.width / 2, y: box.top + box.height / 2, height: box.height };
  });
  for (const spot of spots.sort((a, b) => a.y - b.y)) {
    const line = lines.at(-1);
    if (line && spot.y - (line[0]?.y ?? 0) < spot.height / 2) line.push(spot);
    else lines.push([spot]);
  }
  const direction = rightToLeft ? -1 : 1;
  for (const line of lines) line.sort((a, b) => direction * (a.x - b.x));
  return lines;
}

/**
 * Returns the word that the key leads to from another one, or that one itself.
 * @param {HTMLElement[]} words
 * @param {number} from
 * @param {string} key
 * @param {boolean} rightToLeft the direction of the sentence
 */
export function neighbour(words, from, key, rightToLeft) {
  if (key === "Home") return 0;
  if (key === "End") return words.length - 1;
  const lines = linesOf(words, rightToLeft);
  if (key === "ArrowUp" || key === "ArrowDown") {
    const row = lines.findIndex((line) => line.some((spot) => spot.word === from));
    const line = lines[row + (key === "ArrowUp" ? -1 : 1)];
    const x = lines[row]?.find((spot) => spot.word === from)?.x ?? 0;
    return line ? line.reduce((best, spot) => (Math.abs(spot.x - x) < Math.abs(best.x - x) ? spot : best)).word : from;
  }
  const order = lines.flat().map((spot) => spot.word);
  const step = (key === "ArrowRight") === rightToLeft ? -1 : 1;
  return order[order.indexOf(from) + step] ?? from;
}
