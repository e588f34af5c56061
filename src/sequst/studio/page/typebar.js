// The types as buttons, with their keys in sight.
import { announce, fill, h } from "./dom.js";
import { SentenceEditor } from "./sentence.js";
import { state } from "./state.js";

/**
 * Returns the bar and a function that draws it again after the types changed. A click tags the chosen words of the
 * active editor. If none are chosen, the type becomes the brush: words that are tapped get it.
 */
export function typeBar() {
  const bar = h("div", { class: "types", role: "group", "aria-label": "Types" });

  function draw() {
    fill(bar, state.now.types.map((type) => {
      const held = type.name === SentenceEditor.brush;
      const props = { type: "button", class: `type t${type.color}`, "aria-pressed": String(held), onclick: (/** @type {MouseEvent} */ event) => pick(type.name, event) };
      return h("button", props, h("span", { class: "swatch" }), h("span", null, type.name), type.key && h("kbd", null, type.key));
    }));
    document.body.classList.toggle("brushing", SentenceEditor.brush !== null);
  }

  /**
   * @param {string} type
   * @param {MouseEvent} event
   */
  function pick(type, event) {
    const editor = SentenceEditor.active;
    const byMouse = event.detail > 0;
    if (editor?.choice) editor.tag(type);
    else {
      SentenceEditor.brush = SentenceEditor.brush === type ? null : type;
      announce(SentenceEditor.brush ? `Tap words to tag them: ${type}.` : "Tapping words tags nothing now.");
      draw();
      if (!byMouse) /** @type {HTMLElement | null} */ (bar.querySelector('[aria-pressed="true"]'))?.focus();
    }
    // A mouse leaves the focus on the button, where Enter would press it again.
    if (byMouse) editor?.take();
  }

  draw();
  return { bar, draw };
}

/** Puts the brush away. Returns whether there was one. */
export function dropBrush() {
  const held = SentenceEditor.brush !== null;
  SentenceEditor.brush = null;
  return held;
}
