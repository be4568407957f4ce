/**
 * A chart of what is due in each interval. Each bar is a link to what is in it, and some bars together can be zoomed into.
 * @module
 */

import { brief, labelsOf, linesTo } from "./axis.js";
import { selectable } from "./bar_selection.js";
import { h, replace, svg } from "./elements.js";
import { count, local, plural, utc } from "./format.js";
import { heightsOf, inside } from "./intervals.js";
import { go } from "./navigation.js";
import { timeMode } from "./preferences.js";
import { address } from "./widgets.js";
import { indexAt, parametersOf, zoomedInto } from "./zoom.js";

/** @typedef {import("./intervals.js").Bar} Bar */
/** @typedef {import("./intervals.js").By} By */
/** @typedef {import("./bar_selection.js").Selection} Selection */
/** @typedef {{ bars: Bar[], by: By, scope: import("./ahead.js").Scope, now: number }} Shown `now` is UTC epoch ms. */

const EDGES = { left: 44, right: 10, top: 18, bottom: 24 };
const LEAST = 2;
const LABEL_WIDTH = 58;

const HINT =
  "Select a bar to see what is in it. Drag over bars to zoom in, or select them with Shift and an arrow key.";

/**
 * Return an element for a chart, and a function that shows bars in it. It is drawn in pixels, and anew when its width changes.
 * @param {number} height
 */
export function barChart(height) {
  const caption = h("figcaption", {});
  const frame = h("div", { class: "frame" });
  const hint = h("p", { class: "note", "aria-live": "polite" }, HINT);
  const node = h("figure", { class: "bars" }, caption, frame, hint);
  const chosen = svg("rect", { class: "chosen", y: EDGES.top });
  /** @type {Shown | null} */
  let last = null;
  let width = 0;

  const selection = selectable(frame, {
    bars: () => last?.bars.length ?? 0,
    indexAt: (clientX) => {
      const bars = last?.bars.length ?? 0;
      return indexAt(clientX - frame.getBoundingClientRect().left, {
        left: EDGES.left,
        step: stepOf(width, bars),
        bars,
      });
    },
    mark,
    choose: ({ first, last: end }) => {
      if (last) go(address("upcoming", { ...last.scope, ...parametersOf(zoomedInto(last.bars, first, end)) }));
    },
  });

  function draw() {
    if (last === null || width < 1 || selection.isDragging()) return;
    const focused = document.activeElement?.closest(".frame a")?.getAttribute("href");
    const links = drawn(last, width, height);
    replace(frame, links);
    mark(selection.selected());
    if (focused) /** @type {SVGElement | null} */ (links.querySelector(`a[href="${CSS.escape(focused)}"]`))?.focus();
  }

  /** @param {Selection | null} selected */
  function mark(selected) {
    chosen.remove();
    if (last === null || selected === null) return say(HINT);
    const [begin, end] = [Math.min(selected.first, selected.last), Math.max(selected.first, selected.last)];
    const step = stepOf(width, last.bars.length);
    chosen.setAttribute("x", (EDGES.left + begin * step).toFixed(1));
    chosen.setAttribute("width", ((end - begin + 1) * step).toFixed(1));
    chosen.setAttribute("height", String(height - EDGES.top - EDGES.bottom));
    frame.firstElementChild?.prepend(chosen);
    const inside = last.bars.slice(begin, end + 1);
    const due = plural(inside.reduce((sum, bar) => sum + bar.count, 0), "schedule");
    const range = `${moment(inside[0].from)} to ${moment(inside[inside.length - 1].to)}`;
    const next = selection.isDragging() ? "Let go to zoom in." : "Enter zooms in, Escape clears the selection.";
    say(`${due} from ${range}. ${next}`);
  }

  /**
   * Say something new: what is said again would be read out again.
   * @param {string} text
   */
  function say(text) {
    if (hint.textContent !== text) hint.textContent = text;
  }

  new ResizeObserver(([{ contentRect }]) => {
    if (Math.round(contentRect.width) === width) return;
    width = Math.round(contentRect.width);
    draw();
  }).observe(frame);

  /** @param {Shown} shown */
  function show(shown) {
    const { by, bars } = shown;
    const most = Math.max(0, ...bars.map((bar) => bar.count));
    const zone = by === "day" ? " Days are in UTC." : "";
    if (selection.isDragging()) return;
    caption.textContent = `Schedules due per ${by}, at most ${count(most)}.${zone}`;
    const isOther = last?.by !== by || last.bars[0].from !== bars[0].from;
    last = shown;
    if (isOther) selection.clear();
    draw();
  }

  return { node, show };
}

