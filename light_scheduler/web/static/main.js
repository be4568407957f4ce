/**
 * The shell: navigation, settings for all pages, and the view of the address.
 * @module
 */

import { request } from "./api.js";
import { configuration } from "./configuration.js";
import { deadLetter } from "./dead_letter.js";
import { deadLetters } from "./dead_letters.js";
import { delays } from "./delays.js";
import { h, replace } from "./elements.js";
import { health } from "./health.js";
import { startNavigation } from "./navigation.js";
import { newSchedule } from "./new_schedule.js";
import { overview } from "./overview.js";
import { partitions } from "./partitions.js";
import { applyTheme, setTheme, setTimeMode, theme, THEMES, TIME_MODES, timeMode } from "./preferences.js";
import { schedule } from "./schedule.js";
import { schedules } from "./schedules.js";
import { tenantList } from "./tenant_list.js";
import { startTicker } from "./ticker.js";
import { upcoming } from "./upcoming.js";
import { address, choice, empty, failure, loading, startUnfolding } from "./widgets.js";

/** @typedef {import("./types.d.ts").Context} Context */
/** @typedef {import("./types.d.ts").Identity} Identity */
/** @typedef {import("./types.d.ts").View} View */

/** @type {Record<string, (context: Context) => View>} */
const VIEWS = {
  overview,
  schedules,
  schedule,
  upcoming,
  tenants: tenantList,
  new: newSchedule,
  partitions,
  "dead-letters": deadLetters,
  "dead-letter": deadLetter,
  delays,
  health,
  configuration,
};

/** Views with their names in the navigation. Views that need a token for all tenants are marked. */
const NAVIGATION = [
  { view: "overview", name: "Overview", allTenants: true },
  { view: "schedules", name: "Schedules" },
  { view: "upcoming", name: "Upcoming" },
  { view: "tenants", name: "Tenants", allTenants: true },
  { view: "partitions", name: "Partitions", allTenants: true },
  { view: "dead-letters", name: "Dead letters" },
  { view: "delays", name: "Delay rules", allTenants: true },
  { view: "health", name: "Health", allTenants: true },
];

/** Pages outside of the navigation, with the pages that they belong to. */
const BELONGS = /** @type {Record<string, string>} */ ({
  schedule: "schedules",
  new: "schedules",
  "dead-letter": "dead-letters",
  configuration: "health",
});

/** The name of all users while no token is needed. */
const ANONYMOUS = "anonymous";

const choices = h("div", { class: "choices" });
const main = h("main", { id: "main", tabindex: -1 }, loading());
const navigation = h("nav", { "aria-label": "Pages" });
let leaving = new AbortController();

/** @param {Identity} identity */
function start(identity) {
  const links = NAVIGATION.filter(({ allTenants }) => !allTenants || identity.tenants === null);
  replace(navigation, ...links.map(({ view, name }) => h("a", { href: address(view), "data-view": view }, name)));
  if (identity.name !== ANONYMOUS) choices.append(logOut(identity.name));
  startNavigation(() => {
    show(identity);
    main.focus({ preventScroll: true });
  });
  addEventListener("preferences", () => show(identity));
  show(identity);
}

/**
 * Show the view of the address, or the first one if there is none. A token for some tenants has no overview, so it begins with the view
 * after it.
 * @param {Identity} identity
 */
function show(identity) {
  if (location.hash && !location.hash.startsWith("#/")) history.replaceState(null, "", "#/");
  leaving.abort();
  leaving = new AbortController();
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?", 2);
  const first = navigation.querySelector("a")?.dataset.view ?? "";
  const name = path || first;
  markCurrent(name);
  const context = { identity, query: new URLSearchParams(query ?? ""), signal: leaving.signal };
  const view = Object.hasOwn(VIEWS, name) ? VIEWS[name](context) : unknown();
  document.title = `${view.title} · light-scheduler`;
  replace(main, view.back && h("p", { class: "back" }, view.back), h("h1", {}, view.heading ?? view.title), view.node);
  scrollTo(0, 0);
}

/**
 * Mark the page, or the one that it belongs to, in the navigation.
 * @param {string} name
 */
function markCurrent(name) {
  for (const link of navigation.querySelectorAll("a")) {
    const { view } = link.dataset;
    link.removeAttribute("aria-current");
    if (view === name) link.setAttribute("aria-current", "page");
    else if (view === BELONGS[name]) link.setAttribute("aria-current", "true");
    if (link.hasAttribute("aria-current")) link.scrollIntoView({ block: "nearest", inline: "center" });
  }
}

/** @returns {View} */
function unknown() {
  return {
    title: "No such page",
    node: empty("There is no page with this address.", h("a", { href: "#/" }, "Start page")),
  };
}

/** Make the link at the top of the page jump to its content without changing the address of the view. */
function startSkipping() {
  document.querySelector("a.skip")?.addEventListener("click", (event) => {
    event.preventDefault();
    main.focus();
  });
}

/** @param {string} name */
function logOut(name) {
  const button = h("button", { title: `Logged in as ${name}` }, "Log out");
  return h("form", { method: "post", action: "/logout" }, button);
}

function shell() {
  const times = choice("Times", TIME_MODES, timeMode(), {
    onchange: (/** @type {Event} */ event) => {
      setTimeMode(/** @type {HTMLSelectElement} */ (event.target).value);
      dispatchEvent(new Event("preferences"));
    },
  });
  const themes = choice("Theme", THEMES, theme(), {
    onchange: (/** @type {Event} */ event) => setTheme(/** @type {HTMLSelectElement} */ (event.target).value),
  });
  choices.append(times, themes);
  const home = h("a", { class: "home", href: "#/" }, "light-scheduler");
  return [h("header", {}, home, navigation, choices), main];
}

applyTheme();
startTicker();
startUnfolding();
startSkipping();
replace(/** @type {Element} */ (document.getElementById("shell")), ...shell());
try {
  start(await request("/api/v1/identity"));
} catch (error) {
  startNavigation(() => location.reload());
  replace(main, failure(error));
}
