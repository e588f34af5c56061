// The page Progress: what the labels brought so far, and the settings.
import { post } from "./api.js";
import { curve } from "./chart.js";
import { attempt, confirm } from "./dialog.js";
import { announce, fill, h, table } from "./dom.js";
import { state } from "./state.js";
import { between, counted, number, sentence, signed, tooFew } from "./text.js";
import { trainingBar } from "./training.js";

/** @typedef {import("./api.js").State} State */
/** @typedef {import("./dom.js").Child} Child */

/**
 * Shows the page. Returns what ends it.
 * @param {HTMLElement} root
 */
export function progressPage(root) {
  /** @type {(() => void)[]} */
  const ends = [];
  /**
   * A card that is drawn again when what it shows has changed.
   * @param {string} title
   * @param {(state: State) => unknown} pick
   * @param {() => Child[]} content
   * @param {string} [kind]
   */
  const card = (title, pick, content, kind = "") => {
    const body = h("div", { class: "body" });
    ends.push(state.watch(pick, () => fill(body, content())));
    return h("section", { class: `card ${kind}` }, h("h2", null, title), body);
  };
  const training = trainingBar();
  ends.push(state.listen(training.draw));
  fill(root, h("h1", null, "Progress"), h("div", { class: "cards" },
    card("F1 to expect", (now) => now.f1, score),
    card("Labels so far", (now) => [now.labeled, now.judging, now.skipped, now.raw], labels),
    card("Learning curve", (now) => [now.curve, now.outlook], learning, "wide"),
    h("section", { class: "card" }, h("h2", null, "Training"), training.box),
    card("Types that lack examples", (now) => now.few, few),
    card("People", (now) => [now.people, now.agreement, now.differences], people),
    card("Settings", (now) => now.settings, settings)));
  return () => ends.forEach((end) => end());
}

function score() {
  const { f1 } = state.now;
  if (!f1) return [h("p", null, "Not judged yet. It takes a first training, and a few sentences for judging that you labelled.")];
  const judged = `${counted(f1.sentences, "random sentence")} with ${counted(f1.entities, "entity", "entities")}`;
  return [
    tooFew(f1)
      ? h("p", null, `Too early to say: judged from ${judged}.`)
      : h("p", { class: "score" }, h("b", null, number(f1.value, 1)), h("span", null, between(f1))),
    h("p", { class: "faint" }, `On new text of this kind the F1 lies between ${number(f1.low, 1)} and ${number(f1.high, 1)} with a probability of ${number(f1.level * 100)} %, as judged from ${judged}.`),
  ];
}

function labels() {
  const { labeled, judging, skipped, raw } = state.now;
  /** @type {[string, number, string][]} */
  const rows = [["Labelled", labeled, "labeled"], ["For judging, of these", judging, "judging"], ["Skipped", skipped, "skipped"], ["Left to label", raw, "raw"]];
  return [h("dl", { class: "numbers" }, rows.map(([name, value, status]) =>
    h("div", null, h("dt", null, h("a", { href: `#review/all?status=${status}` }, name)), h("dd", null, number(value)))))];
}

function learning() {
  const { curve: points, outlook } = state.now;
  const told = !outlook ? "" : "too_few" in outlook ? `${sentence(outlook.too_few)} Then this says what more labels would bring.`
    : `The next ${outlook.labels} labels would likely bring ${signed(outlook.gain)} F1 (${signed(outlook.low)} to ${signed(outlook.high)}).`;
  return [curve(points), told && h("p", null, told)];
}

function few() {
  const rows = state.now.few.map(({ type, entities, wanted }) => {
    const bar = h("progress", { max: wanted, value: entities, "aria-label": `${type}: entities so far` });
    return h("li", null, h("a", { href: `#review/all?type=${encodeURIComponent(type)}` }, type), h("span", { class: "faint" }, `${entities} of ${wanted} entities`), bar);
  });
  return [rows.length ? h("ul", { class: "few" }, rows) : h("p", null, "Every type has enough examples to begin with.")];
}

function people() {
  const { people: all, agreement, differences } = state.now;
  /** @type {Child[]} */
  const shown = [h("ul", { class: "plain" }, all.map((one) => h("li", null, `${one.name}: ${counted(one.labeled, "sentence")}${one.now ? ", labels now" : ""}`)))];
  if (agreement) {
    const kinds = Object.entries(agreement.types).map(([type, kappa]) => [type, kappa === null ? "too few" : number(kappa, 2)]);
    shown.push(
      h("p", null, `Agreement: Cohen's kappa is ${number(agreement.kappa, 2)} on ${counted(agreement.sentences, "sentence")} that two people labelled. 1 is full agreement, 0 is chance.`),
      table("Agreement by type", ["Type", "Kappa"], kinds));
  }
  if (differences) shown.push(h("p", null, h("a", { href: "#review/differences" }, `They differ on ${counted(differences, "sentence")}.`)));
  return all.length ? shown : [h("p", null, "Nobody has labelled yet.")];
}

/** @returns {Child[]} */
function settings() {
  const { judging_share: judging, agreement_share: agreement, learn_judging: learn, train } = state.now.settings;
  return [
    share("judging_share", "Share of sentences for judging", judging, "They are chosen at random and measure the model."),
    share("agreement_share", "Share of judging sentences that two people label", agreement, "They measure agreement."),
    toggle("train", "Train while I label", train, async () => true),
    toggle("learn_judging", "Learn from the judging sentences", learn, (wanted) => !wanted ? Promise.resolve(true)
      : confirm("Learn from the judging sentences?", "The model gets more to learn from. The F1 cannot be judged on these sentences from then on. Do this when you have labelled enough.", "Learn from them")),
  ];
}

/** @param {Partial<import("./api.js").Settings>} changed */
const save = (changed) => attempt(async () => {
  state.set(await post("settings", changed));
  announce("Saved.");
});

/**
 * @param {"judging_share" | "agreement_share"} name
 * @param {string} text
 * @param {number} value
 * @param {string} note
 */
function share(name, text, value, note) {
  const field = h("input", { type: "number", min: 0, max: 100, step: 5, id: name, value: Math.round(value * 100), "aria-describedby": `${name}-note` });
  field.addEventListener("change", () => field.reportValidity() && void save({ [name]: field.valueAsNumber / 100 }));
  return h("div", { class: "setting" }, h("label", { for: name }, text), h("span", null, field, " %"), h("p", { class: "faint", id: `${name}-note` }, note));
}

/**
 * @param {"train" | "learn_judging"} name
 * @param {string} text
 * @param {boolean} value
 * @param {(wanted: boolean) => Promise<boolean>} allowed
 */
function toggle(name, text, value, allowed) {
  const field = h("input", { type: "checkbox", id: name });
  field.checked = value;
  field.addEventListener("change", async () => {
    if (await allowed(field.checked)) return save({ [name]: field.checked });
    field.checked = value;
  });
  return h("div", { class: "setting" }, h("label", { for: name }, text), field);
}
