// localStorage, and memory in its place if the browser keeps nothing.

/** @type {Map<string, string>} */
const memory = new Map();

/**
 * @template T
 * @param {() => T} act
 * @param {() => T} otherwise
 */
function attempt(act, otherwise) {
  try {
    return act();
  } catch {
    return otherwise();
  }
}

/**
 * Returns what is kept under the key, or null.
 * @param {string} key
 * @returns {any}
 */
export function load(key) {
  const text = memory.get(key) ?? attempt(() => localStorage.getItem(key), () => null);
  return text === null ? null : attempt(() => JSON.parse(text), () => null);
}

/**
 * @param {string} key
 * @param {unknown} value
 */
export function keep(key, value) {
  const text = JSON.stringify(value);
  attempt(() => localStorage.setItem(key, text), () => void memory.set(key, text));
}

/** @param {string} key */
export function drop(key) {
  memory.delete(key);
  attempt(() => localStorage.removeItem(key), () => undefined);
}

/**
 * Returns the keys that begin so, sorted.
 * @param {string} prefix
 */
export function keysOf(prefix) {
  const kept = attempt(() => Object.keys(localStorage), () => /** @type {string[]} */ ([]));
  return [...new Set([...kept, ...memory.keys()])].filter((key) => key.startsWith(prefix)).sort();
}

/**
 * Returns a random id of 16 hexadecimal digits.
 */
export function randomId() {
  return Array.from(crypto.getRandomValues(new Uint8Array(8)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The id of this tab: it outlives a reload. */
export let tab = attempt(
  () => {
    const known = sessionStorage.getItem("sequst.tab") ?? randomId();
    sessionStorage.setItem("sequst.tab", known);
    return known;
  },
  () => randomId(),
);

/**
 * Takes a new id if another tab has this one: a browser that duplicates a tab copies what it stored. A lock is held as long as
 * the page is there; a page without a secure context has none.
 */
export async function claimTab() {
  while (navigator.locks) {
    const free = await new Promise((resolve) => {
      void navigator.locks.request(`sequst.tab.${tab}`, { ifAvailable: true }, (lock) => {
        resolve(lock !== null);
        return lock && new Promise(() => {});
      });
    });
    if (free) return;
    tab = randomId();
    attempt(() => sessionStorage.setItem("sequst.tab", tab), () => undefined);
  }
}
