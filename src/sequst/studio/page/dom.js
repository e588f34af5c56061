/** @typedef {Node | string | number | null | undefined | false} Child */
/** @typedef {Record<string, unknown>} Props */

/**
 * Returns a new element. A property that begins with "on" is an event listener; true is an attribute without a value;
 * null, undefined and false are left out. Children that are no nodes become text nodes, so nothing is parsed as HTML.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Props | null} [props]
 * @param {...(Child | Child[])} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function h(tag, props, ...children) {
  const element = document.createElement(tag);
  setProps(element, props ?? {});
  fill(element, ...children);
  return element;
}

/**
 * @param {Element} element
 * @param {Props} props
 */
export function setProps(element, props) {
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), /** @type {EventListener} */ (value));
    else element.setAttribute(name, value === true ? "" : String(value));
  }
}

/**
 * Puts the children in place of what the element holds.
 * @param {Element} element
 * @param {...(Child | Child[])} children
 */
export function fill(element, ...children) {
  const kept = children.flat().filter((child) => child !== null && child !== undefined && child !== false);
  element.replaceChildren(...kept.map((child) => (child instanceof Node ? child : String(child))));
}

/**
 * Returns the element with this id.
 * @param {string} id
 */
export function byId(id) {
  const element = document.getElementById(id);
  if (!element) throw new Error(`the page has no element #${id}`);
  return element;
}

/**
 * A button. `keys` is shown beside its text.
 * @param {string} text
 * @param {(event: MouseEvent) => unknown} act
 * @param {Props & {keys?: string}} [props]
 */
export function button(text, act, { keys, ...props } = {}) {
  return h("button", { type: "button", onclick: act, ...props }, text, keys && h("kbd", null, keys));
}

/**
 * A table that scrolls sideways where it has no room. The first cell of a row names it.
 * @param {string} label
 * @param {string[]} heads
 * @param {Child[][]} rows
 */
export function table(label, heads, rows) {
  const head = h("tr", null, heads.map((text) => h("th", { scope: "col" }, text)));
  const body = rows.map(([name, ...cells]) => h("tr", null, h("th", { scope: "row" }, name), cells.map((cell) => h("td", null, cell))));
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": label }, h("table", null, h("thead", null, head), h("tbody", null, body)));
}

/**
 * Says something to a screen reader, without showing it.
 * @param {string} text
 */
export function announce(text) {
  fill(byId("live"), text);
}

/**
 * Shows a problem above the page until it is closed or another one comes.
 * @param {string} text
 */
export function notice(text) {
  const box = h("div", { class: "notice" }, h("p", null, text));
  box.append(button("Close", () => box.remove()));
  fill(byId("notices"), box);
}

/** Takes away what `notice` shows. */
export function clearNotices() {
  fill(byId("notices"));
}
