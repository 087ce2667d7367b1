// Uploads a file. `fetch` reports no upload progress, so this uses an XMLHttpRequest.

/** Maximum time without upload progress, in ms; then the connection counts as lost. The service may need seconds for a preview. */
const SILENCE = 60_000;

/**
 * Posts a file as the part `file` of a form.
 * @param {URL} url
 * @param {Blob} file
 * @param {{onProgress: (part: number) => void, signal: AbortSignal, headers?: Record<string, string>, credentials?: string}} how `part`
 * is between 0 and 1; without cookies no progress is reported
 * @returns {Promise<{status: number, header: (name: string) => string | null, body: any} | null>} null without a
 * response; `body` is null if it is not JSON
 * @throws {DOMException} an `AbortError` when the signal is aborted
 */
export function postFile(url, file, { onProgress, signal, headers = {}, credentials = 'same-origin' }) {
  // An XMLHttpRequest to its own origin always sends cookies; the service ignores them if there is a token.
  if (credentials === 'omit' && headers.Authorization === undefined) return fetchFile(url, file, { signal });
  return new Promise((resolve, reject) => {
    if (signal.aborted) {
      reject(signal.reason);
      return;
    }
    const request = new XMLHttpRequest();
    let silence;
    const wait = () => {
      clearTimeout(silence);
      silence = setTimeout(() => end(() => resolve(null)), SILENCE);
    };
    const onAbort = () => end(() => reject(signal.reason));
    const end = (settle) => {
      clearTimeout(silence);
      signal.removeEventListener('abort', onAbort);
      // Settle the promise first: aborting the request fires another event.
      settle();
      request.abort();
    };
    signal.addEventListener('abort', onAbort);
    request.upload.onprogress = ({ loaded, total }) => {
      wait();
      onProgress(total > 0 ? Math.min(loaded / total, 1) : 0);
    };
    request.onerror = () => end(() => resolve(null));
    request.onload = () => {
      const { status, response } = request;
      const headers = new Map(['Retry-After', 'X-Request-Id'].map((name) => [name, request.getResponseHeader(name)]));
      end(() => resolve({ status, header: (name) => headers.get(name) ?? null, body: response ?? null }));
    };
    request.open('POST', url);
    request.responseType = 'json';
    for (const [name, value] of Object.entries({ Accept: 'application/json', ...headers })) request.setRequestHeader(name, value);
    request.send(formOf(file));
    wait();
  });
}

function formOf(file) {
  const form = new FormData();
  form.append('file', file);
  return form;
}

async function fetchFile(url, file, { signal }) {
  try {
    const response = await fetch(url, { method: 'POST', body: formOf(file), credentials: 'omit', headers: { Accept: 'application/json' }, signal });
    const body = await response.json().catch(() => null);
    return { status: response.status, header: (name) => response.headers.get(name), body };
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    return null;
  }
}
