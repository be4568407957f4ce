/**
 * Selects adjacent bars of a chart: by dragging over them, or with Shift and the arrow keys.
 * @module
 */

/** @typedef {{ first: number, last: number }} Selection indices of bars; `last` may be before `first` */
/**
 * @typedef {object} Chart
 * @property {() => number} bars how many there are
 * @property {(clientX: number) => number} indexAt the bar at a place of the window
 * @property {(selection: Selection | null) => void} mark shows what is selected
 * @property {(selection: Selection) => void} choose is called with what is selected in the end
 */

/** A pointer that moves less than this, in pixels, does not drag. */
const LEAST = 6;

/** The selection in an element that has a focusable link with `data-index` for each bar. */
export class BarSelection {
  /**
   * @param {HTMLElement} frame
   * @param {Chart} chart
   */
  constructor(frame, chart) {
    this._frame = frame;
    this._chart = chart;
    /** @type {Selection | null} */
    this.selected = null;
    /** @type {{ x: number, first: number } | null} */
    this._pressed = null;
    this.isDragging = false;
    frame.addEventListener("pointerdown", (event) => this._press(event));
    frame.addEventListener("pointermove", (event) => this._move(event));
    frame.addEventListener("pointerup", (event) => this._release(event));
    frame.addEventListener("pointercancel", () => this.clear());
    frame.addEventListener("click", (event) => this._click(event), { capture: true });
    frame.addEventListener("keydown", (event) => this._key(event));
    frame.addEventListener("dragstart", (event) => event.preventDefault());
  }

  clear() {
    this._end();
    this._select(null);
  }

  /** @param {Selection | null} next */
  _select(next) {
    this.selected = next;
    this._chart.mark(next);
  }

  _end() {
    this._pressed = null;
    this.isDragging = false;
  }

  /** @param {PointerEvent} event */
  _press({ button, isPrimary, clientX, ctrlKey, metaKey, shiftKey, altKey }) {
    if (button !== 0 || !isPrimary || ctrlKey || metaKey || shiftKey || altKey) return;
    this._end();
    this._pressed = { x: clientX, first: this._chart.indexAt(clientX) };
  }

  /** @param {PointerEvent} event */
  _move({ buttons, clientX, pointerId, isPrimary }) {
    if (!this._pressed || !isPrimary) return;
    if (!(buttons & 1)) return this.clear(); // the button was released elsewhere
    if (!this.isDragging && Math.abs(clientX - this._pressed.x) < LEAST) return;
    if (!this.isDragging) this._frame.setPointerCapture(pointerId);
    this.isDragging = true;
    this._select({ first: this._pressed.first, last: this._chart.indexAt(clientX) });
  }

  /** @param {PointerEvent} event */
  _release({ isPrimary }) {
    if (!isPrimary) return;
    const chosen = this.isDragging ? this.selected : null;
    this._pressed = null;
    if (chosen) this._chart.choose(chosen);
  }

  /**
   * A drag that ends on a link does not follow it.
   * @param {Event} event
   */
  _click(event) {
    if (!this.isDragging) return;
    event.preventDefault();
    event.stopPropagation();
    this._end();
  }

  /** @param {KeyboardEvent} event */
  _key(event) {
    const index = indexOf(event.target);
    if (index === null || event.ctrlKey || event.metaKey || event.altKey) return;
    const step = event.key === "ArrowLeft" ? -1 : event.key === "ArrowRight" ? 1 : 0;
    if (step && event.shiftKey) this._extend(index, step);
    else if (step) this._go(index, step);
    else if (event.key === "Enter" && this.selected) this._chart.choose(this.selected);
    else if (event.key === "Escape" && this.selected) this.clear();
    else return;
    event.preventDefault();
  }

  /**
   * @param {number} index
   * @param {number} step
   */
  _extend(index, step) {
    this._select(extended(this.selected ?? { first: index, last: index }, step, this._chart.bars()));
  }

  /**
   * Move the focus to the next link on a side, if there is one. This selects nothing: Enter opens that link.
   * @param {number} index
   * @param {number} step
   */
  _go(index, step) {
    if (this.selected) this.clear();
    const links = /** @type {NodeListOf<SVGAElement>} */ (this._frame.querySelectorAll("a[data-index]"));
    const indices = [...links].map((link) => Number(link.dataset.index));
    links[indices.indexOf(index) + step]?.focus();
  }
}

/**
 * Return a selection extended by one bar, within the chart. Pure.
 * @param {Selection} selection
 * @param {number} step
 * @param {number} bars
 */
export function extended({ first, last }, step, bars) {
  return { first, last: Math.max(0, Math.min(bars - 1, last + step)) };
}

/** @param {EventTarget | null} target */
function indexOf(target) {
  const index = target instanceof Element ? target.closest("a")?.dataset.index : undefined;
  return index === undefined ? null : Number(index);
}
