/**
 * Selecting some bars of a chart that are next to each other: by dragging over them, or with Shift and the arrow keys.
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

/**
 * Have bars selected in an element that has a link with `data-index` for each bar that can have the focus.
 * @param {HTMLElement} frame
 * @param {Chart} chart
 */
export function selectable(frame, chart) {
  /** @type {Selection | null} */
  let selection = null;
  /** @type {{ x: number, first: number } | null} */
  let pressed = null;
  let isDragging = false;

  /** @param {Selection | null} next */
  function select(next) {
    selection = next;
    chart.mark(next);
  }

  function end() {
    pressed = null;
    isDragging = false;
  }

  /** @param {PointerEvent} event */
  function press({ button, isPrimary, clientX, ctrlKey, metaKey, shiftKey, altKey }) {
    if (button !== 0 || !isPrimary || ctrlKey || metaKey || shiftKey || altKey) return;
    end();
    pressed = { x: clientX, first: chart.indexAt(clientX) };
  }

  /** @param {PointerEvent} event */
  function move({ clientX, pointerId, isPrimary }) {
    if (!pressed || !isPrimary) return;
    if (!isDragging && Math.abs(clientX - pressed.x) < LEAST) return;
    if (!isDragging) frame.setPointerCapture(pointerId);
    isDragging = true;
    select({ first: pressed.first, last: chart.indexAt(clientX) });
  }

  /** @param {PointerEvent} event */
  function release({ isPrimary }) {
    if (!isPrimary) return;
    const chosen = isDragging ? selection : null;
    pressed = null;
    if (chosen) chart.choose(chosen);
  }

  /**
   * A drag that ends on a link does not follow it.
   * @param {Event} event
   */
  function click(event) {
    if (!isDragging) return;
    event.preventDefault();
    event.stopPropagation();
    end();
  }

  function clear() {
    end();
    select(null);
  }

  /** @param {KeyboardEvent} event */
  function key(event) {
    const index = indexOf(event.target);
    if (index === null || event.ctrlKey || event.metaKey || event.altKey) return;
    const step = event.key === "ArrowLeft" ? -1 : event.key === "ArrowRight" ? 1 : 0;
    if (step && event.shiftKey) select(extended(selection ?? { first: index, last: index }, step, chart.bars()));
    else if (step) focusNext(frame, index, step);
    else if (event.key === "Enter" && selection) chart.choose(selection);
    else if (event.key === "Escape" && selection) clear();
    else return;
    event.preventDefault();
  }

  frame.addEventListener("pointerdown", press);
  frame.addEventListener("pointermove", move);
  frame.addEventListener("pointerup", release);
  frame.addEventListener("pointercancel", clear);
  frame.addEventListener("click", click, { capture: true });
  frame.addEventListener("keydown", key);
  frame.addEventListener("dragstart", (event) => event.preventDefault());
  return { isDragging: () => isDragging, selected: () => selection, clear };
}

/**
 * Return a selection whose end is one bar further, within all of them. Pure.
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

/**
 * Give the focus to the next link on a side, if there is one.
 * @param {HTMLElement} frame
 * @param {number} index
 * @param {number} step
 */
function focusNext(frame, index, step) {
  const links = /** @type {NodeListOf<SVGAElement>} */ (frame.querySelectorAll("a[data-index]"));
  const indices = [...links].map((link) => Number(link.dataset.index));
  links[indices.indexOf(index) + step]?.focus();
}
