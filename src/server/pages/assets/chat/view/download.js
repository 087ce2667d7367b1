// Downloads a file that the page has created.

import { h } from '../../dom.js';

/** Time for the browser to begin the download, in ms. */
const KEPT = 60_000;

/** @param {{name: string, text: string, type?: string}} file JSON by default */
export function download({ name, text, type = 'application/json' }) {
  const href = URL.createObjectURL(new Blob([text], { type }));
  h('a', { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), KEPT);
}
