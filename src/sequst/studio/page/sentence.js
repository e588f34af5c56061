// <sequst-sentence>: one sentence with its entities, to be read or to be labelled by mouse, touch and keys.
import { announce, fill, h, setProps } from "./dom.js";
import { keyOf, onKeys } from "./keys.js";
import { cut, entityAt, sameWords, without, withEntity } from "./spans.js";
import { state } from "./state.js";
import { neighbour } from "./wordorder.js";

/**
 * @typedef {import("./api.js").Entity} Entity
 * @typedef {import("./api.js").Sentence} Sentence
 * @typedef {{anchor: number, focus: number}} Choice  the words from one to the other, both included
 */

/** Below this confidence a suggestion is drawn as unsure, and its percentage always stands there. */
export const SURE = 0.8;
const DOUBTFUL = 0.5;
const TAG_GAP = 4;

let count = 0;

export class SentenceEditor extends HTMLElement {
  /** The editor that takes keys: the one that was last pointed at or focused. @type {SentenceEditor | null} */
  static active = null;
  /** The type that a tap on words tags them with. @type {string | null} */
  static brush = null;

  /** Where the mouse was last seen. */
  static #mouse = "";

  /** @type {Entity[]} */
  entities = [];
  editable = false;
  /** Whether keys are for this editor even if the focus and the mouse are elsewhere. */
  greedy = false;
  /** Whether keys and pointers do nothing, while the next sentence comes. */
  locked = false;
  cursor = 0;
  /** @type {Choice | null} */
  choice = null;
  #hover = -1;
  #dragging = false;
  /** @type {string[]} */
  #words = [];
  /** @type {string[]} */
  #gaps = [];
  /** @type {HTMLElement[]} */
  #elements = [];
  /** @type {{entity: Entity, element: HTMLElement, tag: HTMLElement}[]} */
  #drawn = [];
  /** @type {Entity[][]} */
  #past = [];
  #prefix = `s${(count += 1)}w`;
  #text = h("div", { class: "text", dir: "auto" });
  #tags = h("div", { class: "tags", "aria-hidden": "true" });
  #resized = new ResizeObserver(() => this.#placeTags());

