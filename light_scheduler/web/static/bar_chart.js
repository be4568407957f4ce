/**
 * A chart of what is due in each interval. Each bar links to its content; several bars together can be zoomed into.
 * @module
 */

import { brief, labelsOf, linesTo } from "./axis.js";
import { BarSelection } from "./bar_selection.js";
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

const HINT = matchMedia("(pointer: coarse)").matches
  ? "Tap a bar to see what is in it. Drag sideways over bars to zoom in."
  : "Select a bar to see what is in it. Drag over bars to zoom in, or select them with Shift and an arrow key.";

/** A chart in `node`, drawn in pixels, and redrawn when its width changes. */
export class BarChart {
  /** @param {number} height */
  constructor(height) {
    this._height = height;
    this._width = 0;
    /** @type {Shown | null} */
    this._last = null;
    this._caption = h("figcaption", {});
    this._frame = h("div", { class: "frame" });
    this._hint = h("p", { class: "note", "aria-live": "polite" }, HINT);
    this._chosen = svg("rect", { class: "chosen", y: EDGES.top, height: height - EDGES.top - EDGES.bottom });
    this._selection = new BarSelection(this._frame, {
      bars: () => this._bars,
      indexAt: (clientX) => this._indexAt(clientX),
      mark: (selected) => this._mark(selected),
      choose: (selected) => this._choose(selected),
    });
    this.node = h("figure", { class: "bars" }, this._caption, this._frame, this._hint);
    new ResizeObserver(([{ contentRect }]) => this._fit(Math.round(contentRect.width))).observe(this._frame);
  }

  /** @param {Shown} shown */
  show(shown) {
    const { by, bars } = shown;
    if (!this._frame.isConnected) this._selection.clear(); // removed while the user was dragging
    if (this._selection.isDragging) return;
    const most = Math.max(0, ...bars.map((bar) => bar.count));
    const zone = by === "day" ? " Days are in UTC." : "";
    this._caption.textContent = `Schedules due per ${by}. Highest: ${count(most)}.${zone}`;
    const isOther = this._last?.by !== by || this._last.bars[0].from !== bars[0].from;
    this._last = shown;
    if (isOther) this._selection.clear();
    this._draw();
  }

  get _bars() {
    return this._last?.bars.length ?? 0;
  }

  /** @param {number} width */
  _fit(width) {
    if (width === this._width) return;
    this._width = width;
    this._draw();
  }

  _draw() {
    if (this._last === null || this._width < 1 || this._selection.isDragging) return;
    const focused = document.activeElement?.closest(".frame a")?.getAttribute("href");
    const links = drawn(this._last, this._width, this._height);
    replace(this._frame, links);
    this._mark(this._selection.selected);
    if (focused) /** @type {SVGElement | null} */ (links.querySelector(`a[href="${CSS.escape(focused)}"]`))?.focus();
  }

  /** @param {number} clientX */
  _indexAt(clientX) {
    const place = { left: EDGES.left, step: stepOf(this._width, this._bars), bars: this._bars };
    return indexAt(clientX - this._frame.getBoundingClientRect().left, place);
  }

  /** @param {Selection} selected */
  _choose({ first, last }) {
    if (this._last === null) return;
    const { bars, scope } = this._last;
    go(address("upcoming", { ...scope, ...parametersOf(zoomedInto(bars, first, last)) }));
  }

  /** @param {Selection | null} selected */
  _mark(selected) {
    this._chosen.remove();
    if (this._last === null || selected === null) return this._say(HINT);
    const [begin, end] = [Math.min(selected.first, selected.last), Math.max(selected.first, selected.last)];
    const step = stepOf(this._width, this._bars);
    this._chosen.setAttribute("x", (EDGES.left + begin * step).toFixed(1));
    this._chosen.setAttribute("width", ((end - begin + 1) * step).toFixed(1));
    this._frame.firstElementChild?.prepend(this._chosen);
    const inside = this._last.bars.slice(begin, end + 1);
    const due = plural(inside.reduce((sum, bar) => sum + bar.count, 0), "schedule");
    const range = `${moment(inside[0].from)} to ${moment(inside[inside.length - 1].to)}`;
    const next = this._selection.isDragging ? "Let go to zoom in." : "Enter zooms in, Escape clears the selection.";
    this._say(`${due} from ${range}. ${next}`);
  }

  /**
   * Announce a new text. Repeating the same text would make screen readers read it again.
   * @param {string} text
   */
  _say(text) {
    if (this._hint.textContent !== text) this._hint.textContent = text;
  }
}

/**
 * Return the width of a bar's place.
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
 * Return an instant without seconds. Intervals are in UTC; relative times would be less helpful here.
 * @param {number} at UTC epoch ms
 */
export function moment(at) {
  return (timeMode() === "utc" ? utc(at) : local(at)).replace(/:\d\d(?= )/, "");
}
