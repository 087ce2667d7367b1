// The list of the visitor's conversations.

import { h, icon, iconButton, set, setText } from '../../dom.js';
import { UNTITLED, matching } from '../search.js';
import { ask } from './dialog.js';

/** Shows threads, newest first, with the actions for each. */
export class HistoryView {
  /**
   * @param {string} name the workflow's name
   * @param {{onNew: () => void, onOpen: (id: string) => void, onRename: (id: string, title: string) => Promise<void>,
   *   onDelete: (id: string) => Promise<void>, onMore: () => void, onClose: () => void, onExport: () => void,
   *   onDownloadAll: () => void, onEraseAll: () => void}} asked
   */
  constructor(name, asked) {
    this.name = name;
    this.asked = asked;
    this.list = h('ul', { class: 'threads' });
    this.note = h('p', { class: 'quiet', 'aria-live': 'polite' });
    this.search = h('input', {
      type: 'search',
      class: 'history-search',
      placeholder: 'Search titles …',
      'aria-label': 'Search conversations by title',
      autocomplete: 'off',
      dir: 'auto',
      hidden: true,
      oninput: () => this.#redraw(),
      onkeydown: (event) => this.#key(event),
    });
    this.export = h('button', { type: 'button', class: 'history-export', hidden: true, onclick: asked.onExport }, icon('export'), 'Export conversation');
    this.all = h(
      'div',
      { class: 'history-all', role: 'group', 'aria-label': 'Your data', hidden: true },
      h('button', { type: 'button', class: 'history-export', 'data-does': 'download-all', onclick: asked.onDownloadAll }, icon('file'), 'Download all my data'),
      h('button', { type: 'button', class: 'history-export', 'data-does': 'erase-all', onclick: () => this.#eraseAll() }, icon('bin'), 'Erase all my data'),
    );
    this.more = h('button', { type: 'button', class: 'earlier', hidden: true, onclick: asked.onMore }, 'Show older');
    this.element = h(
      'nav',
      { class: 'history', 'aria-label': 'Conversations', id: 'callboard-history' },
      h('div', { class: 'history-head' }, h('p', { class: 'brand', dir: 'auto' }, name), iconButton('close', 'Close the list', asked.onClose, { class: 'icon-button narrow-only' })),
      h('button', { type: 'button', class: 'new', onclick: asked.onNew }, icon('plus'), 'New conversation'),
      this.search,
      this.list,
      this.note,
      this.more,
      this.export,
      this.all,
    );
  }

  /**
   * @param {{id: string, title?: string, created_at: string}[]} threads newest first
   * @param {{open: string | null, more: boolean, failed: boolean}} how
   */
  show(threads, how) {
    this.last = [threads, how];
    this.#redraw();
  }

  #redraw() {
    // Do not replace a title that is being edited.
    if (this.list.querySelector('.rename') === null) this.#draw(...this.last);
  }

  #key(event) {
    if (event.key !== 'Escape' || this.search.value === '') return;
    // Escape closes the list or stops a reply only if the search is empty.
    event.stopPropagation();
    event.preventDefault();
    this.search.value = '';
    this.#redraw();
  }

  #draw(all, { open, more, failed }) {
    set(this.search, 'hidden', all.length === 0 && this.search.value === '');
    set(this.export, 'hidden', open === null);
    set(this.all, 'hidden', all.length === 0);
    const threads = matching(all, this.search.value);
    const rows = [];
    let group = '';
    for (const thread of threads) {
      const next = dayOf(thread.created_at);
      if (next !== group) rows.push(h('li', { class: 'day' }, h('h2', {}, next)));
      group = next;
      rows.push(this.#row(thread, thread.id === open));
    }
    const focused = this.list.contains(document.activeElement) ? document.activeElement.dataset.focus : null;
    this.list.replaceChildren(...rows);
    if (focused) this.list.querySelector(`[data-focus="${CSS.escape(focused)}"]`)?.focus();
    setText(this.note, failed ? 'The list cannot be read right now.' : noteOf(all, threads, more));
    set(this.more, 'hidden', !more);
  }

  #row(thread, isOpen) {
    const title = thread.title || UNTITLED;
    const go = h(
      'button',
      { type: 'button', class: 'thread', dir: 'auto', 'aria-current': isOpen ? 'true' : null, 'data-focus': `open ${thread.id}`, onclick: () => this.asked.onOpen(thread.id) },
      title,
    );
    const row = h('li', { class: 'row' }, go);
    const rename = iconButton('edit', `Rename “${title}”`, () => this.#rename(row, thread, title), { 'data-focus': `rename ${thread.id}` });
    const remove = iconButton('bin', `Delete “${title}”`, () => this.#delete(thread, title), { 'data-focus': `delete ${thread.id}` });
    row.append(h('span', { class: 'row-actions' }, rename, remove));
    return row;
  }

  #rename(row, thread, title) {
    const field = h('input', { type: 'text', class: 'rename', value: title, maxlength: '200', dir: 'auto', 'aria-label': 'New title' });
    const finish = async (keep) => {
      if (!field.isConnected || field.disabled) return;
      const wanted = field.value.trim();
      // Prevents a second call: removing the field blurs it.
      field.disabled = true;
      if (keep && wanted !== '' && wanted !== title) await this.asked.onRename(thread.id, wanted);
      field.remove();
      this.#draw(...this.last);
      // A row shows its buttons while an element in it has the focus.
      for (const what of document.activeElement === document.body ? ['open', 'rename'] : []) {
        this.list.querySelector(`[data-focus="${what} ${CSS.escape(thread.id)}"]`)?.focus();
      }
    };
    field.addEventListener('keydown', (event) => {
      if (event.key === 'Enter') finish(true);
      if (event.key === 'Escape') {
        event.stopPropagation();
        finish(false);
      }
    });
    field.addEventListener('blur', () => finish(true));
    row.replaceChildren(field);
    field.focus();
    field.select();
  }

  async #delete(thread, title) {
    const sure = await ask({
      title: 'Delete this conversation?',
      about: title,
      text: 'and all of its messages will be gone.',
      yes: 'Delete',
    });
    if (sure) await this.asked.onDelete(thread.id);
  }

  async #eraseAll() {
    const sure = await ask({
      title: 'Erase all your data?',
      about: this.name,
      text: 'will forget all of your conversations, with their files and feedback. This cannot be undone.',
      yes: 'Erase',
    });
    if (sure) await this.asked.onEraseAll();
  }
}

/** The note for an empty list. */
function noteOf(all, found, more) {
  if (all.length === 0) return 'Your conversations will be listed here.';
  if (found.length > 0) return '';
  return more ? 'No title matches so far. Older conversations are not searched yet.' : 'No title matches.';
}

function dayOf(at) {
  const midnight = (date) => new Date(date).setHours(0, 0, 0, 0);
  const days = Math.round((midnight(Date.now()) - midnight(at)) / 86_400_000);
  if (days <= 0) return 'Today';
  if (days === 1) return 'Yesterday';
  return days < 7 ? 'The last week' : 'Before';
}
