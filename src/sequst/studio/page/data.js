// Files and pasted text on their way into the project.
import { ApiError, put } from "./api.js";
import { button, fill, h } from "./dom.js";
import { state } from "./state.js";
import { counted } from "./text.js";

/**
 * Returns fields that take a file, by choosing or dropping it, and pasted text if `paste` is set.
 * @param {"text" | "labeled"} path
 * @param {string} label
 * @param {{paste?: boolean}} [how]
 */
export function intake(path, label, { paste = false } = {}) {
  const input = h("input", { type: "file", id: `${path}-file`, "aria-describedby": `${path}-told` });
  const told = h("p", { id: `${path}-told`, role: "status" });
  const area = h("textarea", { id: `${path}-paste`, rows: 5, dir: "auto", placeholder: "One sentence a line" });
  const box = h("div", { class: "drop" }, h("label", { for: input.id }, label), input);

  /**
   * @param {Blob} file
   * @param {string} name
   */
  async function send(file, name) {
    told.className = "faint";
    fill(told, `Reads ${name} …`);
    try {
      const { added, known, notes } = await put(`${path}?name=${encodeURIComponent(name)}`, file);
      const again = known ? ` ${counted(known, "sentence was", "sentences were")} known already.` : "";
      fill(told, [`${counted(added, "sentence")} added.${again}`, ...notes].join(" "));
      area.value = "";
      await state.refresh();
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      told.className = "problem";
      fill(told, error.message);
    }
    input.value = "";
  }

  /** @param {FileList | null | undefined} files */
  async function sendAll(files) {
    for (const file of [...(files ?? [])]) await send(file, file.name);
  }

  input.addEventListener("change", () => void sendAll(input.files));
  for (const name of ["dragenter", "dragover", "dragleave", "drop"]) {
    box.addEventListener(name, (event) => {
      event.preventDefault();
      box.classList.toggle("over", name === "dragenter" || name === "dragover");
    });
  }
  box.addEventListener("drop", (event) => void sendAll(event.dataTransfer?.files));
  const pasted = () => (area.value.trim() ? send(new Blob([area.value]), "pasted.txt") : area.focus());
  return h("div", { class: "intake" }, box, paste && [h("label", { for: area.id }, "Or paste text"), area, h("div", { class: "actions" }, button("Add the text", pasted))], told);
}
