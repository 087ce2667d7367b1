// The messages of a conversation.

import { h, icon, iconButton, set, setText } from '../../dom.js';
import { MarkdownView } from '../../markdown/render.js';
import { lockOf, textOf } from '../conversation.js';
import { ImageView } from './image.js';
import { SourcesView } from './sources.js';
import { WidgetView } from './widget/widget.js';

/** How far from the end somebody may be and still follow what comes, in px. */
const NEAR = 80;

const WHO = { user: 'You said', assistant: 'The reply', notice: 'A notice', tasks: 'Tasks', widget: 'A card', image: 'An image' };

/** Shows items, each kept as one element while it is there. */
export class MessagesView {
  #shown = new Map();
  #follows = true;

  /**
   * @param {{onAgain: () => void, onContinue: () => void, onEarlier: () => void, actions: import('./widget/context.js').Ports}} asked
   * @param {HTMLElement} progress stands behind the last message
   */
  constructor({ onAgain, onContinue, onEarlier, actions }, progress) {
    this.onAgain = onAgain;
    this.onContinue = onContinue;
    this.actions = actions;
    this.earlier = h('button', { type: 'button', class: 'earlier', hidden: true, onclick: onEarlier }, 'Show earlier messages');
    // What comes is announced when it is whole, by the page's status.
    this.log = h('div', { class: 'log', role: 'log', 'aria-live': 'off', 'aria-label': 'Messages' });
    this.latest = h('button', { type: 'button', class: 'latest', hidden: true, onclick: () => this.toEnd() }, icon('down'), 'Latest');
    this.scroll = h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Conversation' }, this.earlier, this.log, progress);
    this.element = h('div', { class: 'messages' }, this.scroll, this.latest);
    this.scroll.addEventListener('scroll', () => this.#look(), { passive: true });
    new ResizeObserver(() => this.#stay()).observe(this.log);
    new ResizeObserver(() => this.#stay()).observe(this.scroll);
  }

  /** @param {import('../conversation.js').Conversation} state */
  show(state) {
    set(this.earlier, 'hidden', state.before === null);
    const height = this.scroll.scrollHeight;
    const first = this.log.firstElementChild;
    const kept = new Set(state.items.map(({ key }) => key));
    for (const [key, view] of this.#shown) {
      if (!kept.has(key)) {
        view.element.remove();
        this.#shown.delete(key);
      }
    }
    const last = state.items.findLast(({ role }) => role !== 'notice' && role !== 'tasks');
    const canSay = state.phase === 'idle' && lockOf(state) === null;
    let at = this.log.firstElementChild;
    for (const item of state.items) {
      const view = this.#shown.get(item.key) ?? this.#make(item);
      if (view.element !== at) this.log.insertBefore(view.element, at);
      at = view.element.nextElementSibling;
      view.show(item, item === last && canSay, state.thread);
    }
    // What is put in front must not move what is being read.
    if (first !== null && first !== this.log.firstElementChild && first.isConnected) {
      this.scroll.scrollTop += this.scroll.scrollHeight - height;
    }
    this.#stay();
  }

  /** Goes to the end, and follows from now on. */
  toEnd() {
    this.#follows = true;
    this.#stay();
    this.#look();
  }

  #make(item) {
    const view = this.#viewOf(item);
    this.#shown.set(item.key, view);
    return view;
  }

  #viewOf(item) {
    switch (item.role) {
      case 'assistant':
        return new Reply(this.onAgain, this.onContinue);
      case 'user':
        return new Said(this.onAgain);
      case 'tasks':
        return new Tasks();
      case 'widget':
        return new Widget(this.actions);
      case 'image':
        return new Picture();
      default:
        return new Notice(item);
    }
  }

  #stay() {
    if (this.#follows) this.scroll.scrollTop = this.scroll.scrollHeight;
    this.#look(this.#follows);
  }

  #look(follows) {
    const left = this.scroll.scrollHeight - this.scroll.clientHeight - this.scroll.scrollTop;
    this.#follows = follows ?? left < NEAR;
    set(this.latest, 'hidden', this.#follows || left < NEAR);
  }
}

function frame(role, ...children) {
  return h('article', { class: `message ${role}` }, h('h2', { class: 'unseen' }, `${WHO[role]}:`), ...children);
}

class Said {
  constructor(onAgain) {
    this.text = h('div', { class: 'bubble', dir: 'auto' });
    this.state = h('p', { class: 'state' });
    // For a message whose reply was stopped or failed before its first word.
    this.again = iconButton('again', 'Ask for an answer', onAgain, { hidden: true });
    this.element = frame('user', this.text, this.state, this.again);
  }

