// What is being trained, with a bar.
import { fill, h } from "./dom.js";
import { state } from "./state.js";
import { counted, duration, KINDS } from "./text.js";

/**
 * Returns an element that follows the training, and a function that draws it again.
 */
export function trainingBar() {
  const box = h("div", { class: "training" });
  const title = h("p", { id: "training-title" });
  const bar = h("progress", { "aria-labelledby": title.id });
  const detail = h("p", { class: "faint" });

  function draw() {
    const { training, problem, next_training: next } = state.now;
    if (!training) {
      const told = !next ? "Nothing is being trained." : next.left > 0 ? `The next training begins in ${counted(next.left, "label")}.` : "The next training begins soon.";
      return fill(box, problem && h("p", { class: "problem" }, problem), h("p", { class: "faint" }, told));
    }
    fill(title, KINDS[training.kind] ?? training.kind);
    bar.max = Math.max(training.total, 1);
    if (training.waiting || !training.total) bar.removeAttribute("value");
    else bar.value = training.done;
    const left = training.left === null ? "" : `, ${duration(training.left)} left`;
    fill(detail, training.waiting ? "It waits for its turn." : `${training.phase || "It begins"}${left}`);
    if (bar.parentElement !== box) fill(box, title, bar, detail);
  }

  draw();
  return { box, draw };
}
