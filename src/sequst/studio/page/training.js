// What is being trained, with a bar.
import { fill, h } from "./dom.js";
import { state } from "./state.js";
import { counted, duration, KINDS, sentence } from "./text.js";

/** @type {[RegExp, string][]} */
const PHASES = [
  [/teacher/, "learns your labels"],
  [/beliefs/, "tags the raw text"],
  [/student/, "learns the raw text"],
  [/retune/, "learns your labels once more"],
];

/**
 * Returns what a phase does, in plain words: of "round 1: teacher" it is "round 1: learns your labels".
 * @param {string} phase
 */
function plain(phase) {
  const [name = "", ...before] = phase.split(": ").reverse();
  const told = PHASES.find(([pattern]) => pattern.test(name))?.[1] ?? name;
  return [...before.reverse(), told].join(": ");
}

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
    const { phase, left, waiting } = training;
    const done = share(training);
    if (done === null) bar.removeAttribute("value");
    else bar.value = done;
    fill(detail, waiting ? "It waits for its turn." : sentence(plain(phase) || "it begins"), left !== null && ` About ${duration(left)} left.`);
    if (bar.parentElement !== box) fill(box, title, bar, detail);
  }

  draw();
  return { box, draw };
}

/**
 * Returns which share is done, or null if that is not known: of the time if it was forecast, else of the phase.
 * @param {import("./api.js").Training} training
 */
function share({ waiting, seconds, left, done, total }) {
  if (waiting) return null;
  if (left !== null) return seconds / (seconds + left || 1);
  return total ? done / total : null;
}
