// Gives the visitor a file that the page has made.

import { h } from '../../dom.js';

/** How long a browser may take to begin the download, in ms. */
const KEPT = 60_000;

/** @param {{name: string, text: string}} file JSON */
export function download({ name, text }) {
  const href = URL.createObjectURL(new Blob([text], { type: 'application/json' }));
  h('a', { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), KEPT);
}
