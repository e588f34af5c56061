// The page Label: one sentence, the types, and what a label brought.
import { ApiError, get, post } from "./api.js";
import { announce, button, clearNotices, fill, h, notice } from "./dom.js";
import { keyOf, onKeys, showKeys } from "./keys.js";
import { drafts, outbox } from "./outbox.js";
import { SentenceEditor } from "./sentence.js";
import { plain } from "./spans.js";
import { state } from "./state.js";
import { between, number, tooFew } from "./text.js";
import { trainingBar } from "./training.js";
import { dropBrush, typeBar } from "./typebar.js";

/**
 * @typedef {import("./api.js").Entity} Entity
 * @typedef {import("./api.js").Sentence} Sentence
 * @typedef {import("./api.js").Type} Type
 */

const JUDGING = "For judging: chosen at random, shown without suggestions. It measures the model and is not learnt.";
const HOW = "Point at a word and press the key of its type. Drag for several words. Enter accepts.";
const SECOND = "Another person has labelled this sentence too. Your labels show how well you agree.";

/**
 * Shows the page. Returns what ends it.
 * @param {HTMLElement} root
 */
export function labelPage(root) {
  const editor = new SentenceEditor();
  editor.greedy = true;
  const types = typeBar();
  const counters = counterBar();
  const judging = h("p", { class: "judging" });
  const why = h("p", { class: "why" });
  const how = h("p", { class: "how" });
  const card = h("section", { class: "card sentence", "aria-label": "Sentence" }, judging, how, editor, why);
  const actions = h("div", { class: "actions bottom" },
    button("Accept", accept, { class: "main", keys: "Enter" }),
    button("Skip", skip, { keys: "Backspace" }),
    button("Undo", undo, { keys: "u" }),
    button("Keys", showKeys, { keys: "?" }));
  fill(root, h("div", { class: "label-page" }, h("div", { class: "work" }, h("h1", { class: "unseen" }, "Label"), types.bar, card, actions), counters.box));

  // A mouse leaves the focus on the button, where Enter would press it again.
  actions.addEventListener("click", (event) => event.detail > 0 && editor.take(), true);

  /** @type {Sentence | null} */
  let current = null;
  let busy = false;
  let stuck = false;
  let fresh = true;
  let open = true;
  let known = state.now.types;
  let left = state.now.raw;

  /**
   * @param {Sentence} sentence
   * @param {Entity[]} [given] labels that are taken back
   */
  function show(sentence, given) {
    current = sentence;
    const names = new Set(state.now.types.map((type) => type.name));
    const entities = given ?? drafts.load(sentence) ?? sentence.labels ?? sentence.suggestions;
    if (given) drafts.save(sentence, given);
    editor.hidden = false;
    editor.show(sentence, entities.filter((entity) => names.has(entity.type)), { editable: true });
    fill(judging, sentence.judging && JUDGING);
    fill(how, state.now.labeled === 0 && HOW);
    fill(why, [!sentence.judging && sentence.why, sentence.second && SECOND].filter(Boolean).join(" "));
    card.classList.toggle("for-judging", sentence.judging);
    const marks = entities.map((entity) => `${sentence.words.slice(entity.start, entity.end).join(" ")}, ${entity.type}`);
    announce([sentence.judging ? "For judging." : "", sentence.text, marks.length ? `Marked: ${marks.join("; ")}.` : ""].join(" "));
    if (fresh || document.activeElement === document.body || root.contains(document.activeElement)) editor.take();
    fresh = false;
  }

  /** @param {string} told */
  function showNone(told) {
    current = null;
    editor.hidden = true;
    fill(judging);
    fill(how);
    fill(why, told);
    card.classList.remove("for-judging");
  }

  /** Shows the next sentence, once all that waits is saved. */
  async function next() {
    if (outbox.waiting) await outbox.send();
    if (outbox.waiting) {
      stuck = true;
      return showNone("The next sentence comes as soon as the server has saved the last one.");
    }
    const sentence = await get("next");
    stuck = false;
    if (!open) return;
    if (sentence.id === null) showNone(sentence.why);
    else show(sentence);
    if (sentence.id === null) announce(sentence.why);
  }

  /**
   * Runs one action after the other has ended. Tells what went wrong.
   * @param {() => Promise<unknown>} act
   */
  async function once(act) {
    if (busy) return;
    busy = editor.locked = true;
    try {
      await act();
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      state.lost(error);
      stuck = error.passing;
      if (stuck && !current) showNone(error.message);
      else notice(error.message);
    } finally {
      busy = editor.locked = false;
    }
  }

  /**
   * Sends labels or a skip, and goes on unless the server refuses them.
   * @param {"labels" | "skip"} kind
   */
  const send = (kind) => once(async () => {
    if (!current) return;
    clearNotices();
    const sentence = current;
    const key = outbox.add(kind, sentence, plain(editor.entities));
    if (kind === "labels") drafts.drop(sentence);
    const refused = await outbox.send();
    if (!refused.has(key)) await next();
  });

  function accept() {
    return send("labels");
  }

  function skip() {
    return send("skip");
  }

  function undo() {
    if (busy || (current && editor.undo())) return;
    return once(async () => {
      const kept = outbox.takeBack();
      if (kept) return show(kept.sentence, kept.kind === "labels" ? kept.entities : undefined);
      const { undone, sentence } = await post("undo");
      if (!sentence) return announce("There is nothing to undo.");
      show(sentence, undone === "labels" ? sentence.labels ?? [] : undefined);
    });
  }

  const keys = onKeys((_key, event) => {
    const act = { Enter: accept, Backspace: skip, u: undo, "?": showKeys }[keyOf(event)];
    if (act && !event.repeat) void act();
    if (event.key === "Escape" && dropBrush()) types.draw();
    return act !== undefined;
  });

  editor.addEventListener("change", () => current && drafts.save(current, editor.entities));

  const follow = state.listen(() => {
    counters.draw();
    if (JSON.stringify(known.map(look)) !== JSON.stringify(state.now.types.map(look))) {
      editor.entities = followTypes(editor.entities, known, state.now.types);
      types.draw();
      if (current) editor.redraw();
    }
    known = state.now.types;
    if (!current && !state.trouble && (outbox.waiting || left !== state.now.raw || stuck)) void once(next);
    left = state.now.raw;
  });

  void once(next);
  return () => {
    open = false;
    keys();
    follow();
    dropBrush();
  };
}

