// Numbers and times as people read them.

/**
 * @param {number} value
 * @param {number} [digits]
 */
export function number(value, digits = 0) {
  return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/**
 * @param {number} count
 * @param {string} one
 * @param {string} [many]
 */
export function counted(count, one, many = `${one}s`) {
  return `${number(count)} ${count === 1 ? one : many}`;
}

/** @param {number} seconds */
export function duration(seconds) {
  if (seconds < 90) return counted(Math.max(1, Math.round(seconds)), "second");
  if (seconds < 90 * 60) return counted(Math.round(seconds / 60), "minute");
  return `${number(seconds / 3600, 1)} hours`;
}

/** @param {number} seconds since 1970 */
export function moment(seconds) {
  return new Date(seconds * 1000).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
}

/** @param {number} bytes */
export function size(bytes) {
  return bytes < 1e6 ? `${number(Math.ceil(bytes / 1e3))} kB` : `${number(bytes / 1e6)} MB`;
}

/**
 * Returns the text with a capital letter and a full stop.
 * @param {string} text
 */
export function sentence(text) {
  return (text[0] ?? "").toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? "" : ".");
}

/** @param {number} gain */
export function signed(gain) {
  return `${gain < 0 ? "−" : "+"}${number(Math.abs(gain), 1)}`;
}

/** @param {{low: number, high: number}} interval */
export function between({ low, high }) {
  return `${number(low, 1)} to ${number(high, 1)}`;
}

/** What a training of this kind is called. */
export const KINDS = /** @type {Record<string, string>} */ ({
  first: "Choosing the next sentences",
  quick: "Quick training",
  default: "Training on the raw text",
  thorough: "Thorough training on the raw text",
  suspects: "Search for wrong labels",
  export: "Export",
});

/**
 * Returns whether an F1 says too little yet to be shown as a number.
 * @param {{entities: number}} f1
 */
export function tooFew(f1) {
  return f1.entities < 20;
}
