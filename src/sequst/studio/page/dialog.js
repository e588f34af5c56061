// Modal dialogs. The browser's own <dialog> keeps the focus inside and gives it back.
import { button, fill, h, notice } from "./dom.js";
import { ApiError } from "./api.js";

/**
 * Runs an action. If the server refuses it, its reason is shown.
 * @param {() => Promise<unknown>} act
 */
export async function attempt(act) {
  try {
    return await act();
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    notice(error.message);
  }
}

/** How many dialogs were opened: one may stand above another, and ids are for one. */
let opened = 0;

/**
 * Opens a dialog and returns what it was closed with; null if it was dismissed.
 * @template T
 * @param {string} title
 * @param {(close: (answer?: T) => void) => import("./dom.js").Child[]} content
 * @returns {Promise<T | null>}
 */
export function openDialog(title, content) {
  return new Promise((resolve) => {
    /** @type {T | null} */
    let given = null;
    const heading = h("h2", { id: `dialog-title-${(opened += 1)}` }, title);
    const box = h("dialog", { "aria-labelledby": heading.id });
    fill(box, heading, content((answer) => {
      given = answer ?? null;
      box.close();
    }));
    box.addEventListener("close", () => {
      box.remove();
      resolve(given);
    });
    document.body.append(box);
    box.showModal();
  });
}

/**
 * Asks yes or no. Returns whether the answer is yes.
 * @param {string} title
 * @param {string} text
 * @param {string} yes what the button says
 * @returns {Promise<boolean>}
 */
export async function confirm(title, text, yes) {
  /** @param {(answer?: boolean) => void} close */
  const content = (close) => [
    h("p", null, text),
    h("div", { class: "actions" }, button(yes, () => close(true), { class: "main" }), button("Cancel", () => close())),
  ];
  return (await openDialog(title, content)) ?? false;
}

/**
 * Asks for one line of text and hands it to `act`. Stays open, with the message, while `act` raises ApiError.
 * Returns whether `act` was done.
 * @param {string} title
 * @param {string} label
 * @param {string} value
 * @param {(text: string) => Promise<unknown>} act
 * @param {{note?: string, yes?: string, props?: import("./dom.js").Props}} [more]
 */
export function askText(title, label, value, act, { note, yes = "Save", props = {} } = {}) {
  const field = h("input", { id: "dialog-field", required: true, autocomplete: "off", ...props });
  field.value = value;
  return askForm(title, [note && h("p", null, note), h("label", { for: field.id }, label), field], yes, () => act(field.value));
}

/**
 * Shows a form and runs `act` when it is sent. Stays open, with the message, while `act` raises ApiError.
 * @param {string} title
 * @param {import("./dom.js").Child[]} fields
 * @param {string} yes
 * @param {() => Promise<unknown>} act
 * @returns {Promise<boolean>} whether `act` was done
 */
export async function askForm(title, fields, yes, act) {
  const problem = h("p", { class: "problem", role: "alert" });
  /** @param {(answer?: boolean) => void} close */
  const content = (close) => {
    /** @param {Event} event */
    const send = async (event) => {
      event.preventDefault();
      try {
        await act();
        close(true);
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        fill(problem, error.message);
      }
    };
    const buttons = h("div", { class: "actions" }, h("button", { class: "main" }, yes), button("Cancel", () => close()));
    return [h("form", { onsubmit: send }, fields, problem, buttons)];
  };
  return (await openDialog(title, content)) ?? false;
}
