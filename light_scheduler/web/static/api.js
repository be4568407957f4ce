/**
 * Requests to the worker that served this page. It answers for the whole cluster.
 * @module
 */

/** @typedef {import("./types.d.ts").Problem} Problem */

const NO_ANSWER = "This worker does not answer.";
const IN_DOUBT = "The change may have been made: check before you send it again.";

/** Statuses after which a request may succeed later. */
const LATER = [429, 503];

/** Advice at the end of a worker's message. */
const ADVICE = /[.;] try again(?: later)?\.$/i;

/** A request that failed. `problem` is null if there was no answer. */
export class ApiError extends Error {
  /**
   * @param {string} message
   * @param {Problem | null} problem
   * @param {boolean} isRead whether nothing was to be changed
   */
  constructor(message, problem, isRead) {
    super(message);
    this.problem = problem;
    /** Whether repeating the request may help, and does no harm. */
    this.mayAskAgain = isRead && (problem === null || LATER.includes(problem.status));
  }

  /** The reason of the failure, without advice to try again: where that may help, there is a link. */
  get reason() {
    return this.message.replace(ADVICE, ".");
  }

  get status() {
    return this.problem?.status ?? 0;
  }
}

/**
 * Return the JSON of an answer, null if there is none. Throws ApiError; without a valid login, the page goes to /login.
 * @param {string} path
 * @param {{ method?: string, body?: unknown, signal?: AbortSignal, isRead?: boolean }} [options] `isRead`: it changes nothing
 * @returns {Promise<any>}
 */
export async function request(path, { method = "GET", body, signal, isRead = method === "GET" } = {}) {
  let response;
  try {
    response = await fetch(path, {
      method,
      signal,
      credentials: "same-origin",
      headers: body === undefined ? {} : { "Content-Type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError(isRead ? NO_ANSWER : `${NO_ANSWER} ${IN_DOUBT}`, null, isRead);
  }
  if (response.status === 401) location.assign(`/login${location.hash}`);
  if (response.ok) return response.status === 204 ? null : await response.json();
  throw await failure(response, isRead);
}

/**
 * @param {Response} response
 * @param {boolean} isRead
 */
async function failure(response, isRead) {
  try {
    /** @type {Problem} */
    const problem = await response.json();
    return new ApiError(problem.detail, problem, isRead);
  } catch {
    const { status, statusText: title } = response;
    return new ApiError(
      `The worker answered ${status}.`,
      { status, title, detail: title, type: "about:blank" },
      isRead,
    );
  }
}

/**
 * Return the path of a tenant's schedules, or of one of them. Browsers treat the ids "." and ".." as folders, and cannot request them.
 * @param {string} tenant
 * @param {string} [id]
 */
export function schedulesPath(tenant, id) {
  const list = `/api/v1/tenants/${encodeURIComponent(tenant)}/schedules`;
  return id === undefined ? list : `${list}/${encodeURIComponent(id)}`;
}

/**
 * Return a query string, with its question mark, of all non-empty parameters.
 * @param {Record<string, string | number | null | undefined>} parameters
 */
export function queryString(parameters) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== null && value !== undefined && value !== "") query.set(name, String(value));
  }
  const text = query.toString();
  return text ? `?${text}` : "";
}
