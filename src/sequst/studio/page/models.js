// The page Models: trainings, their comparison, exports, data in and out.
import { address, get, post } from "./api.js";
import { intake } from "./data.js";
import { attempt } from "./dialog.js";
import { button, fill, h, table } from "./dom.js";
import { version } from "./row.js";
import { state } from "./state.js";
import { between, counted, duration, KINDS, moment, number, signed, size, tooFew } from "./text.js";
import { trainingBar } from "./training.js";

/** @typedef {import("./api.js").Model} Model */
/** @typedef {import("./api.js").Comparison} Comparison */

const EXPORTS = { folder: "folder", onnx: "ONNX", spacy: "spaCy" };
const FORMATS = ["jsonl", "conll", "labelstudio", "doccano", "prodigy", "argilla", "spacy", "brat", "datasets", "text"];
const PARTS = { labeled: "all labelled sentences", learning: "those for learning", judging: "those for judging" };

/**
 * Shows the page. Returns what ends it.
 * @param {HTMLElement} root
 */
export function modelsPage(root) {
  const training = trainingBar();
  const efforts = h("div", { class: "actions" });
  const list = h("div", { class: "body" });
  const compared = h("div", { class: "body", "aria-live": "polite" });
  /** @type {Set<number>} */
  const picked = new Set();
  /** @type {Set<number>} */
  const unfolded = new Set();

  async function load() {
    /** @type {{models: Model[]}} */
    const { models } = await get("models");
    fill(list, models.length ? [h("ol", { class: "rows" }, models.map(row)), h("div", { class: "actions" }, compare)]
      : h("p", { class: "empty" }, "There is no model yet. The first one is trained after a few labels."));
  }

  const compare = button("Compare the two", () => attempt(async () => {
    const [a, b] = [...picked].sort((one, other) => one - other);
    fill(compared, comparison(a ?? 0, b ?? 0, await get(`models/compare?a=${a}&b=${b}`)));
    compared.scrollIntoView({ block: "nearest" });
  }));

  /** @param {Model} model */
  function row(model) {
    const box = h("input", { type: "checkbox", id: `model-${model.id}` });
    box.checked = picked.has(model.id);
    box.addEventListener("change", () => {
      if (box.checked) picked.add(model.id);
      else picked.delete(model.id);
      allow();
    });
    const made = Object.fromEntries(model.exports.map((one) => [one.as, one]));
    const exports = Object.entries(EXPORTS).map(([as, text]) => made[as]
      ? h("a", { class: "button", href: address(`exports/${encodeURIComponent(made[as].name)}`), download: true }, `Download ${text}, ${size(made[as].size)}`)
      : button(`Export ${text}`, () => attempt(() => post(`models/${model.id}/export`, { as })), { class: "export" }));
    const report = h("a", { class: "button", href: address(`models/${model.id}/report`), target: "_blank", rel: "noopener" }, "Report", h("span", { class: "unseen" }, ` of model ${model.id}, new tab`));
    return h("li", { class: "row model" },
      h("div", { class: "score" }, h("h3", null, `Model ${model.id}`), h("b", null, model.f1 && !tooFew(model.f1) ? number(model.f1.value, 1) : "–"),
        h("span", null, !model.f1 ? "not judged" : tooFew(model.f1) ? "too few judged" : `F1, ${between(model.f1)}`), model.current && h("span", { class: "badge" }, "in use")),
      h("span", { class: "pick" }, box, h("label", { for: box.id }, "Compare", h("span", { class: "unseen" }, ` model ${model.id}`))),
      h("p", { class: "faint" }, `${KINDS[model.kind] ?? model.kind}, ${counted(model.labels, "label")}, judged on ${counted(model.judged, "sentence")}, ${duration(model.seconds)}, ${moment(model.at)}`),
      h("details", { open: unfolded.has(model.id) || model.current, ontoggle: (/** @type {Event} */ event) => fold(model.id, event) },
        h("summary", null, "Report, export, serve", h("span", { class: "unseen" }, ` of model ${model.id}`)),
        h("div", { class: "actions" }, report, exports),
        h("p", null, "Serve it: ", h("code", null, `sequst serve ${state.now.project}/${model.folder}`))));
  }

  /**
   * Remembers which models are unfolded, for the list is drawn again.
   * @param {number} id
   * @param {Event} event
   */
  function fold(id, event) {
    if (event.target instanceof HTMLDetailsElement && event.target.open) unfolded.add(id);
    else unfolded.delete(id);
  }

  /** Sets which buttons can be pressed. */
  function allow() {
    const busy = state.now.training !== null;
    compare.disabled = picked.size !== 2;
    for (const one of root.querySelectorAll("button.export")) /** @type {HTMLButtonElement} */ (one).disabled = busy;
    const { forecast } = state.now;
    /** @param {string} effort */
    const takes = (effort) => (forecast?.[effort] ? `, about ${duration(forecast[effort])}` : "");
    /** @param {string} effort @param {string} text @param {string} kind */
    const start = (effort, text, kind) => button(text + takes(effort), () => attempt(() => post("train", { effort })), { class: kind, disabled: busy });
    fill(efforts, start("default", "Learn from the raw text", "main"), start("thorough", "Thoroughly", ""), start("quick", "Quick training", ""),
      busy && button("Stop", () => attempt(() => post("train/stop")), { class: "danger" }));
  }

  fill(root, h("h1", null, "Models"),
    h("section", { class: "card" }, h("h2", null, "Train"), h("p", null, "The full method learns from your labels and from the text without labels. You can go on labelling meanwhile."), efforts, training.box),
    h("section", { class: "card" }, h("h2", null, "Trainings"), list, compared),
    h("div", { class: "cards" },
      h("section", { class: "card" }, h("h2", null, "Labelled sentences"), download()),
      h("section", { class: "card" }, h("h2", null, "More text"), intake("text", "Add text: choose a file, or drop it here"), intake("labeled", "Add labelled sentences: choose a file, or drop it here"))));
  const ends = [
    state.listen(training.draw),
    state.watch((now) => [now.model?.id, now.training === null], () => void attempt(load).then(allow)),
    state.watch((now) => [now.forecast, now.training === null], allow),
  ];
  return () => ends.forEach((end) => end());
}