  show(item, isLast) {
    set(this.again, 'hidden', !isLast || item.status !== 'done');
    setText(this.text, textOf(item));
    setText(this.state, { sending: 'Sending …', unsent: 'Not sent' }[item.status] ?? '');
    set(this.element, 'data-status', item.status);
  }
}

/** What is said of a reply that ended early. */
const INCOMPLETE = {
  stopped: 'Stopped',
  abandoned: 'Stopped, because this page was closed',
  broken: 'Ended early, because something went wrong',
};

class Reply {
  constructor(onAgain, onContinue) {
    const text = h('div', { class: 'markdown' });
    this.view = new MarkdownView(text);
    this.sources = new SourcesView();
    this.copy = iconButton('copy', 'Copy the reply', null, { 'data-copy': 'reply' });
    this.again = iconButton('again', 'Ask for another answer', onAgain);
    this.state = h('p', { class: 'state' });
    this.actions = h('div', { class: 'actions' }, this.copy, this.again);
    const goOn = h('button', { type: 'button', class: 'button small', 'data-action': 'continue', onclick: onContinue }, 'Continue');
    const retry = h('button', { type: 'button', class: 'button small', 'data-action': 'again', onclick: onAgain }, 'Try again');
    this.ways = h('div', { class: 'ways', hidden: true }, goOn, retry);
    this.element = frame('assistant', text, this.sources.element, this.state, this.ways, this.actions);
  }

  show(item, isLast) {
    const early = Object.hasOwn(INCOMPLETE, item.status);
    set(this.again, 'hidden', !isLast || early);
    set(this.ways, 'hidden', !isLast || !early);
    set(this.actions, 'hidden', item.status === 'streaming');
    setText(this.state, INCOMPLETE[item.status] ?? '');
    set(this.element, 'data-status', item.status);
    if (item === this.item) return;
    this.item = item;
    this.element.source = textOf(item);
    this.view.show(this.element.source);
    this.sources.show(item.status === 'streaming' ? [] : (item.sources ?? []));
  }
}

/** What a reader who does not see the mark hears. */
const STATES = { loading: 'In progress: ', complete: 'Done: ', none: '' };

class Tasks {
  constructor() {
    this.title = h('strong', { dir: 'auto', hidden: true });
    this.list = h('ul', { class: 'tasks-list' });
    this.element = frame('tasks', this.title, this.list);
  }

  show(item) {
    if (item === this.item) return;
    this.item = item;
    const { title, tasks } = item.list;
    set(this.title, 'hidden', title === null);
    setText(this.title, title ?? '');
    this.list.replaceChildren(...tasks.map(task));
  }
}

function task({ text, detail, state }) {
  const name = h('span', { dir: 'auto' }, h('span', { class: 'unseen' }, STATES[state] ?? ''), text);
  return h('li', { 'data-state': state }, name, detail ? h('span', { class: 'detail', dir: 'auto' }, detail) : null);
}

class Widget {
  constructor(actions) {
    this.view = new WidgetView(actions);
    this.copy = iconButton('copy', 'Copy as text', null, { 'data-copy': 'reply' });
    this.actions = h('div', { class: 'actions' }, this.copy);
    this.element = frame('widget', this.view.element, this.actions);
  }

  show(item, _, thread) {
    const domains = thread?.domains ?? null;
    set(this.element, 'data-status', item.status);
    set(this.actions, 'hidden', item.copyText === null || item.status === 'streaming');
    if (item === this.item && String(domains) === this.domains) return;
    this.item = item;
    this.domains = String(domains);
    this.element.source = item.copyText ?? '';
    this.view.show(item.widget, { itemId: item.id, domains });
  }
}

class Picture {
  constructor() {
    this.view = new ImageView();
    this.element = frame('image', this.view.element);
  }

  show(item) {
    this.view.show(item.picture, item.status === 'streaming');
  }
}

class Notice {
  constructor({ notice, parts }) {
    const text = h('div', { class: 'markdown' });
    new MarkdownView(text).show(parts.join(''));
    const title = notice.title ? h('strong', { dir: 'auto' }, notice.title) : null;
    this.element = frame('notice', h('div', { class: 'notice-body', 'data-level': notice.level }, title, text));
  }

  show() {}
}
