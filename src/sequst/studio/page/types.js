// The tab Types: add, rename, merge, delete, set keys. What an action changes is told before it is done.
import { post } from "./api.js";
import { askForm, askText, confirm } from "./dialog.js";
import { announce, button, fill, h } from "./dom.js";
import { keyOf, RESERVED } from "./keys.js";
import { state } from "./state.js";
import { counted } from "./text.js";

/** @typedef {import("./api.js").Type} Type */
/** @typedef {{op: string, name: string, to?: string, into?: string, key?: string}} Operation */

/**
 * Asks what the operation would change, tells it, and does it if that is wanted.
 * @param {Operation} operation
 * @param {string} title
 * @param {string} yes
 */
async function tell(operation, title, yes) {
  const { told } = await post("types", { ...operation, dry_run: true });
  if (!(await confirm(title, told, yes))) return;
  await post("types", operation);
  await state.refresh();
  announce(`Done. ${told}`);
}

/** @param {Type} type */
const rename = ({ name }) => askText("Rename the type", "New name", name, (to) => tell({ op: "rename", name, to: to.trim() }, `Rename ${name} to ${to.trim()}?`, "Rename"), { yes: "Go on" });

/** @param {Type} type */
function merge({ name }) {
  const others = state.now.types.filter((type) => type.name !== name);
  const field = h("select", { id: "dialog-field" }, others.map((type) => h("option", null, type.name)));
  const act = () => tell({ op: "merge", name, into: field.value }, `Merge ${name} into ${field.value}?`, "Merge");
  return askForm(`Merge ${name}`, [h("label", { for: field.id }, "Into"), field], "Go on", act);
}

/** @param {Type} type */
const remove = ({ name }) => askForm(`Delete ${name}`, [h("p", null, "You see what this changes before it is done.")], "Go on", () => tell({ op: "delete", name }, `Delete ${name}?`, "Delete"));

/** @param {Type} type */
function setKey({ name, key }) {
  const props = { maxlength: 1, size: 2, "aria-describedby": "dialog-note" };
  const note = `Press the key for ${name}. These are taken: ${RESERVED.map((one) => (one === " " ? "Space" : one)).join(", ")}.`;
  const opened = askText("Key of the type", "Key", key, async (wanted) => {
    await post("types", { op: "key", name, key: wanted.toLowerCase() });
    await state.refresh();
  }, { note, props });
  const field = document.getElementById("dialog-field");
  if (field instanceof HTMLInputElement) {
    field.select();
    field.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.key.length > 1) return;
      event.preventDefault();
      const pressed = keyOf(event, [event.key.toLowerCase()]);
      field.setCustomValidity(RESERVED.includes(pressed) ? "This key has another use. Choose another." : "");
      field.value = pressed;
      field.reportValidity();
    });
  }
  return opened;
}

/**
 * Shows the tab. Returns what ends it.
 * @param {HTMLElement} root
 */
export function typesTab(root) {
  const list = h("ul", { class: "rows" });
  const add = button("Add a type", () => askText("Add a type", "Name", "", (name) => tell({ op: "add", name: name.trim() }, `Add ${name.trim()}?`, "Add"), { yes: "Go on" }), { class: "main" });
  fill(root, h("p", null, "To split a type, add the new one, show the sentences of the old one, click an entity and press the new key."), list, h("div", { class: "actions" }, add));
  return state.watch((now) => now.types, () => {
    fill(list, state.now.types.map(line));
  });
}

/** @param {Type} type */
function line(type) {
  const name = encodeURIComponent(type.name);
  /** @type {[string, (type: Type) => unknown][]} */
  const acts = [["Rename", rename], ["Key", setKey], ["Merge", merge], ["Delete", remove]];
  const counts = `${counted(type.entities, "entity", "entities")} in ${counted(type.sentences, "sentence")}`;
  const before = h("a", { href: `#review/all?status=labeled&before_type=${name}` }, `${counted(type.earlier, "sentence")} labelled before ${type.name} was added`);
  const earlier = type.earlier > 0 && [" · ", before];
  return h("li", { class: "row type-row" },
    h("h2", { class: `type-name t${type.color}` }, h("span", { class: "swatch" }), type.name, type.key && h("kbd", null, type.key)),
    h("p", null, h("a", { href: `#review/all?type=${name}` }, counts), earlier),
    h("div", { class: "actions" }, acts.map(([text, act]) => button(text, () => void act(type), { "aria-label": `${text} ${type.name}` }))));
}
