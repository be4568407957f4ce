/**
 * Elements from plain calls: `h("p", { class: "note" }, "text", h("b", {}, "bold"))`.
 *
 * Strings become text nodes and nothing else, so no text can turn into markup.
 * @module
 */

/** @typedef {import("./types.d.ts").Child} Child */
/** @typedef {string | number | boolean | null | undefined | ((event: any) => void)} Property */

const SVG = "http://www.w3.org/2000/svg";

/**
 * Return an element. Properties are attributes, except that functions listen to the event that they are named after
 * (`onclick`), and that false, null and undefined are left out.
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Record<string, Property>} [properties]
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function h(tag, properties = {}, ...children) {
  return fill(document.createElement(tag), properties, children);
}

/**
 * Return an element of SVG; see `h`.
 * @param {string} tag
 * @param {Record<string, Property>} properties
 * @param {...Child} children
 */
export function svg(tag, properties, ...children) {
  return fill(document.createElementNS(SVG, tag), properties, children);
}

/**
 * @template {Element} E
 * @param {E} element
 * @param {Record<string, Property>} properties
 * @param {Child[]} children
 */
function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, String(value));
  }
  element.append(...nodes(children));
  return element;
}

/**
 * Return children as nodes.
 * @param {Child[]} children
 * @returns {Node[]}
 */
function nodes(children) {
  return children.flatMap((child) => {
    if (Array.isArray(child)) return nodes(child);
    if (child === null || child === undefined || child === false) return [];
    return [child instanceof Node ? child : document.createTextNode(String(child))];
  });
}

/**
 * Replace the children of an element.
 * @param {Element} parent
 * @param {...Child} children
 */
export function replace(parent, ...children) {
  parent.replaceChildren(...nodes(children));
}

/**
 * Update an element's children, changing only what differs, so that focus, selection and scroll position stay. Listeners are not compared,
 * so an element that is drawn repeatedly must not have changing listeners.
 * @param {Element} parent
 * @param {...Child} children
 */
export function refresh(parent, ...children) {
  const wanted = nodes(children);
  const there = [...parent.childNodes];
  wanted.forEach((node, index) => {
    const old = there[index];
    if (!old) parent.append(node);
    else if (!isSameKind(old, node)) old.replaceWith(node);
    else if (old instanceof Element && node instanceof Element) {
      copyAttributes(node, old);
      refresh(old, ...node.childNodes);
    } else if (old.nodeValue !== node.nodeValue) old.nodeValue = node.nodeValue;
  });
  there.slice(wanted.length).forEach((old) => old.remove());
}

/**
 * @param {Node} a
 * @param {Node} b
 */
function isSameKind(a, b) {
  return a.nodeType === b.nodeType && a.nodeName === b.nodeName;
}

/**
 * @param {Element} from
 * @param {Element} to
 */
function copyAttributes(from, to) {
  for (const { name } of [...to.attributes]) if (!from.hasAttribute(name)) to.removeAttribute(name);
  for (const { name, value } of from.attributes) if (to.getAttribute(name) !== value) to.setAttribute(name, value);
}
