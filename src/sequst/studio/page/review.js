// The page Review: what looks wrong, what is unsure, where people differ, all sentences, the types.
import { ApiError, get, post } from "./api.js";
import { attempt } from "./dialog.js";
import { button, fill, h } from "./dom.js";
import { keyOf, onKeys } from "./keys.js";
import { decide, editButton, editRow, settle, version } from "./row.js";
import { SentenceEditor } from "./sentence.js";
import { withEntity, without } from "./spans.js";
import { state } from "./state.js";
import { counted, moment, number } from "./text.js";
import { trainingBar } from "./training.js";
import { dropBrush, typeBar } from "./typebar.js";
import { typesTab } from "./types.js";

/** @typedef {import("./api.js").Entity} Entity */
/** @typedef {import("./api.js").Sentence} Sentence */
/** @typedef {import("./api.js").Suspect} Suspect */
/** @typedef {(root: HTMLElement, filter: URLSearchParams) => (() => void) | void} Tab  shows itself, may return what ends it */

/** @type {Record<string, [string, Tab]>} */
const TABS = {
  suspects: ["Looks wrong", suspectsTab],
  uncertain: ["Least sure", uncertainTab],
  differences: ["Differences", differencesTab],
  all: ["All sentences", allTab],
  types: ["Types", typesTab],
};
const PAGE = 25;
const STATUS = [["all", "All"], ["labeled", "Labelled"], ["learning", "Labelled, for learning"], ["judging", "Labelled, for judging"], ["skipped", "Skipped"], ["raw", "Not labelled"], ["differ", "People differ"]];

/**
 * Shows the page. Returns what ends it.
 * @param {HTMLElement} root
 * @param {string} rest the tab, and for All sentences its filter
 */
export function reviewPage(root, rest) {
  const [name = "", filter = ""] = rest.split("?");
  const [title, tab] = TABS[name] ?? TABS.suspects ?? ["", allTab];
  const links = Object.entries(TABS).map(([key, [text]]) => h("a", { href: `#review/${key}`, "aria-current": text === title && "page" }, text));
  const body = h("section", { "aria-label": `Review: ${title}` });
  fill(root, h("h1", null, "Review"), h("nav", { class: "tabs", "aria-label": "Review" }, links), body);
  const end = tab(body, new URLSearchParams(filter));
  const keys = onKeys((_key, event) => {
    const editor = SentenceEditor.active;
    const key = keyOf(event);
    if (key === "Escape") dropBrush();
    if (!editor?.engaged || event.repeat) return false;
    if (key === "u") return editor.undo();
    return key === "Enter" && editor.dispatchEvent(new Event("accept"));
  });
  return () => {
    end?.();
    keys();
    dropBrush();
  };
}

/**
 * Puts what `load` returns in the box, or the server's reason.
 * @param {HTMLElement} box
 * @param {() => Promise<import("./dom.js").Child[]>} load
 */
async function loadInto(box, load) {
  box.setAttribute("aria-busy", "true");
  try {
    fill(box, await load());
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    state.lost(error);
    fill(box, h("p", { class: "problem" }, error.message));
  }
  box.removeAttribute("aria-busy");
}

/** @type {Tab} */
function suspectsTab(root) {
  const training = trainingBar();
  const list = h("div");
  const look = button("Look for wrong labels", () => attempt(() => post("suspects")), { class: "main" });
  fill(root, h("p", null, "Models that have not learnt a label judge it. Labels that they find unlikely come first. The search takes minutes."), h("div", { class: "actions" }, look), training.box, list);
  const ends = [
    state.listen(training.draw),
    state.watch((now) => now.training !== null, () => {
      look.disabled = state.now.training !== null;
      training.box.hidden = state.now.training === null;
    }),
    state.watch((now) => now.suspects?.at, () => void loadInto(list, load)),
  ];
  async function load() {
    const { at, labels, suspects } = await get("suspects");
    if (at === null) return [h("p", { class: "empty" }, "Nobody has looked for wrong labels yet.")];
    const told = `${counted(labels, "sentence")} looked through, ${moment(at)}. ${suspects.length ? "" : "No label looks wrong."}`;
    return [h("p", { class: "faint" }, told), h("ol", { class: "rows" }, suspects.map(suspectRow))];
  }
  return () => ends.forEach((end) => end());
}

/** @param {Suspect} suspect */
function suspectRow(suspect) {
  const { sentence, start, end, given, alternative, kind, doubt } = suspect;
  const labels = sentence.labels ?? [];
  const rest = given ? without(labels, given.start, given.end) : labels;
  const better = alternative ? withEntity(rest, alternative) : rest;
  const row = h("li", { class: "row" });
  const take = async () => (await decide(sentence, better)) !== "refused" && settle(row);
  const keep = () => attempt(async () => {
    await post(`sentences/${sentence.id}/fine`, { start, end });
    settle(row);
  });
  fill(row, h("p", { class: "kind" }, kind[0]?.toUpperCase() + kind.slice(1), h("span", { class: "faint" }, ` doubt ${number(doubt, 1)}`)),
    version("Given", sentence, labels, start, end), version("Suggested", sentence, better, start, end),
    h("div", { class: "actions" }, button("Take the suggestion", take, { class: "main" }), button("Keep it as it is", keep), editButton(row, sentence)));
  return row;
}

