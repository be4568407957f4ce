/** The documents of the HTTP API, with the members that the dashboard uses. docs/http.md and OpenAPI describe them. */

export interface Content {
  text?: string;
  base64?: string;
  masked?: boolean;
}

export interface Decoded {
  by: "hook" | "avro" | "json";
  json?: string;
  text?: string;
  error?: string;
}

export interface Backoff {
  intervals?: number[];
  initial?: number;
  factor?: number;
  max?: number;
  attempts?: number;
  jitter?: number;
}

export interface Trigger {
  at?: number;
  every?: number;
  mode?: string;
  cron?: string;
  cron_dialect?: string;
  timezone?: string;
  backoff?: Backoff;
  start?: number;
  end?: number;
  max_firings?: number;
  jitter?: number;
  window?: number;
}

export interface Schedule {
  tenant: string;
  id: string;
  version: number;
  state: "pending" | "paused" | "awaiting";
  due: number | null;
  sequence: number;
  attempt: number;
  trigger: Trigger;
  target: {
    topic: string;
    key: string | null;
    key_base64?: string;
    partition: number | null;
    partition_key?: string;
    partition_key_base64?: string;
  };
  labels: Record<string, string>;
  priority: number;
  ttl: number | null;
  source: { topic: string; partition: number; offset: number };
  accepted_at: number;
  payload_bytes: number | null;
  misfire: string;
  misfire_grace: number;
  acknowledgement: { timeout: number; max_attempts: number; overlap: string } | null;
  awaiting: { firing_id: string; attempt: number; fired_at: number; until: number | null }[];
}

export interface Header {
  name: string;
  value: Content | null;
}

export interface ScheduleDetail extends Schedule {
  headers: Header[];
  payload: Content | null;
  partition: number | null;
  decoded?: Decoded | null;
  triggered?: number[];
}

export interface SchedulePage {
  schedules: Schedule[];
  next_cursor: string | null;
  total: number | null;
}

export interface HistoryEvent {
  event: string;
  version: number | null;
  due: number | null;
  at: number;
  sequence: number | null;
  attempt: number | null;
  target_topic: string | null;
  reason: string | null;
  by?: string;
  address?: string;
}

export interface HistoryPage {
  events: HistoryEvent[];
  searched_from: number;
  next_cursor: string | null;
}

export interface Why {
  tenant: string;
  id: string;
  state: string;
  next_due: number | null;
  summary: string;
  events: { at: number; event: string; version: number | null; due: number | null; text: string }[];
  searched_from: number;
  complete: boolean;
}

export interface Result {
  command: string;
  tenant: string;
  id: string | null;
  outcome: string;
  version: number | null;
  next_due: number | null;
  reason: string | null;
  count?: number;
}

export interface DeadLetter {
  letter: string;
  kind: "command" | "firing";
  cause: string;
  reason: string;
  field: string | null;
  tenant: string;
  id: string | null;
  at: number;
  due: number | null;
  target_topic: string | null;
  source: { topic: string; partition: number; offset: number };
  key: Content | null;
  payload_bytes: number | null;
  dropped: boolean;
  lacks: string | null;
}

export interface DeadLetterDetail extends DeadLetter {
  headers: Header[];
  payload: Content | null;
  decoded?: Decoded | null;
}

export interface Lateness {
  counts: number[];
  sum_ms: number;
  max_ms: number;
}

export interface Restore {
  done: number;
  total: number;
  per_s: number;
  seconds_left: number | null;
}

export interface Probe {
  successes: number;
  failures: number;
  last_success: number | null;
  latency_ms: number | null;
  last_failure: number | null;
  reason: string | null;
}

export interface Lane {
  topic: string;
  partition: number;
  state: string;
  reason: string | null;
  restore: Restore | null;
  pending: number;
  lag: number | null;
  oldest_due: number | null;
  outcomes: Record<string, number>;
  firings: number;
  expired: number;
  dead_letters: number;
  clock_skew: number | null;
  rebuilds: number;
  restarts: number;
  jumps: number;
  expired_commands: number;
  lost_results: number;
  lateness: Lateness;
  probe: Probe | null;
}

export interface Standby {
  topic: string;
  partition: number;
  reason: string | null;
  pending: number;
  lag: number | null;
}

export interface Target {
  topic: string;
  partitions: number[];
  unavailable_since: number;
  waiting: number;
  reason: string;
}

