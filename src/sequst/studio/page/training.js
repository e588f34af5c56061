// What is being trained, with a bar.
import { fill, h } from "./dom.js";
import { state } from "./state.js";
import { counted, duration, KINDS, sentence } from "./text.js";

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
      return fill(box, problem && h("p", { class: "problem" }, sentence(problem)), h("p", { class: "faint" }, told));
    }
    fill(title, KINDS[training.kind] ?? training.kind);
    const { phase, done, total, seconds, left, waiting } = training;
    bar.max = left === null ? Math.max(total, 1) : seconds + left;
    if (waiting || (left === null && !total)) bar.removeAttribute("value");
    else bar.value = left === null ? done : seconds;
    fill(detail, waiting ? "It waits for its turn." : sentence(phase || "it begins"), left !== null && ` About ${duration(left)} left.`);
    if (bar.parentElement !== box) fill(box, title, bar, detail);
  }

  draw();
  return { box, draw };
}