/** @type {Tab} */
function uncertainTab(root) {
  const types = typeBar();
  const list = h("div");
  fill(root, h("p", null, "Entities of sentences without labels that the tagger is least sure of. Correct the sentence and accept it."), types.bar, list);
  const load = () => void loadInto(list, async () => {
    /** @type {{entities: {sentence: Sentence, entity: Entity}[]}} */
    const { entities } = await get("uncertain");
    const seen = new Set();
    const rows = entities.filter(({ sentence }) => !seen.has(sentence.id) && seen.add(sentence.id)).map(({ sentence, entity }) => {
      const row = editRow(sentence, { entities: sentence.suggestions, done: () => settle(row) });
      const editor = row.querySelector("sequst-sentence");
      if (editor instanceof SentenceEditor) editor.point(entity.start, entity.end);
      return row;
    });
    return [rows.length ? h("ol", { class: "rows" }, rows) : h("p", { class: "empty" }, state.now.model ? "The model is sure of the rest." : "There is nothing here yet. It takes a first training.")];
  });
  const ends = [state.watch((now) => now.uncertain > 0, load), state.watch((now) => now.types, types.draw)];
  return () => ends.forEach((end) => end());
}

/** @type {Tab} */
function differencesTab(root) {
  const list = h("div");
  fill(root, h("p", null, "Sentences that two people labelled in different ways. Pick the labels that are right, or edit."), list);
  void loadInto(list, async () => {
    /** @type {{sentences: Sentence[]}} */
    const { sentences } = await get("sentences?status=differ&limit=50");
    return [sentences.length ? h("ol", { class: "rows" }, sentences.map(differenceRow)) : h("p", { class: "empty" }, "There are no differences between people.")];
  });
}

/** @param {Sentence} sentence */
function differenceRow(sentence) {
  const row = h("li", { class: "row" });
  const opinions = new Map((sentence.others ?? []).map(({ who, entities }) => [who, entities]));
  if (sentence.who && sentence.labels) opinions.set(sentence.who, sentence.labels);
  const versions = [...opinions].map(([who, entities]) => {
    const take = async () => (await decide(sentence, entities)) !== "refused" && settle(row);
    const shown = version(who, sentence, entities);
    shown.append(button(`Take the labels of ${who}`, take));
    return shown;
  });
  fill(row, versions, h("div", { class: "actions" }, editButton(row, sentence)));
  return row;
}

/** @type {Tab} */
function allTab(root, filter) {
  const types = typeBar();
  const search = h("input", { type: "search", id: "search", value: filter.get("q") ?? "" });
  const names = state.now.types.map((type) => [type.name, type.name]);
  const status = choice("status", STATUS, filter);
  const type = choice("type", [["", "Any"], ...names], filter);
  const before = choice("before_type", [["", "–"], ...names], filter);
  const list = h("div");
  let offset = 0;
  const show = (to = 0) => {
    offset = to;
    const query = new URLSearchParams({ status: status.value, type: type.value, q: search.value, before_type: before.value, offset: String(to), limit: String(PAGE) });
    return loadInto(list, () => page(query));
  };
  /** @param {URLSearchParams} query */
  async function page(query) {
    /** @type {{total: number, sentences: Sentence[]}} */
    const { total, sentences } = await get(`sentences?${query}`);
    const last = offset + sentences.length;
    const back = button("Previous", () => show(Math.max(offset - PAGE, 0)));
    const on = button("Next", () => show(last));
    back.disabled = offset === 0;
    on.disabled = last >= total;
    const told = total ? `${number(offset + 1)} to ${number(last)} of ${counted(total, "sentence")}` : "No sentence fits.";
    const rows = sentences.map((sentence) => editRow(sentence));
    return [h("p", { class: "faint", role: "status" }, told), h("ol", { class: "rows" }, rows), total > PAGE && h("div", { class: "actions" }, back, on)];
  }
  let timer = 0;
  search.addEventListener("input", () => {
    clearTimeout(timer);
    timer = window.setTimeout(() => void show(), 250);
  });
  for (const field of [status, type, before]) field.addEventListener("change", () => void show());
  const form = h("form", { class: "filter", role: "search", onsubmit: (/** @type {Event} */ event) => event.preventDefault() },
    labelled("Search", search), labelled("Status", status), labelled("With an entity of type", type), labelled("Labelled before the type", before));
  fill(root, form, h("p", { class: "faint" }, "Click an entity and press the key of a type to change it. Changes to labelled sentences are saved at once."), types.bar, list);
  void show();
  return state.watch((now) => now.types, types.draw);
}

/**
 * @param {string} name
 * @param {string[][]} options values and texts
 * @param {URLSearchParams} filter
 */
function choice(name, options, filter) {
  const field = h("select", { id: name }, options.map(([value, text]) => h("option", { value }, text)));
  field.value = filter.get(name) ?? options[0]?.[0] ?? "";
  return field;
}

/**
 * @param {string} text
 * @param {HTMLElement} field
 */
function labelled(text, field) {
  return h("div", { class: "field" }, h("label", { for: field.id }, text), field);
}
