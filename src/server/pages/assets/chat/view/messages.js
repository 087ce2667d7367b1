// The messages of a conversation.

import { h, icon, iconButton, set, setText } from '../../dom.js';
import { MarkdownView } from '../../markdown/render.js';
import { lastStored, lockOf, textOf } from '../conversation.js';
import { AttachmentsView } from './attachments/list.js';
import { CallView } from './call.js';
import { FeedbackView } from './feedback.js';
import { ImageView } from './image.js';
import { QuestionsView } from './questions/questions.js';
import { SourcesView } from './sources.js';
import { WidgetView } from './widget/widget.js';

/** Maximum distance from the end, in px, at which the view still follows new content. */
const NEAR = 80;

const WHO = { user: 'You said', assistant: 'The reply', notice: 'A notice', tasks: 'Tasks', widget: 'A card', image: 'An image', asked: 'Questions', called: 'A tool of the page' };

/** Shows items. Each keeps its element while it is listed. */
export class MessagesView {
  #shown = new Map();
  #follows = true;

  /**
   * @param {{onAgain: () => void, onContinue: () => void, onEarlier: () => void, actions: import('./widget/context.js').Ports,
   *   feedback: import('./feedback.js').FeedbackPort, questions: import('./questions/questions.js').QuestionsPort,
   *   tools: import('./call.js').ToolsPort}} asked
   * @param {HTMLElement} progress is placed after the last message
   */
  constructor({ onAgain, onContinue, onEarlier, actions, feedback, questions, tools }, progress) {
    this.onAgain = onAgain;
    this.onContinue = onContinue;
    this.actions = actions;
    this.feedback = feedback;
    this.questions = questions;
    this.tools = tools;
    this.earlier = h('button', { type: 'button', class: 'earlier', hidden: true, onclick: onEarlier }, 'Show earlier messages');
    // The status view announces a reply when it is complete.
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
    const kept = new Map(state.items.map(({ key, role }) => [key, role]));
    for (const [key, view] of this.#shown) {
      // An item may be replaced by an item of another kind.
      if (kept.get(key) !== view.role) {
        view.element.remove();
        this.#shown.delete(key);
      }
    }
    const last = state.items.findLast(({ role }) => role !== 'notice' && role !== 'tasks');
    const lock = lockOf(state);
    const canSay = state.phase === 'idle' && lock === null;
    const end = lastStored(state);
    const isFree = state.phase === 'idle' || state.phase === 'parked';
    let at = this.log.firstElementChild;
    for (const item of state.items) {
      const view = this.#shown.get(item.key) ?? this.#make(item);
      if (view.element !== at) this.log.insertBefore(view.element, at);
      at = view.element.nextElementSibling;
      view.show(item, item === last && canSay, state.thread, { isEnd: item === end, isFree, lock });
    }
    // Prepended items must not move the text that is being read.
    if (first !== null && first !== this.log.firstElementChild && first.isConnected) {
      this.scroll.scrollTop += this.scroll.scrollHeight - height;
    }
    this.#stay();
  }

  /** Scrolls to the end, and follows new content. */
  toEnd() {
    this.#follows = true;
    this.#stay();
    this.#look();
  }

  /** Moves the focus to the first field of an item's questions. */
  focusQuestions(key) {
    const view = this.#shown.get(key);
    if (!(view instanceof Asked)) return;
    view.focus();
    // At the end of a long form its first field would be out of view.
    if (view.element.offsetHeight <= this.scroll.clientHeight) return;
    this.#follows = false;
    view.element.scrollIntoView({ block: 'start' });
    this.#look(false);
  }

