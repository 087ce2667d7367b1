// The sources of a reply.

import { h, set } from '../../dom.js';

export class SourcesView {
  constructor() {
    this.list = h('ol', { class: 'sources-list' });
    this.element = h('div', { class: 'sources', hidden: true }, h('h3', {}, 'Sources'), this.list);
  }

  /** @param {import('../sources.js').Source[]} sources */
  show(sources) {
    set(this.element, 'hidden', sources.length === 0);
    this.list.replaceChildren(...sources.map(entry));
  }
}

function entry({ title, href, detail }) {
  const name =
    href === null
      ? h('span', { dir: 'auto' }, title)
      : h('a', { href, target: '_blank', rel: 'noopener noreferrer nofollow', title: href, dir: 'auto' }, title);
  return h('li', {}, name, detail ? h('span', { class: 'detail', dir: 'auto' }, detail) : null);
}
