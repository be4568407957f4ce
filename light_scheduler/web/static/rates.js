/**
 * Rates from counters that only grow, but start over at 0 when another worker takes over a partition.
 * @module
 */

import { accepted, keyOf, lanesOf, LATENESS_BOUNDS } from "./cluster.js";

/** @typedef {import("./types.d.ts").Cluster} Cluster */
/** @typedef {{ accepted: number, firings: number, lateness: number[] }} Counters */
/** @typedef {{ at: number, accepted: number | null, fired: number | null, lateness: number[] }} Sample Events per second. */

const KEPT_MS = 10 * 60_000;
const RECENT_MS = 60_000;

/** The samples of the last ten minutes. */
export class Rates {
  constructor() {
    /** @type {Map<string, Counters>} */
    this._last = new Map();
    /** @type {number | null} */
    this._at = null;
    /** @type {Sample[]} */
    this.samples = [];
  }

  /**
   * Add a state of the cluster. A state that is not newer than the last one is ignored.
   * @param {Cluster} cluster
   */
  add(cluster) {
    if (this._at !== null && cluster.time <= this._at) return;
    if (this._at !== null && cluster.time > this._at + RECENT_MS) this._beginAnew();
    const seconds = this._at === null ? null : (cluster.time - this._at) / 1_000;
    const grown = this._growth(cluster);
    this._at = cluster.time;
    if (seconds !== null) {
      this.samples.push({
        at: cluster.time,
        accepted: grown.accepted / seconds,
        fired: grown.firings / seconds,
        lateness: grown.lateness,
      });
    }
    this.samples = this.samples.filter(({ at }) => at > cluster.time - KEPT_MS);
  }

  /** After a longer break, for example of a hidden page, the growth is not recent. */
  _beginAnew() {
    this._last.clear();
    this._at = null;
    this.samples = [];
  }

  /** Return the firings of the last minute by bucket of lateness. */
  lateness() {
    const since = (this._at ?? 0) - RECENT_MS;
    const recent = this.samples.filter(({ at }) => at > since);
    return LATENESS_BOUNDS.concat(0).map((_, bucket) => recent.reduce((sum, each) => sum + each.lateness[bucket], 0));
  }

  /**
   * A lane counts from when it is first seen: its earlier activity is not recent.
   * @param {Cluster} cluster
   * @returns {Counters}
   */
  _growth(cluster) {
    const grown = { accepted: 0, firings: 0, lateness: new Array(LATENESS_BOUNDS.length + 1).fill(0) };
    for (const { url, lane } of lanesOf(cluster)) {
      const key = `${url} ${keyOf(lane)}`;
      const now = { accepted: accepted(lane), firings: lane.firings, lateness: lane.lateness.counts };
      const before = this._last.get(key) ?? now;
      const from = now.firings < before.firings || now.accepted < before.accepted ? ZERO : before;
      grown.accepted += now.accepted - from.accepted;
      grown.firings += now.firings - from.firings;
      now.lateness.forEach((number, bucket) => (grown.lateness[bucket] += number - from.lateness[bucket]));
      this._last.set(key, now);
    }
    return grown;
  }
}

/** @type {Counters} */
const ZERO = { accepted: 0, firings: 0, lateness: new Array(LATENESS_BOUNDS.length + 1).fill(0) };