  #make(item) {
    const view = this.#viewOf(item);
    view.role = item.role;
    this.#shown.set(item.key, view);
    return view;
  }

  #viewOf(item) {
    switch (item.role) {
      case 'assistant':
        return new Reply(this.onAgain, this.onContinue, this.feedback);
      case 'user':
        return new Said(this.onAgain);
      case 'tasks':
        return new Tasks();
      case 'widget':
        return new Widget(this.actions, this.feedback);
      case 'image':
        return new Picture();
      case 'questions':
        return new Asked(this.questions);
      case 'call':
        return new Called(this.tools);
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
    this.attachments = new AttachmentsView();
    this.text = h('div', { class: 'bubble', dir: 'auto' });
    this.state = h('p', { class: 'state' });
    // Shown if the reply was stopped or failed before its first word.
    this.again = iconButton('again', 'Ask for an answer', onAgain, { hidden: true });
    this.element = frame('user', this.attachments.element, this.text, this.state, this.again);
  }

  show(item, isLast) {
    set(this.again, 'hidden', !isLast || item.status !== 'done');
    const text = textOf(item);
    this.attachments.show(item.attachments ?? []);
    setText(this.text, text);
    set(this.text, 'hidden', text === '' && item.attachments?.length > 0);
    setText(this.state, { sending: 'Sending …', unsent: 'Not sent' }[item.status] ?? '');
    set(this.element, 'data-status', item.status);
  }
}

/** Texts for a reply that ended early. */
const INCOMPLETE = {
  stopped: 'Stopped',
  abandoned: 'Stopped, because this page was closed',
  broken: 'Ended early, because something went wrong',
};

class Reply {
  constructor(onAgain, onContinue, feedback) {
    const text = h('div', { class: 'markdown' });
    this.view = new MarkdownView(text);
    this.sources = new SourcesView();
    this.copy = iconButton('copy', 'Copy the reply', null, { 'data-copy': 'reply' });
    this.again = iconButton('again', 'Ask for another answer', onAgain);
    this.state = h('p', { class: 'state' });
    this.feedback = new FeedbackView(feedback);
    this.actions = h('div', { class: 'actions' }, this.copy, ...this.feedback.elements, this.again);
    const goOn = h('button', { type: 'button', class: 'button small', 'data-action': 'continue', onclick: onContinue }, 'Continue');
    const retry = h('button', { type: 'button', class: 'button small', 'data-action': 'again', onclick: onAgain }, 'Try again');
    this.ways = h('div', { class: 'ways', hidden: true }, goOn, retry);
    this.element = frame('assistant', text, this.sources.element, this.state, this.ways, this.actions);
  }

  show(item, isLast, thread) {
    const early = Object.hasOwn(INCOMPLETE, item.status);
    set(this.again, 'hidden', !isLast || early);
    set(this.ways, 'hidden', !isLast || !early);
    set(this.actions, 'hidden', item.status === 'streaming');
    this.feedback.show(item.id, thread?.id ?? null);
    setText(this.state, INCOMPLETE[item.status] ?? '');
    set(this.element, 'data-status', item.status);
    if (item === this.item) return;
    this.item = item;
    this.element.source = textOf(item);
    this.view.show(this.element.source);
    this.sources.show(item.status === 'streaming' ? [] : (item.sources ?? []));
  }
}

/** Screen reader texts for the marks of tasks. */
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
  constructor(actions, feedback) {
    this.view = new WidgetView(actions);
    this.feedback = new FeedbackView(feedback);
    this.copy = iconButton('copy', 'Copy as text', null, { 'data-copy': 'reply' });
    this.actions = h('div', { class: 'actions' }, this.copy, ...this.feedback.elements);
    this.element = frame('widget', this.view.element, this.actions);
  }

  show(item, _, thread, { lock }) {
    const domains = thread?.domains ?? null;
    // A locked thread makes the widget's actions unavailable.
    const source = `${domains} ${lock === null}`;
    set(this.element, 'data-status', item.status);
    set(this.actions, 'hidden', item.status === 'streaming');
    set(this.copy, 'hidden', item.copyText === null);
    this.feedback.show(item.id, thread?.id ?? null);
    if (item === this.item && source === this.source) return;
    this.item = item;
    this.source = source;
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

class Asked {
  constructor(questions) {
    this.view = new QuestionsView(questions);
    this.element = frame('asked', this.view.element);
  }

  show(item, _, __, { lock }) {
    set(this.element, 'data-status', item.questions.status);
    this.view.show(item, lock);
  }

  focus() {
    this.view.focus();
  }
}

class Called {
  constructor(tools) {
    this.view = new CallView(tools);
    this.element = frame('called', this.view.element);
  }

  show(item, _, thread, about) {
    this.view.show(item, { thread, ...about });
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
