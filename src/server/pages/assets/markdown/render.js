// Renders Markdown as elements. Unchanged blocks keep their elements, so that a growing reply is cheap to show and keeps
// the reader's selection.

import { h } from '../dom.js';
import { blocks } from './blocks.js';
import { inline } from './inline.js';

/** Shows one changing text in an element. */
export class MarkdownView {
  /** The shown blocks, with their sources. */
  #shown = [];

  /** @param {HTMLElement} element an empty one */
  constructor(element) {
    this.element = element;
  }

  /** @param {string} text the whole text */
  show(text) {
    const next = blocks(text).map((block) => ({ block, source: JSON.stringify(block) }));
    for (const [at, entry] of next.entries()) {
      const old = this.#shown[at];
      if (old?.source === entry.source) entry.node = old.node;
      else {
        entry.node = render(entry.block);
        if (old) old.node.replaceWith(entry.node);
        else this.element.append(entry.node);
      }
    }
    for (const { node } of this.#shown.slice(next.length)) node.remove();
    this.#shown = next;
  }
}

function render(block) {
  switch (block.type) {
    case 'heading':
      // The page uses the first two heading levels.
      return h(`h${Math.min(block.level + 2, 6)}`, { dir: 'auto' }, ...words(block.text));
    case 'code':
      return code(block);
    case 'rule':
      return h('hr');
    case 'quote':
      return h('blockquote', { dir: 'auto' }, ...block.blocks.map(render));
    case 'list':
      return list(block);
    case 'table':
      return table(block);
    default:
      return h('p', { dir: 'auto' }, ...words(block.text));
  }
}

function code({ language, text }) {
  const name = /^[\w+#.-]{1,24}$/.test(language) ? language : '';
  return h(
    'div',
    { class: 'code' },
    h('div', { class: 'code-head' }, h('span', {}, name), h('button', { type: 'button', class: 'copy', 'data-copy': 'code' }, 'Copy')),
    h('pre', { tabindex: '0', dir: 'ltr', role: 'region', 'aria-label': name ? `Code, ${name}` : 'Code' }, h('code', {}, text)),
  );
}

function list({ ordered, start, items }) {
  const children = items.map(({ checked, blocks: inner }) => {
    const box = checked === null ? null : h('input', { type: 'checkbox', disabled: true, checked, 'aria-label': checked ? 'Done' : 'To do' });
    // The first paragraph of an item is on the line of its mark.
    const tight = inner[0]?.type === 'paragraph' ? words(inner[0].text) : inner.slice(0, 1).map(render);
    return h('li', { dir: 'auto', class: box && 'task' }, box, ...tight, ...inner.slice(1).map(render));
  });
  return ordered ? h('ol', { start: start === 1 ? null : start, dir: 'auto' }, ...children) : h('ul', { dir: 'auto' }, ...children);
}

function table({ align, head, rows }) {
  const row = (tag, cells) =>
    h('tr', {}, ...cells.map((cell, at) => h(tag, { dir: 'auto', class: align[at] && `align-${align[at]}`, scope: tag === 'th' ? 'col' : null }, ...words(cell))));
  return h(
    'div',
    { class: 'table', tabindex: '0', role: 'region', 'aria-label': 'Table' },
    h('table', {}, h('thead', {}, row('th', head)), h('tbody', {}, ...rows.map((cells) => row('td', cells)))),
  );
}

function words(text) {
  return inline(text).map(node);
}

function node(part) {
  switch (part.type) {
    case 'text':
      return part.text;
    case 'break':
      return h('br');
    case 'code':
      return h('code', { dir: 'ltr' }, part.text);
    case 'link':
      return h('a', { href: part.href, target: '_blank', rel: 'noopener noreferrer nofollow', title: part.href }, ...part.children.map(node));
    default:
      return h(part.type, {}, ...part.children.map(node));
  }
}