/** @param {Type} type */
function look(type) {
  return [type.name, type.key, type.color];
}

/**
 * Returns the entities after types were renamed or deleted elsewhere. A type that keeps its key and colour was renamed.
 * @param {Entity[]} entities
 * @param {Type[]} before
 * @param {Type[]} after
 */
function followTypes(entities, before, after) {
  return entities.flatMap((entity) => {
    if (after.some((type) => type.name === entity.type)) return [entity];
    const old = before.find((type) => type.name === entity.type);
    const renamed = after.find((type) => type.key === old?.key && type.color === old?.color);
    return renamed ? [{ ...entity, type: renamed.name }] : [];
  });
}

/** The counters beside the sentence. */
function counterBar() {
  const labeled = h("b");
  const score = h("b");
  const interval = h("span", { class: "faint" });
  const raw = h("b");
  const training = trainingBar();
  const box = h("aside", { class: "counters", "aria-label": "So far" },
    h("p", null, labeled, h("span", null, "labelled")),
    h("p", null, score, h("span", null, "F1 ", interval)),
    h("p", null, raw, h("span", null, "left")),
    training.box);

  function draw() {
    const { f1, labeled: count, raw: left } = state.now;
    fill(labeled, number(count));
    fill(score, f1 && !tooFew(f1) ? number(f1.value, 1) : "–");
    fill(interval, !f1 ? "not judged yet" : tooFew(f1) ? "too few judged yet" : between(f1));
    fill(raw, number(left));
    training.draw();
  }

  draw();
  return { box, draw };
}
