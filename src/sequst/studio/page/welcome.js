// The first page of an empty project: text, types, perhaps labelled sentences.
import { ApiError, post } from "./api.js";
import { intake } from "./data.js";
import { button, fill, h } from "./dom.js";
import { state } from "./state.js";
import { counted } from "./text.js";

/**
 * Shows the page. Returns what ends it.
 * @param {HTMLElement} root
 */
export function welcomePage(root) {
  const field = h("input", { id: "new-types", autocomplete: "off", placeholder: "person, place", "aria-describedby": "types-told" });
  const told = h("p", { class: "problem", id: "types-told", role: "alert" });
  const names = h("ul", { class: "types plain", "aria-label": "Types" });
  const sofar = h("p", { class: "faint", role: "status" });
  const start = button("Start labelling", () => {
    history.replaceState(null, "", "#label");
    window.dispatchEvent(new Event("hashchange"));
  }, { class: "main" });

  /** @param {Event} event */
  async function add(event) {
    event.preventDefault();
    fill(told);
    try {
      for (const name of field.value.split(/[,;\n]/).map((one) => one.trim()).filter(Boolean)) await post("types", { op: "add", name });
      field.value = "";
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      fill(told, error.message);
    }
    await state.refresh();
    field.focus();
  }

  fill(root, h("div", { class: "welcome" },
    h("h1", null, "Label a few sentences, get a tagger"),
    h("p", null, "You label sentences of your own text. A model learns beside you, suggests labels and chooses what to label next."),
    h("section", { class: "card" }, h("h2", null, "1. Your text"), h("p", { class: "faint" }, "A text file with one sentence a line. JSONL, CoNLL and other formats are read too."),
      intake("text", "Choose a file, or drop it here", { paste: true })),
    h("section", { class: "card" }, h("h2", null, "2. What to find in it"), h("p", { class: "faint" }, "Name the types of entities. You can add, rename and merge them later."),
      h("form", { class: "inline", onsubmit: add }, h("label", { for: field.id }, "Types, with commas between them"), field, h("button", null, "Add")), told, names),
    h("section", { class: "card" }, h("h2", null, "3. Labelled sentences, if you have some"), intake("labeled", "Choose a file, or drop it here")),
    h("div", { class: "actions" }, start, sofar)));

  return state.watch((now) => [now.sentences, now.types], () => {
    const { sentences, types } = state.now;
    fill(names, types.map((type) => h("li", { class: `type-name t${type.color}` }, h("span", { class: "swatch" }), type.name, h("kbd", null, type.key))));
    start.disabled = !sentences || !types.length;
    fill(sofar, !sentences ? "Add text first." : !types.length ? "Name at least one type." : `${counted(sentences, "sentence")}, ${counted(types.length, "type")}.`);
  });
}
