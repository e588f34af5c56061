// The state of the project, as the server last told it.
import { address, ApiError, get } from "./api.js";

/** @typedef {import("./api.js").State} State */

const POLL = 3000;

class Store {
  /** @type {State | null} */
  value = null;
  /** Why the last request failed; null if the server answers. @type {string | null} */
  trouble = null;
  /** @type {Set<() => void>} */
  #listeners = new Set();
  /** @type {EventSource | null} */
  #source = null;
  #timer = 0;

  /** The state. Only for code that runs after the first one has come. */
  get now() {
    if (!this.value) throw new Error("the state has not come yet");
    return this.value;
  }

  /** What keeps the labels that wait in this browser apart from those of another project. */
  get project() {
    return this.value?.id ?? this.value?.project ?? "";
  }

  /**
   * Calls the function after every change, until the one that is returned is called.
   * @param {() => void} listener
   */
  listen(listener) {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /**
   * Draws now, and again whenever what `pick` returns has changed. Returns what ends it.
   * @param {(state: State) => unknown} pick
   * @param {() => void} draw
   */
  watch(pick, draw) {
    let drawn = JSON.stringify(pick(this.now));
    draw();
    return this.listen(() => {
      const picked = JSON.stringify(pick(this.now));
      if (picked === drawn) return;
      drawn = picked;
      draw();
    });
  }

  /** Follows the server. A hidden tab does not: a browser opens only six connections to one server. */
  follow() {
    document.addEventListener("visibilitychange", () => (document.hidden ? this.#close() : this.#open()));
    if (!document.hidden) this.#open();
  }

  /** Asks for the state once. Returns whether the server answered. */
  async refresh() {
    try {
      this.set(await get("state"));
    } catch (error) {
      this.lost(error);
    }
    return this.trouble === null;
  }

  /** @param {State} value */
  set(value) {
    this.value = value;
    this.trouble = null;
    this.#tell();
  }

  /**
   * Notes that a request failed, and asks again until the server answers.
   * @param {unknown} error
   */
  lost(error) {
    if (!(error instanceof ApiError) || !error.passing) return;
    this.trouble = error.status ? error.message.replace(/\.$/, "") : "the server does not answer";
    this.#tell();
    this.#askIn(POLL);
  }

  #tell() {
    for (const listener of [...this.#listeners]) listener();
  }

  #open() {
    this.#close();
    const source = new EventSource(address("events"));
    this.#source = source;
    source.addEventListener("state", (event) => this.set(JSON.parse(event.data)));
    source.addEventListener("error", () => this.#askIn(POLL / 3));
  }

  /**
   * Asks for the state in a while. The browser mends a broken stream by itself, unless it gave up.
   * @param {number} milliseconds
   */
  #askIn(milliseconds) {
    clearTimeout(this.#timer);
    this.#timer = window.setTimeout(async () => {
      const stream = this.#source?.readyState;
      if (!this.trouble && stream === EventSource.OPEN) return;
      if (!(await this.refresh())) return;
      if (stream === EventSource.CLOSED) this.#open();
      else if (stream === EventSource.CONNECTING) this.#askIn(POLL);
    }, milliseconds);
  }

  #close() {
    clearTimeout(this.#timer);
    this.#source?.close();
    this.#source = null;
  }
}

export const state = new Store();
