// The learning curve as an SVG, with its numbers as a table.
import { fill, h, setProps, table } from "./dom.js";
import { between, counted, number } from "./text.js";

/** @typedef {import("./api.js").Point} Point */

const HEIGHT = 260;
const LEFT = 40;
const RIGHT = 16;
const TOP = 26;
const BOTTOM = 46;
const TICKS = 5;

/**
 * @param {string} tag
 * @param {import("./dom.js").Props} props
 * @param {...(import("./dom.js").Child)} children
 */
function svg(tag, props, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  setProps(element, props);
  fill(element, ...children);
  return element;
}

/**
 * Returns round numbers from `low` to `high`.
 * @param {number} low
 * @param {number} high
 */
function ticks(low, high) {
  const rough = (high - low) / TICKS || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(1, ([1, 2, 5, 10].find((factor) => factor * power >= rough) ?? 10) * power);
  const first = Math.floor(low / step) * step;
  return Array.from({ length: Math.ceil((high - first) / step) + 1 }, (_, i) => first + i * step);
}

/**
 * Returns a figure of the F1 after each training.
 * @param {Point[]} points
 */
export function curve(points) {
  const first = points[0];
  const last = points.at(-1);
  if (!first || !last) return h("p", { class: "faint" }, "The curve begins after the first training that could be judged.");
  const plot = h("div", { class: "plot" });
  const told = `From ${number(first.f1, 1)} after ${number(first.labels)} labels to ${number(last.f1, 1)} after ${number(last.labels)} labels.`;
  const draw = () => fill(plot, picture(points, told, Math.max(plot.clientWidth, 280)));
  new ResizeObserver(draw).observe(plot);
  const rows = points.map((point) => [number(point.labels), number(point.f1, 1), between(point), counted(point.judged, "sentence")]);
  const numbers = table("The curve as a table", ["Labels", "F1", "Interval", "Judged on"], rows);
  return h("div", null, plot, h("details", null, h("summary", null, "The curve as a table"), numbers));
}

/**
 * @param {Point[]} points
 * @param {string} told
 * @param {number} width
 */
function picture(points, told, width) {
  const xs = ticks(0, Math.max(...points.map((point) => point.labels)));
  const ys = ticks(Math.min(...points.map((point) => point.low)), Math.max(...points.map((point) => point.high)));
  /** @param {number} value @param {number[]} scale @param {number} from @param {number} to */
  const place = (value, scale, from, to) => from + ((value - (scale[0] ?? 0)) / ((scale.at(-1) ?? 1) - (scale[0] ?? 0))) * (to - from);
  /** @param {number} labels */
  const x = (labels) => Math.round(place(labels, xs, LEFT, width - RIGHT) * 10) / 10;
  /** @param {number} f1 */
  const y = (f1) => Math.round(place(f1, ys, HEIGHT - BOTTOM, TOP) * 10) / 10;
  const path = points.map((point, i) => `${i ? "L" : "M"}${x(point.labels)} ${y(point.f1)}`).join("");
  return svg("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-labelledby": "curve-title curve-told" },
    svg("title", { id: "curve-title" }, "F1 by the number of labels"),
    svg("desc", { id: "curve-told" }, told),
    ...ys.map((tick) => svg("path", { class: "grid", d: `M${LEFT} ${y(tick)}H${width - RIGHT}` })),
    ...ys.map((tick) => svg("text", { x: LEFT - 8, y: y(tick) + 4, "text-anchor": "end" }, number(tick))),
    ...xs.map((tick) => svg("text", { x: x(tick), y: HEIGHT - BOTTOM + 20, "text-anchor": "middle" }, number(tick))),
    svg("text", { x: (LEFT + width) / 2, y: HEIGHT - 6, "text-anchor": "middle" }, "labels"),
    svg("text", { x: LEFT - 8, y: 10, "text-anchor": "end" }, "F1"),
    ...points.map((point) => svg("path", { class: "interval", d: `M${x(point.labels)} ${y(point.low)}V${y(point.high)}` })),
    svg("path", { class: "curve", d: path }),
    ...points.map((point) => svg("circle", { cx: x(point.labels), cy: y(point.f1), r: 4.5 })));
}