export interface DelayLane {
  rule: string;
  source: string;
  partition: number;
  state: string;
  reason: string | null;
  waiting: boolean;
  lag: number | null;
  next_due: number | null;
  forwarded: number;
  dead_letters: number;
  expired: number;
  restarts: number;
}

export interface Info {
  version: string;
  app_id: string;
  url: string;
  time: number;
  commands_topics: Record<string, string>;
  lanes: Lane[];
  standbys: Standby[];
  targets: Target[];
  delays: DelayLane[];
}

export interface Worker {
  url: string;
  partitions: Record<string, number[]>;
  info: Info | null;
  reason: string | null;
}

export interface Cluster {
  time: number;
  workers: Worker[];
  unowned: { topic: string; partition: number }[];
}

export interface DelayRule {
  name: string;
  source: string;
  delay: number;
  target: string;
  origin: string;
  refused: string | null;
  warnings: string[];
}

export interface DelayList {
  delays: DelayRule[];
  lanes: DelayLane[];
  unanswered: string[];
}

export interface Configuration {
  url: string;
  settings: {
    name: string;
    value: string | null;
    origin: "default" | "file" | "context" | "environment" | "option" | "node";
    variable: string;
    help: string;
  }[];
}

export interface Doctor {
  url: string;
  at: number;
  ok: boolean;
  checks: { name: string; status: "ok" | "warn" | "fail"; detail: string; fix: string | null }[];
}

export interface Identity {
  name: string;
  role: "metrics" | "read" | "write" | "admin";
  tenants: string[] | null;
  version: string;
  app_id: string;
  commands_topics: Record<string, string>;
}

/** A partition missing in an answer; `reason` continues after the worker's name, if there is one: "did not answer in time". */
export interface MissingPartition {
  topic: string;
  partition: number;
  worker: string | null;
  reason: string;
}

export interface Problem {
  title: string;
  status: number;
  detail: string;
  type: string;
  parameter?: string;
  missing?: MissingPartition[];
}

/** The argument of a view. `signal` aborts when the view ends; `query` is that of its address. */
export interface Context {
  identity: Identity;
  query: URLSearchParams;
  signal: AbortSignal;
}

/** `heading` is shown above the node instead of the title, and `back` above that. */
export interface View {
  title: string;
  back?: Child;
  heading?: Child;
  node: Node;
}

/** Possible children of an element. */
export type Child = Node | string | number | null | undefined | false | Child[];

/** The number of a tenant's schedules by due time. */
export interface Upcoming {
  by: "minute" | "hour" | "day";
  due_from: number;
  due_to: number;
  counts: { due_from: number; target_topic: string; state: string; count: number }[];
  pending: { target_topic: string; state: string; count: number }[];
}

/** The number of all tenants' schedules by due time and group; the group with the name null has all unnamed ones. */
export interface UpcomingGroups {
  by: "minute" | "hour" | "day";
  group: "tenant" | "target" | "partition";
  due_from: number;
  due_to: number;
  groups: { name: string | null; due: number; pending: number; counts: { due_from: number; count: number }[] }[];
  complete: boolean;
}

/** A rule that is null or missing has no effect. */
export interface TenantRules {
  targets?: string[] | null;
  default_target?: string | null;
  distribution?: string | null;
  max_payload_bytes?: number | null;
  max_pending?: number | null;
  commands_per_second?: number | null;
  over_rate?: "reject" | "delay" | null;
  firings_per_second?: number | null;
  weight?: number | null;
}

export interface Tenant {
  name: string;
  state: "active" | "paused" | "deleted";
  rules: TenantRules;
  changed_at: number;
  changed_by: string;
  is_readable: boolean;
}

export interface HourSample {
  at: number;
  accepted: number;
  fired: number;
  p50: number | null;
  p90: number | null;
  p99: number | null;
  backlog: number | null;
}

export interface Overview {
  time: number;
  pending: number;
  states: Record<string, number>;
  tenants: { tenant: string; pending: number }[];
  targets: { target_topic: string; pending: number }[];
  complete: boolean;
  next_due: number | null;
  backlog: number | null;
  dead_letters: number | null;
  hour: HourSample[] | null;
  missing: MissingPartition[];
}

/** Possible documents of an event stream, by the name of event and path. */
export interface Documents {
  cluster: Cluster;
  overview: Overview;
}
