// Labels and skips on their way to the server. They lie in localStorage until the server has saved them.
import { ApiError, person, post } from "./api.js";
import { drop, keep, keysOf, load, randomId } from "./storage.js";
import { state } from "./state.js";

/**
 * @typedef {import("./api.js").Entity} Entity
 * @typedef {import("./api.js").Sentence} Sentence
 * @typedef {{kind: "labels" | "skip", sentence: Sentence, entities: Entity[], decides: boolean, who: string}} Item
 */

const LONGEST_WAIT = 10_000;
const DRAFTS = 50;

class Outbox {
  /** Whether something is being sent. */
  busy = false;
  /** Called if the server refuses an item. Its labels are then a draft again. */
  refused = (/** @type {Item} */ _item, /** @type {string} */ _why) => {};
  /** Called after every change. */
  changed = () => {};
  #wait = 1000;
  #timer = 0;
  /** @type {Promise<Set<string>> | null} */
  #running = null;

  get #prefix() {
    return `sequst.outbox.${state.project}.`;
  }

  /** How many sentences wait. */
  get waiting() {
    return keysOf(this.#prefix).length;
  }

  /**
   * Keeps an item. Returns its key.
   * @param {"labels" | "skip"} kind
   * @param {Sentence} sentence
   * @param {Entity[]} [entities]
   * @param {boolean} [decides]
   */
  add(kind, sentence, entities = [], decides = false) {
    const key = `${this.#prefix}${Date.now()}.${randomId()}`;
    keep(key, { kind, sentence, entities, decides, who: person() });
    return key;
  }

  /**
   * Takes back the newest item that is not sent yet.
   * @returns {Item | null}
   */
  takeBack() {
    const key = this.busy ? undefined : keysOf(this.#prefix).at(-1);
    if (!key) return null;
    const item = load(key);
    drop(key);
    this.changed();
    return item;
  }

  /** Sends all that waits, oldest first. Returns the keys of those that the server refused. */
  send() {
    this.#running ??= this.#sendAll().finally(() => (this.#running = null));
    return this.#running;
  }

  async #sendAll() {
    clearTimeout(this.#timer);
    /** @type {Set<string>} */
    const refused = new Set();
    for (let key = keysOf(this.#prefix)[0]; key; key = keysOf(this.#prefix)[0]) {
      /** @type {Item} */
      const item = load(key);
      this.#set(true);
      try {
        const body = item.kind === "labels" ? { entities: item.entities, decides: item.decides } : {};
        await post(`sentences/${item.sentence.id}/${item.kind}`, body, item.who);
        drop(key);
        this.#wait = 1000;
        if (state.trouble) await state.refresh();
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        if (error.passing) {
          state.lost(error);
          this.#wait = Math.min(this.#wait * 1.6, LONGEST_WAIT);
          this.#timer = window.setTimeout(() => void this.send(), this.#wait);
          break;
        }
        drop(key);
        drafts.save(item.sentence, item.entities);
        refused.add(key);
        this.refused(item, error.message);
      }
    }
    this.#set(false);
    return refused;
  }

  /** @param {boolean} busy */
  #set(busy) {
    this.busy = busy;
    this.changed();
  }
}

export const outbox = new Outbox();

/** Marks that are not accepted yet, by sentence. A reload loses none. */
export const drafts = {
  get prefix() {
    return `sequst.draft.${state.project}.`;
  },

  /**
   * @param {Sentence} sentence
   * @param {Entity[]} entities
   */
  save(sentence, entities) {
    keep(this.prefix + sentence.id, { text: sentence.text, entities, at: Date.now() });
  },

  /**
   * @param {Sentence} sentence
   * @returns {Entity[] | null}
   */
  load(sentence) {
    const draft = load(this.prefix + sentence.id);
    return draft?.text === sentence.text ? draft.entities : null;
  },

  /** @param {Sentence} sentence */
  drop(sentence) {
    drop(this.prefix + sentence.id);
  },

  /** Forgets the oldest ones. */
  prune() {
    const byAge = keysOf(this.prefix).sort((a, b) => load(b).at - load(a).at);
    byAge.slice(DRAFTS).forEach(drop);
  },
};
