// The chat in a frame on a page of another site. The page around it sets the workflow, and offers tokens and tools
// through a message channel.

import { h } from '../dom.js';
import { Api, ApiError } from './api.js';
import './element.js';
import { Tokens, subjectOf } from './tokens.js';
import { plain } from './words.js';

/** Events of the chat that the page around the frame receives. */
const EVENTS = ['callboard-action', 'callboard-effect'];

/** Sends requests to the page around the frame, and waits for their results. */
class Host {
  #pending = new Map();
  #next = 0;

  constructor(port) {
    this.port = port;
    port.onmessage = ({ data }) => this.#receive(data);
  }

  /** @param {(set: {tools: boolean}) => void} onSet the page has changed its offer */
  listen(onSet) {
    this.onSet = onSet;
  }

  token() {
    return this.#ask({ ask: 'token' });
  }

  tool(call) {
    return this.#ask({ ask: 'tool', call });
  }

  tell(name, detail) {
    this.port.postMessage({ event: { name, detail } });
  }

  #ask(question) {
    this.#next += 1;
    const id = this.#next;
    this.port.postMessage({ ...question, id });
    return new Promise((resolve, reject) => this.#pending.set(id, { resolve, reject }));
  }

  #receive({ id, value, error, set }) {
    if (set) return this.onSet?.(set);
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    if (error === undefined) pending?.resolve(value);
    else pending?.reject(new Error(error));
  }
}

/** Shows the chat, or the reason why it is not available. */
class Frame {
  /** Cancels waiting for the visitor, who signs in in another window. */
  #returning = null;

  constructor(host, origin, { workflow, tokens, tools }) {
    this.host = host;
    this.origin = origin;
    this.tools = tools;
    this.workflow = workflow;
    this.hasCookies = document.body.dataset.cookies !== 'no';
    const credentials = this.hasCookies ? 'same-origin' : 'omit';
    this.access = tokens ? { tokens: new Tokens(() => host.token()), credentials: 'omit' } : { credentials };
    this.api = new Api(workflow, this.access);
    host.listen(({ tools: now }) => this.#offer(now));
  }

  async open() {
    this.#returning?.abort();
    this.#note('The chat is loading …');
    try {
      const record = await this.api.record();
      // A tab's memory belongs to one page and one user.
      const subject = this.access.tokens ? subjectOf(await this.access.tokens.token()) : '';
      this.access.scope = `${this.origin} ${subject}`;
      this.#show(record);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.host.tell('callboard-error', { message: plain(error) });
      if (error.code === 'chat.login_required') this.#signIn();
      else this.#note(plain(error), h('button', { type: 'button', class: 'button', onclick: () => this.open() }, 'Try again'));
    }
  }

  #show(record) {
    const chat = document.createElement('callboard-chat');
    chat.access = this.access;
    chat.setAttribute('workflow', JSON.stringify(record));
    chat.setAttribute('embedded', '');
    for (const name of EVENTS) chat.addEventListener(name, ({ detail }) => this.host.tell(name, detail));
    document.title = record.name;
    document.body.replaceChildren(chat);
    this.chat = chat;
    this.#offer(this.tools);
    this.host.tell('callboard-ready', { workflow: record.id, name: record.name });
  }

  #offer(tools) {
    this.tools = tools;
    if (this.chat) this.chat.onClientTool = tools ? (call) => this.host.tool(call) : null;
  }

  /** Offers signing in in a new window. The frame continues when the visitor returns. */
  #signIn() {
    const href = new URL(`./${this.workflow}`, location.href).href;
    // A click in the frame focuses it, too.
    const onclick = () => {
      this.#returning?.abort();
      this.#returning = new AbortController();
      addEventListener('focus', () => this.open(), { once: true, signal: this.#returning.signal });
    };
    const link = { class: 'button', href, target: '_blank', rel: 'noopener' };
    if (this.hasCookies) this.#note('Sign in to use this chat.', h('a', { ...link, onclick }, 'Sign in'));
    else this.#note('You cannot sign in to this chat on this page.', h('a', link, 'Open the chat in a new window'));
  }

  #note(text, ...more) {
    const heading = h('h1', { class: 'unseen' }, 'Chat');
    document.body.replaceChildren(h('main', { class: 'page-note' }, heading, h('p', { role: 'status' }, text), ...more));
  }
}

const { parent } = window;

function start(event) {
  if (event.source !== parent || event.data?.callboard !== 'start' || event.ports.length !== 1) return;
  removeEventListener('message', start);
  new Frame(new Host(event.ports[0]), event.origin, event.data).open();
}

// The content security policy limits which sites may embed this page. It sends only a greeting until the page around it responds.
addEventListener('message', start);
parent.postMessage({ callboard: 'hello' }, '*');
