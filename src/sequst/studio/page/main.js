// Begins: the header, the pages, the first state.
import { ApiError, login, person, post } from "./api.js";
import { askText } from "./dialog.js";
import { announce, byId, fill, h, notice } from "./dom.js";
import { labelPage } from "./label.js";
import { modelsPage } from "./models.js";
import { drafts, outbox } from "./outbox.js";
import { progressPage } from "./progress.js";
import { reviewPage } from "./review.js";
import { state } from "./state.js";
import { claimTab, keep, load } from "./storage.js";
import { counted } from "./text.js";
import { welcomePage } from "./welcome.js";

/** @typedef {(root: HTMLElement, rest: string) => () => void} Page  shows itself and returns what ends it */

/** @type {Record<string, Page>} */
const PAGES = { label: labelPage, progress: progressPage, review: reviewPage, models: modelsPage, welcome: welcomePage };
const THEMES = ["", "light", "dark"];

const root = byId("main");
let shown = "";
let end = () => {};

/**
 * Returns the page to show for this name.
 * @param {string} name
 */
function pageOf(name) {
  if (!state.now.sentences || !state.now.types.length) return "welcome";
  return name in PAGES && name !== "welcome" ? name : "label";
}

/** Shows the page that the address names. */
function route() {
  if (!state.value) return;
  const [name = "", ...rest] = location.hash.slice(1).split("/");
  const page = pageOf(name);
  const address = [page, ...rest].join("/");
  if (address === shown) return;
  const first = shown === "";
  shown = address;
  end();
  end = PAGES[page]?.(root, rest.join("/")) ?? end;
  for (const link of byId("pages").querySelectorAll("a")) {
    if (link.hash === `#${page}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const title = root.querySelector("h1")?.textContent ?? "";
  document.title = `${title} · ${state.now.project} · sequst studio`;
  window.scrollTo(0, 0);
  if (!first && page !== "label") root.focus({ preventScroll: true });
}

/** Tells whether all is saved. */
function showSaving() {
  const waiting = outbox.waiting;
  const { trouble } = state;
  const box = byId("saving");
  box.className = `saving ${trouble ? "lost" : waiting ? "busy" : "saved"}`;
  const told = trouble && waiting ? `Not saved yet: ${trouble}; ${counted(waiting, "sentence waits", "sentences wait")}`
    : trouble ? trouble[0]?.toUpperCase() + trouble.slice(1) : waiting ? "Saving" : "Saved";
  if (box.textContent === told) return;
  fill(box, told);
  if (trouble) announce(`${told}.`);
}

async function askName() {
  const name = person() === "annotator" ? "" : person();
  const note = "Your labels carry this name. Several people can label, each in their own browser.";
  /** @param {string} text */
  const act = async (text) => keep("sequst.name", text.trim());
  if (await askText("Your name", "Name", name, act, { note, props: { required: false, maxlength: 60, autocomplete: "name" } })) {
    showName();
    shown = "";
    route();
  }
}

function showName() {
  fill(byId("person"), h("span", { class: "unseen" }, "Your name: "), person());
}

/** @param {string} theme */
function setTheme(theme) {
  keep("sequst.theme", theme);
  document.documentElement.dataset.theme = theme;
  fill(byId("theme"), `Theme: ${theme || "auto"}`);
}

/** @type {Promise<void> | null} */
let asking = null;

login.ask = () => (asking ??= askToken().finally(() => (asking = null)));

async function askToken() {
  /** @param {string} token */
  const act = (token) => post("login", { token });
  const note = "This studio asks for a token. The person who started it knows it.";
  const done = await askText("Token", "Token", "", act, { note, yes: "Open", props: { type: "password" } });
  if (done) return;
  const told = "The studio needs a token. Reload the page to give it.";
  notice(told);
  throw new ApiError(told, 401);
}

async function begin() {
  await claimTab();
  setTheme(THEMES.includes(load("sequst.theme")) ? load("sequst.theme") : "");
  byId("theme").addEventListener("click", (event) => {
    if (event.detail > 0) byId("theme").blur();
    const at = THEMES.indexOf(document.documentElement.dataset.theme ?? "");
    setTheme(THEMES[(at + 1) % THEMES.length] ?? "");
  });
  byId("person").addEventListener("click", () => void askName());
  byId("to-main").addEventListener("click", (event) => {
    event.preventDefault();
    root.focus();
  });
  showName();
  outbox.changed = showSaving;
  outbox.refused = (_item, why) => notice(why);
  state.listen(showSaving);
  window.addEventListener("hashchange", route);
  window.addEventListener("online", () => void outbox.send());
  const stop = state.listen(() => {
    if (!state.value) return;
    stop();
    drafts.prune();
    route();
    if (outbox.waiting) void outbox.send();
  });
  if (!(await state.refresh())) fill(root, h("p", { class: "card" }, "The server does not answer. Start it with `sequst studio`. This page goes on by itself."));
  state.follow();
}

void begin();