/**
 * @param {number} a
 * @param {number} b
 * @param {Comparison} found
 */
function comparison(a, b, found) {
  const types = [...new Set([...Object.keys(found.a.types), ...Object.keys(found.b.types)])];
  /** @param {number | undefined} value */
  const cell = (value) => (value === undefined ? "–" : number(value, 1));
  const rows = [["All", cell(found.a.f1), cell(found.b.f1)], ...types.map((type) => [type, cell(found.a.types[type]), cell(found.b.types[type])])];
  const sure = found.low > 0 || found.high < 0 ? "" : " The interval holds 0, so the two may be equally good.";
  return [
    h("h3", null, `Model ${b} against model ${a}`),
    h("p", null, `${signed(found.gain)} F1 (${signed(found.low)} to ${signed(found.high)}) on ${counted(found.sentences, "judging sentence")}.${sure}`),
    table("F1 by type", ["F1", `Model ${a}`, `Model ${b}`], rows),
    found.differ.length > 0 && h("h3", null, "Where they differ"),
    h("ol", { class: "rows" }, found.differ.map((one) => h("li", { class: "row" },
      version("Labels", one.sentence, one.sentence.labels ?? []), version(`Model ${a}`, one.sentence, one.a), version(`Model ${b}`, one.sentence, one.b)))),
  ];
}

/** Fields that lead to the labelled sentences as a file. */
function download() {
  const format = h("select", { id: "format" }, FORMATS.map((one) => h("option", null, one)));
  const part = h("select", { id: "part" }, Object.entries(PARTS).map(([value, text]) => h("option", { value }, text)));
  const link = h("a", { class: "button main", download: true }, "Download");
  const set = () => (link.href = address(`export?format=${format.value}&only=${part.value}`));
  for (const field of [format, part]) field.addEventListener("change", set);
  set();
  return h("div", { class: "filter" }, h("div", { class: "field" }, h("label", { for: format.id }, "Format"), format),
    h("div", { class: "field" }, h("label", { for: part.id }, "Which"), part), link);
}