/**
 * Return how wide the place of a bar is.
 * @param {number} width
 * @param {number} bars
 */
function stepOf(width, bars) {
  return (width - EDGES.left - EDGES.right) / bars;
}

/**
 * @param {Shown} shown
 * @param {number} width
 * @param {number} height
 */
function drawn({ bars, by, scope, now }, width, height) {
  const lines = linesTo(Math.max(0, ...bars.map((bar) => bar.count)));
  const top = lines[lines.length - 1];
  const [step, up] = [stepOf(width, bars.length), height - EDGES.top - EDGES.bottom];
  const x = (/** @type {number} */ index) => EDGES.left + index * step;
  const y = (/** @type {number} */ number) => EDGES.top + up * (1 - number / top);
  const heights = heightsOf(bars, up, LEAST, top);
  return svg(
    "svg",
    { viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": "Schedules ahead" },
    ...lines.map((number) => [
      svg("line", { class: "grid", x1: EDGES.left, x2: width - EDGES.right, y1: y(number), y2: y(number) }),
      svg("text", { class: "tick end", x: EDGES.left - 6, y: y(number) + 4, "aria-hidden": "true" }, brief(number)),
    ]),
    ...labelsOf(bars, by, (step * bars.length) / LABEL_WIDTH, offsetOf).map(({ index, label }) => [
      svg("line", { class: "grid", x1: x(index), x2: x(index), y1: y(0), y2: y(0) + 5 }),
      svg("text", { class: "tick", x: x(index), y: height - 6, "aria-hidden": "true" }, label),
    ]),
    ...bars.map((bar, index) => {
      if (!bar.count) return null;
      const [view, parameters] = inside(bar, by, scope);
      const label = `${moment(bar.from)}: ${plural(bar.count, "schedule")}`;
      const place = { x: (x(index) + step / 10).toFixed(1), width: Math.max(1, step * 0.8).toFixed(1) };
      return svg(
        "a",
        { href: address(view, parameters), "aria-label": label, "data-index": index },
        svg("title", {}, label),
        svg("rect", { ...place, y: EDGES.top, height: up, class: "reach" }),
        svg("rect", { ...place, y: (y(0) - heights[index]).toFixed(1), height: heights[index].toFixed(1) }),
      );
    }),
    nowMark(bars, now, x, y(0)),
  );
}

/**
 * @param {Bar[]} bars
 * @param {number} now
 * @param {(index: number) => number} x
 * @param {number} bottom
 */
function nowMark(bars, now, x, bottom) {
  const [begin, end] = [bars[0].from, bars[bars.length - 1].to];
  if (now < begin || now > end) return null;
  const at = x(((now - begin) / (end - begin)) * bars.length);
  const line = { x1: at, x2: at, y1: EDGES.top - 14, y2: bottom };
  return [
    svg("line", { class: "now-back", ...line }),
    svg("line", { class: "now", ...line }),
    svg("text", { class: "tick start", x: at + 4, y: EDGES.top - 6, "aria-hidden": "true" }, "now"),
  ];
}

/** @param {number} at UTC epoch ms */
function offsetOf(at) {
  return timeMode() === "utc" ? 0 : -new Date(at).getTimezoneOffset();
}

/**
 * Return an instant without seconds. Intervals are counted in UTC; relative times would say less here.
 * @param {number} at UTC epoch ms
 */
export function moment(at) {
  return (timeMode() === "utc" ? utc(at) : local(at)).replace(/:\d\d(?= )/, "");
}
