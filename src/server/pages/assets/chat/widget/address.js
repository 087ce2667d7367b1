// Checks image addresses.

/** Addresses that contain the image data. SVG runs no scripts when it is loaded as an image. */
const DATA = /^data:image\/(?:png|jpeg|gif|webp|avif|svg\+xml)[;,]/i;

/**
 * @param {unknown} source
 * @param {{base: string, domains?: string[] | null, data?: boolean}} rules `base` is the page's address; `domains` are the
 * other hosts that images may be loaded from, null for all hosts; `data` allows `data:` addresses
 * @returns {string | null} null if the page must not load it
 */
export function imageAddress(source, { base, domains = null, data = true }) {
  if (typeof source !== 'string' || source === '') return null;
  if (DATA.test(source)) return data ? source : null;
  let url;
  try {
    url = new URL(source, base);
  } catch {
    return null;
  }
  if (url.username !== '' || url.password !== '') return null;
  if (url.origin === new URL(base).origin && /^https?:$/.test(url.protocol)) return url.href;
  if (url.protocol !== 'https:') return null;
  return domains === null || domains.some((domain) => String(domain).toLowerCase() === url.hostname) ? url.href : null;
}
