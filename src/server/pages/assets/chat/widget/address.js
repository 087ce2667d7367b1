// Addresses of images.

/** Images within the address itself. As an image, SVG runs no script. */
const DATA = /^data:image\/(?:png|jpeg|gif|webp|avif|svg\+xml)[;,]/i;

/**
 * @param {unknown} source
 * @param {{base: string, domains?: string[] | null, data?: boolean}} rules `base` is the page's address; `domains` are the
 * only other hosts that images may come from, null for all of them; `data` allows `data:` addresses
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
