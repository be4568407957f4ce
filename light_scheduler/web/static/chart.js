/**
 * A small line chart of measured values.
 * @module
 */

import { svg } from "./elements.js";

const WIDTH = 240;
const HEIGHT = 44;

/** Lines keep their width when the chart is stretched. */
const STEADY = { "vector-effect": "non-scaling-stroke" };

/**
 * Return the corners of a line through values at instants, as SVG's `points`. Pure.
 * @param {{ at: number, value: number }[]} values
 * @param {number} from UTC epoch ms, at the left edge
 * @param {number} to UTC epoch ms, at the right edge
 */
export function corners(values, from, to) {
  const most = Math.max(1, ...values.map(({ value }) => value));
  return values
    .map(({ at, value }) => {
      const x = ((at - from) / (to - from)) * WIDTH;
      const y = HEIGHT - 2 - (value / most) * (HEIGHT - 4);
      return `${x.toFixed(1)},${y.toFixed(1)}`;
    })
    .join(" ");
}

/**
 * Return a line chart with lines at its top and middle, and marks at quarters of its time; `label` describes it in words.
 * @param {string} label
 * @param {{ at: number, value: number }[]} values
 * @param {number} from
 * @param {number} to
 */
export function lineChart(label, values, from, to) {
  return svg(
    "svg",
    {
      class: "chart",
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      preserveAspectRatio: "none",
      role: "img",
      "aria-label": label,
    },
    ...[1, (HEIGHT - 1) / 2].map((y) => svg("line", { class: "grid", x1: 0, x2: WIDTH, y1: y, y2: y, ...STEADY })),
    ...[1, 2, 3].map((quarter) => {
      const x = (quarter * WIDTH) / 4;
      return svg("line", { class: "grid", x1: x, x2: x, y1: HEIGHT - 5, y2: HEIGHT, ...STEADY });
    }),
    svg("polyline", { points: corners(values, from, to), ...STEADY }),
  );
}
