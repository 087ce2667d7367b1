// Requests of the sign-in pages, and the visible texts for their errors.

const BASE = new URL('../../', import.meta.url);

const WORDS = {
  network: 'The service cannot be reached. Try again in a moment.',
  'auth.code_invalid': 'This code is not valid: mistyped, older than 10 minutes, or replaced by a newer one. After five wrong codes, request another one.',
  'auth.rate_limited': 'Too many attempts. Wait a minute and try again.',
  'auth.origin_mismatch': 'The service does not accept requests from this address.',
  'auth.tls_required': 'Signing in needs https.',
};

/**
 * @param {string | URL} path below the base path of the service
 * @param {object} body
 * @returns {Promise<{ok: boolean, code: string, text: string, body: any}>} `text` is the visible text for an error
 */
export async function ask(path, body) {
  try {
    const response = await fetch(new URL(path, BASE), {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', Accept: 'application/json' },
      credentials: 'same-origin',
      cache: 'no-store',
      body: JSON.stringify(body),
    });
    const answer = response.status === 204 ? null : await response.json().catch(() => null);
    if (response.ok) return { ok: true, code: '', text: '', body: answer };
    const { code = `http.${response.status}`, message, errors } = answer?.detail ?? {};
    return { ok: false, code, text: plain(code, errors?.[0]?.pointer, message), body: null };
  } catch {
    return { ok: false, code: 'network', text: WORDS.network, body: null };
  }
}

function plain(code, pointer, message) {
  if (pointer === '/email') return 'This is not an email address such as someone@example.com.';
  return WORDS[code] ?? (message || 'Something went wrong. Try again in a moment.');
}

/** Resolves a path below the base of the service; any other value leads to its first page. */
export function onward(path) {
  return path?.startsWith('/') && !path.startsWith('//') ? new URL(`.${path}`, BASE) : BASE;
}
