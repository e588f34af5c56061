// Which key was pressed, and who takes it.
import { h } from "./dom.js";
import { openDialog } from "./dialog.js";

/** Keys that cannot be a type's. */
export const RESERVED = ["a", "u", "x", "?", " "];

const HELP = [
  ["the key of a type", "Tag the word under the mouse, the chosen words, or the word at the cursor. On an entity: change its type, or remove it if it has that type."],
  ["← → ↑ ↓", "Move the cursor. Home and End go to the first and the last word."],
  ["Shift + arrow", "Choose several words. Dragging and a double click choose words too."],
  ["a", "Mark the same words everywhere in the sentence."],
  ["x, Delete", "Remove the entity."],
  ["Enter", "Accept the labels and go on."],
  ["Backspace", "Skip the sentence."],
  ["u", "Undo, across sentences."],
  ["Escape", "Choose nothing."],
  ["?", "Show this list."],
];

/** @typedef {(key: string, event: KeyboardEvent) => boolean} KeyHandler returns true if it took the key */

/** @type {KeyHandler[]} */
const handlers = [];

/**
 * Gives keys to the handler, before those that were added earlier. Returns what takes it away.
 * @param {KeyHandler} handler
 */
export function onKeys(handler) {
  handlers.unshift(handler);
  return () => void handlers.splice(handlers.indexOf(handler), 1);
}

/**
 * Returns the key as the keys of the studio are written. On a keyboard of another script, and for digits that need Shift,
 * it is the key at that place of a Latin keyboard.
 * @param {KeyboardEvent} event
 * @param {string[]} [wanted] keys that are taken as they are
 */
export function keyOf(event, wanted = []) {
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  if (wanted.includes(key) || key.length > 1) return key;
  const place = /^(?:Key|Digit|Numpad)([A-Z0-9])$/.exec(event.code)?.[1]?.toLowerCase();
  const foreign = !/^[\x20-\x7e]$/.test(key) || (/^Digit/.test(event.code) && !event.shiftKey);
  return place && foreign ? place : key;
}

/** @param {EventTarget | null} target */
function isField(target) {
  return target instanceof Element && target.closest("input, select, textarea, [contenteditable]") !== null;
}

/** @param {EventTarget | null} target */
function isControl(target) {
  return target instanceof Element && target.closest("a, button, summary") !== null;
}

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (isField(event.target) || document.querySelector("dialog[open]")) return;
  if (isControl(event.target) && (event.key === "Enter" || event.key === " ")) return;
  if (handlers.some((handler) => handler(event.key, event))) event.preventDefault();
});

/** Shows all keys in a dialog. */
export function showKeys() {
  const rows = HELP.map(([key, does]) => h("div", null, h("dt", null, h("kbd", null, key)), h("dd", null, does)));
  const note = h("p", { class: "faint" }, "Hover over a word and press a key: that tags it. On a touch screen, tap a type and then the words. You set the keys of types under Review, Types.");
  return openDialog("Keys", (close) => [h("dl", { class: "keys" }, rows), note, closing(close)]);
}

/** @param {() => void} close */
function closing(close) {
  return h("div", { class: "actions" }, h("button", { type: "button", class: "main", onclick: () => close() }, "Close"));
}