  connectedCallback() {
    this.append(this.#text, this.#tags);
    this.#resized.observe(this.#text);
    this.#placeTags();
  }

  disconnectedCallback() {
    this.#resized.disconnect();
    if (SentenceEditor.active === this) SentenceEditor.active = null;
  }

  /**
   * Shows a sentence with these entities.
   * @param {Sentence} sentence
   * @param {Entity[]} entities
   * @param {{editable?: boolean, label?: string}} [how]
   */
  show(sentence, entities, { editable = false, label = "Words of the sentence" } = {}) {
    const { words, gaps } = cut(sentence.text, sentence.offsets);
    this.#words = words;
    this.#gaps = gaps;
    this.entities = entities;
    this.#past = [];
    this.choice = null;
    this.#hover = -1;
    const doubts = entities.filter((entity) => (entity.confidence ?? 1) < SURE);
    this.cursor = doubts.sort((a, b) => (a.confidence ?? 1) - (b.confidence ?? 1))[0]?.start ?? 0;
    this.#setEditable(editable, label);
    this.#draw();
  }

  /**
   * @param {boolean} editable
   * @param {string} label
   */
  #setEditable(editable, label) {
    if (editable === this.editable) return;
    this.editable = editable;
    this.#text = h("div", { class: "text", dir: "auto" });
    if (editable) {
      setProps(this.#text, { role: "listbox", tabindex: 0, "aria-multiselectable": "true", "aria-label": label, "aria-orientation": "horizontal" });
      this.#listen();
    }
    this.#resized.disconnect();
    if (this.isConnected) {
      this.replaceChildren(this.#text, this.#tags);
      this.#resized.observe(this.#text);
    }
  }

  /** Makes the editor take keys, and puts the focus on it. */
  take() {
    SentenceEditor.active = this;
    this.#text.focus({ preventScroll: true });
  }

  /** Draws the entities again, after the types changed. */
  redraw() {
    this.#draw();
  }

  /**
   * Puts these entities in place, as an action that can be undone.
   * @param {Entity[]} entities
   * @param {string} told what a screen reader says
   */
  change(entities, told) {
    this.#past.push(this.entities);
    this.#set(entities, told);
  }

  /** Takes back the last change. Returns whether there was one. */
  undo() {
    const before = this.#past.pop();
    if (before) this.#set(before, "Undone.");
    return before !== undefined;
  }

  /**
   * @param {Entity[]} entities
   * @param {string} told
   */
  #set(entities, told) {
    this.entities = entities;
    this.choice = null;
    this.#draw();
    announce(told);
    this.dispatchEvent(new Event("change"));
  }

  /** The words that an action is about, and whether they were chosen explicitly. */
  get target() {
    if (this.choice) {
      const { anchor, focus } = this.choice;
      return { start: Math.min(anchor, focus), end: Math.max(anchor, focus) + 1, chosen: true };
    }
    const word = this.#hover >= 0 ? this.#hover : this.cursor;
    return { start: word, end: word + 1, chosen: false };
  }

  /**
   * Tags the target. An entity of this type loses it; an entity of another type changes to this one.
   * @param {string} type
   */
  tag(type) {
    const { start, end, chosen } = this.target;
    const exact = this.entities.find((entity) => entity.start === start && entity.end === end);
    const held = chosen ? exact : entityAt(this.entities, start);
    if (held?.type === type) return this.remove();
    const entity = { type, start: held?.start ?? start, end: held?.end ?? end };
    this.cursor = entity.end - 1;
    this.change(withEntity(this.entities, entity), `${this.#textOf(entity)}: ${type}`);
  }

  /** Removes the entities that the target touches. */
  remove() {
    const { start, end } = this.target;
    const kept = without(this.entities, start, end);
    if (kept.length === this.entities.length) return announce("There is no entity here.");
    this.change(kept, "Removed.");
  }

  /** Marks the words of the entity at the target everywhere in the sentence. */
  markSame() {
    const entity = entityAt(this.entities, this.target.start);
    if (!entity) return announce("There is no entity here.");
    const found = sameWords(this.#words, this.entities, entity);
    if (!found.length) return announce(`There is no other ${this.#textOf(entity)}.`);
    const all = [...this.entities, ...found].sort((a, b) => a.start - b.start);
    this.change(all, `${this.#textOf(entity)}: ${found.length} more.`);
  }

  /** Chooses nothing. */
  clear() {
    this.choice = null;
    this.#hover = -1;
    this.#mark();
  }

  /**
   * Chooses these words.
   * @param {number} start
   * @param {number} end
   */
  point(start, end) {
    this.choice = { anchor: start, focus: end - 1 };
    this.cursor = start;
    this.#mark();
  }

  /**
   * Chooses an entity or, where there is none, the word. The next key is about it.
   * @param {number} word
   */
  choose(word) {
    const entity = entityAt(this.entities, word);
    this.point(entity?.start ?? word, entity?.end ?? word + 1);
    this.cursor = word;
  }

  /** Whether keys are for this editor. */
  get engaged() {
    return this.greedy || this.#hover >= 0 || this.contains(document.activeElement);
  }

  /**
   * @param {string} _key
   * @param {KeyboardEvent} event
   * @returns {boolean} whether the key was taken
   */
  press(_key, event) {
    if (!this.editable || this.locked || this.hidden || !this.engaged) return false;
    const key = keyOf(event, state.now.types.map((type) => type.key));
    const type = state.now.types.find((one) => one.key.toLowerCase() === key);
    if (/^Arrow|^Home$|^End$/.test(key)) {
      if (!this.greedy && !this.contains(document.activeElement)) return false;
      this.#move(key, event.shiftKey);
      return true;
    }
    const act = type ? () => this.tag(type.name) : this.#actions()[key];
    if (act && !event.repeat) act();
    return act !== undefined;
  }

  /** @returns {Record<string, () => void>} */
  #actions() {
    const remove = () => this.remove();
    return { x: remove, Delete: remove, a: () => this.markSame(), Escape: () => this.clear() };
  }

  /**
   * @param {string} key
   * @param {boolean} extend
   */
  #move(key, extend) {
    const from = this.#hover >= 0 ? this.#hover : this.cursor;
    const to = neighbour(this.#elements, from, key, this.#rightToLeft);
    this.choice = extend ? { anchor: this.choice?.anchor ?? from, focus: to } : null;
    this.cursor = to;
    this.#hover = -1;
    this.#mark();
    this.#elements[to]?.scrollIntoView({ block: "nearest" });
  }

  get #rightToLeft() {
    return getComputedStyle(this.#text).direction === "rtl";
  }

  #listen() {
    const text = this.#text;
    text.addEventListener("focus", () => (SentenceEditor.active = this));
    text.addEventListener("pointerdown", (event) => this.#down(event));
    text.addEventListener("pointermove", (event) => this.#over(event));
    text.addEventListener("pointerup", (event) => this.#up(event));
    text.addEventListener("pointercancel", () => {
      this.#dragging = false;
      this.clear();
    });
    text.addEventListener("pointerleave", () => {
      this.#hover = -1;
      this.#mark();
    });
    text.addEventListener("dblclick", (event) => {
      const word = this.#wordAt(event);
      if (word < 0 || SentenceEditor.brush) return;
      this.point(word, word + 1);
    });
    text.addEventListener("copy", (event) => {
      event.clipboardData?.setData("text/plain", this.#textOf(this.choice ? this.target : { start: 0, end: this.#words.length }));
      event.preventDefault();
    });
  }

  /**
   * Returns the word under the pointer, or -1.
   * @param {MouseEvent} event
   */
  #wordAt(event) {
    const word = document.elementFromPoint(event.clientX, event.clientY)?.closest(".word");
    return word instanceof HTMLElement ? this.#elements.indexOf(word) : -1;
  }

  /** @param {PointerEvent} event */
  #down(event) {
    if (event.button !== 0 || this.locked) return;
    SentenceEditor.active = this;
    const word = this.#wordAt(event);
    if (word < 0) return this.clear();
    this.#dragging = true;
    this.#text.setPointerCapture(event.pointerId);
    this.point(word, word + 1);
  }

  /** @param {PointerEvent} event */
  #over(event) {
    const word = this.#wordAt(event);
    if (this.#dragging) {
      if (word < 0 || word === this.choice?.focus) return;
      this.choice = { anchor: this.choice?.anchor ?? word, focus: word };
    } else {
      // A browser also tells of a move when new text comes under a mouse at rest. That is no wish to tag it.
      const place = `${event.screenX} ${event.screenY}`;
      const moved = place !== SentenceEditor.#mouse;
      SentenceEditor.#mouse = place;
      if (event.pointerType !== "mouse" || !moved) return;
      SentenceEditor.active = this;
      if (word === this.#hover) return;
      this.#hover = word;
    }
    this.#mark();
  }

  /** @param {PointerEvent} event */
  #up(event) {
    if (!this.#dragging || !this.choice) return;
    this.#dragging = false;
    const { anchor, focus } = this.choice;
    if (anchor === focus) this.choose(focus);
    this.cursor = focus;
    if (event.pointerType !== "mouse") this.#hover = -1;
    if (SentenceEditor.brush) this.tag(SentenceEditor.brush);
    else this.#mark();
  }

  #draw() {
    /** @type {Node[]} */
    const nodes = [];
    this.#drawn = [];
    this.#elements = this.#words.map((word, i) => h("span", { class: "word", id: this.#prefix + i, role: this.editable && "option" }, word));
    for (let i = 0; i < this.#elements.length; i++) {
      nodes.push(gap(this.#gaps[i]));
      const entity = this.entities.find((one) => one.start === i);
      if (!entity) {
        nodes.push(/** @type {Node} */ (this.#elements[i]));
        continue;
      }
      nodes.push(this.#drawEntity(entity));
      i = entity.end - 1;
    }
    nodes.push(gap(this.#gaps.at(-1)));
    fill(this.#text, nodes);
    fill(this.#tags, this.#drawn.map(({ tag }) => tag));
    this.#placeTags();
    this.#mark();
  }

  /** @param {Entity} entity */
  #drawEntity(entity) {
    const { type, start, end, confidence } = entity;
    const color = state.now.types.find((one) => one.name === type)?.color ?? 11;
    const percent = confidence === undefined ? "" : `${Math.round(confidence * 100)} %`;
    const how = confidence === undefined ? "own" : confidence >= SURE ? "sure" : confidence >= DOUBTFUL ? "unsure" : "doubtful";
    const told = percent ? `${type}, suggested, ${percent}` : type;
    /** @type {import("./dom.js").Child[]} */
    const inside = this.#elements.slice(start, end).flatMap((element, i) => (i ? [gap(this.#gaps[start + i]), element] : [element]));
    if (this.editable) {
      for (let i = start; i < end; i++) this.#elements[i]?.setAttribute("aria-label", `${this.#words[i]}, ${told}`);
    } else inside.push(h("span", { class: "unseen" }, ` (${told})`));
    const element = h("span", { class: `entity t${color} ${how}` }, inside);
    const tag = h("span", { class: `tag t${color} ${how}` }, h("b", null, type), percent && h("span", { class: "percent" }, ` ${percent}`));
    this.#drawn.push({ entity, element, tag });
    return element;
  }

  /** Puts the name of each type beneath its entity. They take no room in the text, so that no word moves. */
  #placeTags() {
    if (!this.isConnected) return;
    const box = this.#tags.getBoundingClientRect();
    const rightToLeft = this.#rightToLeft;
    const spots = this.#drawn.map(({ element, tag }) => {
      const rect = element.getClientRects()[0] ?? element.getBoundingClientRect();
      return { tag, y: rect.bottom - box.top, x: rightToLeft ? box.right - rect.right : rect.left - box.left };
    });
    for (const { tag, x, y } of spots) {
      const next = Math.min(...spots.filter((spot) => Math.abs(spot.y - y) < TAG_GAP && spot.x > x).map((spot) => spot.x));
      const room = box.width - x;
      tag.style.top = `${y}px`;
      tag.style.right = rightToLeft ? `${x}px` : "auto";
      tag.style.left = rightToLeft ? "auto" : `${x}px`;
      // A tag ends before the next one of its line, and is moved back if it would leave the sentence's box.
      tag.style.maxWidth = Number.isFinite(next) ? `${Math.max(next - x - TAG_GAP, 0)}px` : "none";
      tag.style.translate = rightToLeft ? `max(0px, calc(100% - ${room}px))` : `min(0px, calc(${room}px - 100%))`;
    }
  }

  /** Shows the cursor, the word under the mouse and the chosen words. */
  #mark() {
    const { start, end, chosen } = this.target;
    this.#elements.forEach((element, i) => {
      const inside = chosen && i >= start && i < end;
      element.classList.toggle("cursor", this.editable && i === this.cursor);
      element.classList.toggle("hover", this.editable && i === this.#hover && !chosen);
      element.classList.toggle("chosen", inside);
      if (this.editable) element.setAttribute("aria-selected", String(inside));
    });
    for (const { entity, tag } of this.#drawn) tag.classList.toggle("lit", entity.start < end && start < entity.end);
    const at = this.#elements[this.cursor];
    if (this.editable && at) this.#text.setAttribute("aria-activedescendant", at.id);
  }

  /** @param {{start: number, end: number}} span */
  #textOf({ start, end }) {
    return this.#words.slice(start, end).map((word, i) => (i ? this.#gaps[start + i] : "") + word).join("");
  }
}

customElements.define("sequst-sentence", SentenceEditor);
onKeys((key, event) => SentenceEditor.active?.press(key, event) ?? false);

/**
 * Returns the text between two words. White space that is no single space is shown as it is.
 * @param {string} [text]
 */
function gap(text = "") {
  return /^ ?$/.test(text) ? document.createTextNode(text) : h("span", { class: "gap" }, text);
}

/**
 * Returns an element that shows a sentence, to be read.
 * @param {Sentence} sentence
 * @param {Entity[]} entities
 */
export function reading(sentence, entities) {
  const element = new SentenceEditor();
  element.show(sentence, entities);
  return element;
}
