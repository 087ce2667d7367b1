// Session tokens that the page around the chat provides.

/** A token is replaced so long before its end, in ms. */
const RENEW_BEFORE = 30_000;
/** How long a page has to provide a token, in ms. Requests that share one must not wait forever for it. */
const TOKEN_TIMEOUT = 30_000;

/**
 * @typedef {object} Known a token, or one that is on its way
 * @property {string | undefined} value undefined on its way
 * @property {number} ends in ms
 * @property {Promise<string>} promise
 */

/** Keeps a token until shortly before its end. */
export class Tokens {
  /** @type {Known | null} */
  #known = null;

  /**
   * @param {() => string | Promise<string>} get provides a token
   * @param {() => number} now in ms
   * @param {number} limit how long `get` may take, in ms
   */
  constructor(get, now = Date.now, limit = TOKEN_TIMEOUT) {
    this.get = get;
    this.now = now;
    this.limit = limit;
  }

  /**
   * The token for a request. Requests at the same time share one.
   * @param {string | null} refused a token that the service has not accepted
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
      // Not before it is noted that it is on its way.
      await null;
      const value = await within(this.limit, this.get());
      // Without one, the visitor would be another one.
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

/** What a promise resolves to, if it does so in time. */
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

/** When a token ends, in ms; at once if it does not say. */
export function endOf(token, now) {
  const { exp } = claimsOf(token);
  return Number.isFinite(exp) ? exp * 1000 : now;
}

/** Whose a token is; empty if it does not say, or if its subject was made for it alone. */
export function subjectOf(token) {
  const { sub, random_subject: isRandom } = claimsOf(token);
  return typeof sub === 'string' && isRandom !== true ? sub : '';
}

/** What a token says; nothing if it is no JWT. */
function claimsOf(token) {
  try {
    const [, claims] = token.split('.');
    return JSON.parse(atob(claims.replaceAll('-', '+').replaceAll('_', '/'))) ?? {};
  } catch {
    return {};
  }
}
