// A sentence of a list that is labelled in place.
import { button, fill, h } from "./dom.js";
import { outbox } from "./outbox.js";
import { reading, SentenceEditor } from "./sentence.js";
import { plain } from "./spans.js";
import { state } from "./state.js";
import { moment } from "./text.js";

/** @typedef {import("./api.js").Entity} Entity */
/** @typedef {import("./api.js").Sentence} Sentence */

/**
 * Sends labels that decide what is right. Returns what became of them.
 * @param {Sentence} sentence
 * @param {Entity[]} entities
 */
export async function decide(sentence, entities) {
  const key = outbox.add("labels", sentence, plain(entities), true);
  const refused = (await outbox.send()).has(key);
  return refused ? "refused" : state.trouble ? "waits" : "saved";
}

/**
 * Returns a list item with an editor. A labelled sentence is saved after every change, another one when it is accepted.
 * @param {Sentence} sentence
 * @param {{entities?: Entity[], done?: () => void}} [how] `done` is called after Accept
 */
export function editRow(sentence, { entities, done } = {}) {
  const editor = new SentenceEditor();
  editor.show(sentence, entities ?? sentence.labels ?? sentence.suggestions, { editable: true, label: `Words of sentence ${sentence.id}` });
  let labeled = sentence.labels !== null && !done;
  const status = h("span", { class: "faint", role: "status" }, about(sentence));
  const accept = button("Accept", () => save(true), { keys: "Enter" });
  const row = h("li", { class: "row line" }, editor, h("div", { class: "actions" }, !labeled && accept, status));

  /** @param {boolean} accepted */
  async function save(accepted) {
    const result = await decide(sentence, editor.entities);
    if (result === "refused") return fill(status, "Not saved.");
    fill(status, result === "saved" ? "Saved." : "Not saved yet.");
    labeled = true;
    accept.remove();
    if (!accepted) return;
    if (done) done();
    else row.nextElementSibling?.querySelector("sequst-sentence")?.dispatchEvent(new Event("take"));
  }

  editor.addEventListener("change", () => labeled && void save(false));
  editor.addEventListener("accept", () => void save(true));
  editor.addEventListener("take", () => editor.take());
  return row;
}

/** @param {Sentence} sentence */
function about({ who, at, skipped, judging }) {
  const by = who && at !== null ? `${who}, ${moment(at)}` : skipped ? "skipped" : "not labelled";
  return judging ? `${by}, for judging` : by;
}

/**
 * Takes a row away and puts the focus on the next one.
 * @param {HTMLElement} row
 */
export function settle(row) {
  const next = row.nextElementSibling ?? row.previousElementSibling;
  row.remove();
  /** @type {HTMLElement | null | undefined} */ (next?.querySelector("button, [tabindex]"))?.focus();
}

/**
 * A button that puts an editor in place of the row.
 * @param {HTMLElement} row
 * @param {Sentence} sentence
 */
export function editButton(row, sentence) {
  return button("Edit", () => {
    const editing = editRow(sentence, { done: () => settle(editing) });
    row.replaceWith(editing);
    editing.querySelector("sequst-sentence")?.dispatchEvent(new Event("take"));
  });
}

/**
 * A sentence with the labels that somebody gave it. The words from `start` to `end` stand out.
 * @param {string} name
 * @param {Sentence} sentence
 * @param {Entity[]} entities
 * @param {number} [start]
 * @param {number} [end]
 */
export function version(name, sentence, entities, start, end) {
  const shown = reading(sentence, entities);
  if (start !== undefined && end !== undefined) shown.point(start, end);
  return h("div", { class: "version" }, h("b", null, name), shown);
}
