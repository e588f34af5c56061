// The studio's API: what it gives, and one function that calls it.
import { load, tab } from "./storage.js";
import { sentence } from "./text.js";

/**
 * @typedef {{type: string, start: number, end: number, confidence?: number}} Entity  start and end count words
 * @typedef {{who: string, entities: Entity[]}} Opinion
 * @typedef {{id: number, text: string, words: string[], offsets: [number, number][], suggestions: Entity[], why: string,
 *   judging: boolean, second: boolean, labels: Entity[] | null, who: string | null, at: number | null, skipped: boolean,
 *   others?: Opinion[]}} Sentence
 * @typedef {{name: string, key: string, color: number, entities: number, sentences: number, earlier: number}} Type
 * @typedef {{value: number, low: number, high: number, level: number, sentences: number, entities: number}} F1
 * @typedef {{as: string, name: string, size: number}} Export
 * @typedef {{id: number, at: number, kind: string, method: string, labels: number, judged: number, f1: F1 | null,
 *   types: Record<string, {f1: number, entities: number}>, seconds: number, current: boolean, folder: string,
 *   exports: Export[]}} Model
 * @typedef {{job: number, kind: string, phase: string, done: number, total: number, seconds: number, left: number | null,
 *   waiting: boolean}} Training
 * @typedef {{model: number, labels: number, judged: number, f1: number, low: number, high: number}} Point
 * @typedef {{labels: number, gain: number, low: number, high: number} | {too_few: string}} Outlook
 * @typedef {{judging_share: number, agreement_share: number, learn_judging: boolean, train: boolean, encoder: string}} Settings
 * @typedef {{id?: string, project: string, version: string, demo: boolean, labeled: number, judging: number, skipped: number,
 *   raw: number, sentences: number, types: Type[], model: Model | null, training: Training | null, problem: string | null,
 *   next_training: {at: number, left: number} | null, forecast: Record<string, number> | null, f1: F1 | null, curve: Point[],
 *   outlook: Outlook | null, few: {type: string, entities: number, wanted: number}[],
 *   people: {name: string, labeled: number, now: boolean}[],
 *   agreement: {sentences: number, words: number, kappa: number, types: Record<string, number | null>} | null,
 *   differences: number, suspects: {count: number, at: number, labels: number} | null, uncertain: number,
 *   settings: Settings}} State
 * @typedef {{sentence: Sentence, kind: string, start: number, end: number, given: Entity | null, alternative: Entity | null,
 *   doubt: number}} Suspect
 * @typedef {{sentences: number, a: {f1: number, types: Record<string, number>}, b: {f1: number, types: Record<string, number>},
 *   gain: number, low: number, high: number, differ: {sentence: Sentence, a: Entity[], b: Entity[]}[]}} Comparison
 */

/** An answer that is no success. `status` is 0 if the server does not answer at all. */
export class ApiError extends Error {
  /**
   * @param {string} message
   * @param {number} status
   */
  constructor(message, status) {
    super(message);
    this.status = status;
  }

  /** Whether the same request may succeed later. */
  get passing() {
    return this.status === 0 || this.status >= 500 || this.status === 429;
  }
}

/** Returns the name of the person at this browser. */
export function person() {
  return String(load("sequst.name") || "annotator");
}

/** Asks for the token. main.js puts the dialog here. */
export const login = { ask: () => Promise.resolve() };

/**
 * Returns the address of a path of the API.
 * @param {string} path
 */
export function address(path) {
  return new URL(`api/${path}`, document.baseURI).href;
}

/**
 * Calls the API and returns its answer. Raises ApiError with the server's own sentence.
 * @param {string} method
 * @param {string} path
 * @param {{json?: unknown, file?: Blob, who?: string}} [what]
 * @returns {Promise<any>}
 */
async function call(method, path, { json, file, who } = {}) {
  /** @type {Record<string, string>} */
  const headers = { "X-Annotator": encodeURIComponent(who ?? person()), "X-Tab": tab };
  if (file) headers["Content-Type"] = "application/octet-stream";
  else if (json !== undefined) headers["Content-Type"] = "application/json";
  let answer;
  try {
    answer = await fetch(address(path), { method, headers, body: file ?? (json === undefined ? null : JSON.stringify(json)) });
  } catch {
    throw new ApiError("The server does not answer. Start it again with `sequst studio`, or look at its window.", 0);
  }
  const given = await answer.json().catch(() => null);
  if (answer.ok) return given;
  if (answer.status === 401 && path !== "login") {
    await login.ask();
    return call(method, path, { json, file, who });
  }
  const told = typeof given?.error === "string" ? given.error : `The server answered ${answer.status}. Its window says why.`;
  throw new ApiError(sentence(told), answer.status);
}

/** @param {string} path */
export const get = (path) => call("GET", path);

/**
 * @param {string} path
 * @param {unknown} [json]
 * @param {string} [who]
 */
export const post = (path, json = {}, who) => call("POST", path, { json, who });

/**
 * @param {string} path
 * @param {Blob} file
 */
export const put = (path, file) => call("PUT", path, { file });
