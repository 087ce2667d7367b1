// Session tokens that the page around the chat provides.

/** Time before its expiry at which a token is replaced, in ms. */
const RENEW_BEFORE = 30_000;
/** Timeout for a page to provide a token, in ms. Requests that share a token must not wait forever. */
const TOKEN_TIMEOUT = 30_000;

/**
 * @typedef {object} Known a token, or a pending request for one
 * @property {string | undefined} value undefined while the request is pending
 * @property {number} ends expiry, in ms
 * @property {Promise<string>} promise
 */

/** Keeps a token until shortly before its expiry. */
export class Tokens {
  /** @type {Known | null} */
  #known = null;

  /**
   * @param {() => string | Promise<string>} get provides a token
   * @param {() => number} now the current time, in ms
   * @param {number} limit timeout of `get`, in ms
   */
  constructor(get, now = Date.now, limit = TOKEN_TIMEOUT) {
    this.get = get;
    this.now = now;
    this.limit = limit;
  }

  /**
   * The token for a request. Concurrent requests share one.
   * @param {string | null} refused a token that the service has rejected
   * @returns {Promise<string>}
   */
  token(refused = null) {
    const known = this.#known;
    const isGood = known !== null && (known.value === undefined || (known.value !== refused && this.now() < known.ends - RENEW_BEFORE));
    return isGood ? known.promise : this.#fresh();
  }

  #fresh() {
    const known = { value: undefined, ends: 0, promise: null };
    known.promise = this.#got(known);
    this.#known = known;
    return known.promise;
  }

  async #got(known) {
    try {
      // Call `get` only after `#known` contains the pending request.
      await null;
      const value = await within(this.limit, this.get());
      // Without a token, the service would treat the visitor as a different one.
      if (typeof value !== 'string' || value === '') throw new TypeError('no token');
      known.value = value;
      known.ends = endOf(known.value, this.now());
      return known.value;
    } catch (error) {
      if (this.#known === known) this.#known = null;
      throw error;
    }
  }
}

/** The value of a promise; rejects after the timeout. */
async function within(limit, promise) {
  let timer;
  const late = new Promise((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error('no token in time')), limit);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** The expiry of a token, in ms; `now` if the token has none. */
export function endOf(token, now) {
  const { exp } = claimsOf(token);
  return Number.isFinite(exp) ? exp * 1000 : now;
}

/** The subject of a token; empty without one, or if the subject was generated for this token alone. */
export function subjectOf(token) {
  const { sub, random_subject: isRandom } = claimsOf(token);
  return typeof sub === 'string' && isRandom !== true ? sub : '';
}

/** The claims of a token; empty if it is not a JWT. */
function claimsOf(token) {
  try {
    const [, claims] = token.split('.');
    return JSON.parse(atob(claims.replaceAll('-', '+').replaceAll('_', '/'))) ?? {};
  } catch {
    return {};
  }
}
