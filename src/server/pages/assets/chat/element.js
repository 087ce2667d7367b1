// <callboard-chat workflow="{the workflow's public record as JSON}">: the whole chat. `signed-in-as` is the email address of the
// signed-in user, if the chat requires signing in. `embedded`: the chat is in a frame on another page. The property `access` says how
// the service identifies the visitor, as in `Api`. `answers`: the visitor may also answer questions of runs, as in `RunQuestions`.

import { h, iconButton, set, setText } from '../dom.js';
import { widgetActions } from './actions.js';
import { ApiError, Api } from './api.js';
import { lastStored, lockOf } from './conversation.js';
import { exported } from './export.js';
import { Feedback } from './feedback.js';
import { memory } from './memory.js';
import { Drafts } from './questions.js';
import { RunQuestions } from './run_questions.js';
import { Session } from './session.js';
import { Threads } from './threads.js';
import { ToolRunner } from './tools.js';
import { eraseData, exportFile } from './visitor_data.js';
import { plain } from './words.js';
import { accountView } from './view/account.js';
import { Attach } from './view/attachments/attach.js';
import { Composer } from './view/composer.js';
import { DictationView, canDictate } from './view/dictation.js';
import { download } from './view/download.js';
import { HistoryView } from './view/history.js';
import { MessagesView } from './view/messages.js';
import { RunQuestionsView } from './view/run_questions.js';
import { startView } from './view/start.js';
import { StatusView } from './view/status.js';

/** How long a button shows that it has copied, in ms. */
const COPIED = 1500;
/** The minimum width for the list of conversations next to the chat. */
const WIDE = matchMedia('(min-width: 56rem)');

class CallboardChat extends HTMLElement {
  #onClientTool = null;

  /**
   * Answers the client tool calls of turns that this page starts.
   * @type {import('./tools.js').Handler | null}
   */
  get onClientTool() {
    return this.#onClientTool;
  }

  set onClientTool(handler) {
    this.#onClientTool = typeof handler === 'function' ? handler : null;
    if (this.session !== undefined) this.#render(this.session.state);
  }

  connectedCallback() {
    // The page may have set it before this module was loaded.
    if (Object.hasOwn(this, 'onClientTool')) {
      const { onClientTool } = this;
      delete this.onClientTool;
      this.onClientTool = onClientTool;
    }
    this.workflow = JSON.parse(this.getAttribute('workflow'));
    this.api = new Api(this.workflow.id, this.access);
    this.memory = memory(this.workflow.id, this.access?.scope);
    this.threads = new Threads(this.api);
    this.#build();
    this.#listen();
    const thread = this.memory.get('thread');
    this.#begin(thread);
    this.composer.value = this.memory.get('draft') ?? '';
    this.#refreshThreads();
    // A frame must not take the focus from the page around it.
    if (WIDE.matches && !this.hasAttribute('embedded')) this.composer.focus();
  }

  disconnectedCallback() {
    this.session?.end();
    this.listening.abort();
  }

  #build() {
    const again = () => this.session.again();
    this.status = new StatusView({ onAgain: again, onReconnect: () => dispatchEvent(new Event('online')) });
    const onEarlier = () => this.session.earlier();
    const onContinue = () => this.session.goOn();
    const actions = widgetActions(this, () => this.session, (text) => this.status.tell(text));
    const asks = { actions, feedback: this.#feedback(), questions: this.#questions(), tools: this.#tools() };
    this.messages = new MessagesView({ onAgain: again, onContinue, onEarlier, ...asks }, this.status.progress);
    this.#parts();
    const asked = {
      onSend: (text) => this.#say(text),
      onStop: () => this.session.stop(),
      onDraft: (text) => this.memory.set('draft', text),
      onBlocked: (why) => this.status.tell(why),
    };
    this.composer = new Composer(asked, { attach: this.attach, dictation: this.dictation });
    this.history = new HistoryView(this.workflow.name, {
      onNew: () => this.#begin(null, true),
      onOpen: (id) => this.#begin(id, true),
      onRename: (id, title) => this.#change(() => this.threads.rename(id, title)),
      onDelete: (id) => this.#delete(id),
      onMore: () => this.threads.further().then(() => this.#showThreads()),
      onClose: () => this.#drawer(false),
      onExport: () => this.#export(),
      onDownloadAll: () => this.#downloadAll(),
      onEraseAll: () => this.#eraseAll(),
    });
    const user = this.getAttribute('signed-in-as');
    if (user) this.history.element.append(accountView(user, { onOut: () => this.#forget(), tell: (text) => this.status.tell(text) }));
    const answers = this.getAttribute('answers');
    const tell = (text) => this.status.tell(text);
    this.runQuestions = answers === null ? null : new RunQuestionsView(new RunQuestions(this.workflow.id, answers), tell);
    this.start = startView(this.workflow, (text) => this.#say(text));
    this.heading = h('h1', { dir: 'auto' });
    this.menu = iconButton('menu', 'Your conversations', () => this.#drawer(true), {
      class: 'icon-button narrow-only',
      'aria-controls': 'callboard-history',
      'aria-expanded': 'false',
    });
    const fresh = iconButton('plus', 'New conversation', () => this.#begin(null, true), { class: 'icon-button narrow-only' });
    this.main = h(
      'main',
      { class: 'main' },
      h('header', { class: 'top' }, this.menu, this.heading, fresh),
      this.start,
      this.messages.element,
      h('div', { class: 'foot' }, this.status.element, this.runQuestions?.element ?? null, this.composer.element),
    );
    this.scrim = h('div', { class: 'scrim', onclick: () => this.#drawer(false) });
    const skip = h('a', { class: 'skip', href: '#callboard-message' }, 'Go to the message box');
    this.replaceChildren(skip, this.history.element, this.scrim, this.main, ...(this.attach === null ? [] : [this.attach.zone.element]));
    this.#drawer(false);
  }

  #feedback() {
    return new Feedback({
      send: (thread, item, kind) => this.api.ask('items.feedback', { thread_id: thread, item_ids: [item], kind }),
      onChange: () => this.#render(this.session.state),
      onError: (error) => this.status.tell(`The feedback was not saved. ${error instanceof ApiError ? plain(error) : ''}`),
    });
  }

  #questions() {
    return {
      drafts: new Drafts(this.memory),
      send: (item, input) => this.session.answer(item, input),
      tell: (text) => this.status.tell(text),
      onSent: () => this.#leaveItem(),
    };
  }

  #tools() {
    this.runner = new ToolRunner({
      handler: () => this.#onClientTool,
      // The visitor may have left the conversation that contains the call.
      send: (thread, item, result) => {
        if (this.session.state.thread?.id === thread) return this.session.output(item, result);
        return Promise.resolve(new ApiError({ status: 0, code: 'request.dropped' }));
      },
      onChange: () => this.#render(this.session.state),
    });
    return { runner: this.runner, onLeave: () => this.#leaveItem() };
  }

  /** Moves the focus out of an item that no longer needs it. */
  #leaveItem() {
    if (lockOf(this.session.state) === null) this.composer.focus();
    else this.messages.scroll.focus();
  }

  /** Creates the optional parts of the composer: attachments and dictation. */
  #parts() {
    const { uploads, dictation } = this.workflow.chat ?? {};
    const { api } = this;
    const tell = (text) => this.status.tell(text);
    const onChange = () => this.composer.filesChanged();
    const accepts = () => !this.main.inert && lockOf(this.session.state) === null && document.querySelector('dialog[open]') === null;
    this.attach = uploads === true ? new Attach({ api, tell, onChange, accepts }) : null;
    const onText = (text) => this.composer.insert(text);
    this.dictation = dictation === true && canDictate() ? new DictationView({ api, tell, onText }) : null;
  }

  #listen() {
    this.listening = new AbortController();
    const { signal } = this.listening;
    this.addEventListener('click', (event) => this.#copy(event), { signal });
    document.addEventListener('keydown', (event) => this.#escape(event), { signal });
    this.attach?.listen(signal);
    signal.addEventListener('abort', () => this.dictation?.end());
    WIDE.addEventListener('change', () => this.#drawer(false), { signal });
    document.addEventListener('visibilitychange', () => this.#looked(), { signal });
  }

  /** Opens a thread, or starts a new conversation. */
  #begin(thread, byHand = false) {
    this.session?.end();
    const onCall = ({ id, call }) => this.runner.delivered({ thread: this.session.state.thread?.id ?? '', id, call });
    const onEffect = (detail) => this.dispatchEvent(new CustomEvent('callboard-effect', { bubbles: true, composed: true, detail }));
    this.session = new Session(this.api, (state) => this.#changed(state), onCall, onEffect);
    this.memory.set('thread', thread);
    this.titled = undefined;
    this.#render(this.session.state);
    if (thread !== null) this.session.open(thread);
    if (!byHand) return;
    this.#showThreads();
    this.#drawer(false);
    this.messages.toEnd();
    this.composer.focus();
  }

  /** Sends a text with the attached files. Returns whether it was sent. */
  #say(text) {
    const why = this.attach?.note ?? null;
    if (why !== null) {
      this.status.tell(why);
      return false;
    }
    if (!this.session.isFree) return false;
    this.messages.toEnd();
    this.session.say(text, this.attach?.take() ?? []);
    this.composer.focus();
    return true;
  }

  #changed(state) {
    if (this.frame === undefined) {
      this.frame = requestAnimationFrame(() => {
        this.frame = undefined;
        this.#render(this.session.state);
      });
    }
    const { thread } = state;
    if (thread?.id !== this.memory.get('thread')) this.memory.set('thread', thread?.id ?? null);
    if (thread !== null && thread.title !== this.titled) {
      this.titled = thread.title;
      const known = this.threads.all.some(({ id }) => id === thread.id);
      this.threads.titled(thread);
      if (known) this.#showThreads();
      else this.#refreshThreads();
    }
  }

  #render(state) {
    const begun = state.items.length > 0 || state.phase === 'loading' || state.thread !== null;
    set(this.start, 'hidden', begun);
    set(this.heading, 'class', begun ? null : 'unseen');
    set(this.messages.element, 'hidden', !begun);
    setText(this.heading, state.thread?.title || this.workflow.name);
    this.messages.show(state);
    this.status.show(state);
    this.runQuestions?.show(state);
    const lock = lockOf(state);
    const busy = ['sending', 'replying', 'stopping'].includes(state.phase);
    this.composer.show({ busy, stopping: state.phase === 'stopping', waiting: state.phase === 'loading', lock });
    set(this, 'data-phase', state.phase);
    this.#focusQuestions(state);
  }

  /** Moves the focus to the pending questions if it would go to the composer. */
  #focusQuestions(state) {
    const last = lastStored(state);
    const isAsked = last?.questions?.status === 'pending';
    const isNew = isAsked && last.key !== this.asked;
    this.asked = isAsked ? last.key : null;
    const { text } = this.composer;
    if (isNew && document.activeElement === text && text.value === '' && (this.attach?.count ?? 0) === 0) this.messages.focusQuestions(last.key);
  }

  async #refreshThreads() {
    await this.threads.refresh();
    this.#showThreads();
  }

  #showThreads() {
    const { all, more, failed } = this.threads;
    this.history.show(all, { open: this.session.state.thread?.id ?? null, more, failed });
  }

  /** Clears the tab's memory, so that the next user of this browser sees none of it. */
  #forget() {
    this.memory.clear();
  }

  #export() {
    const { thread } = this.session.state;
    if (thread === null) return;
    const request = async () => {
      download(await exported(this.api, thread));
      return 'The conversation was exported.';
    };
    this.#forData(request, { progress: 'Exporting …', failure: 'The conversation was not exported.' });
  }

  #downloadAll() {
    const request = async () => {
      const file = await exportFile(this.api, this.workflow.name);
      if (file === null) return 'The download was interrupted. Try again.';
      download(file);
      return 'Your data was downloaded.';
    };
    this.#forData(request, { progress: 'Downloading …', failure: 'Your data was not downloaded.' });
  }

  #eraseAll() {
    const request = async () => {
      const isComplete = await eraseData(this.api);
      this.memory.clear();
      this.composer.value = '';
      this.attach?.clear();
      this.#begin(null, true);
      await this.#refreshThreads();
      return isComplete ? 'Your data was erased.' : 'Your data is being erased.';
    };
    this.#forData(request, { progress: 'Erasing …', failure: 'Your data was not erased.' });
  }

  /** Runs one request for the visitor's data at a time, and shows its result. */
  async #forData(request, { progress, failure }) {
    if (this.isBusyWithData) return;
    this.isBusyWithData = true;
    this.#drawer(false);
    this.status.tell(progress);
    try {
      this.status.tell(await request());
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.status.tell(`${failure} ${plain(error)}`);
    } finally {
      this.isBusyWithData = false;
    }
  }

  async #delete(id) {
    const gone = await this.#change(() => this.threads.delete(id));
    if (gone && this.session.state.thread?.id === id) this.#begin(null, true);
  }

  /** Changes a thread, and shows a failure in the status line. */
  async #change(change) {
    try {
      await change();
      const open = this.session.state.thread;
      const thread = this.threads.all.find(({ id }) => id === open?.id);
      if (thread) this.session.renamed(thread.title);
      return true;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.status.tell(plain(error));
      return error.code === 'thread.not_found';
    } finally {
      this.#showThreads();
    }
  }

  /** Opens or closes the list of conversations, which covers the chat on narrow screens. */
  #drawer(open) {
    const narrow = !WIDE.matches;
    const was = this.classList.contains('drawer-open');
    this.classList.toggle('drawer-open', open && narrow);
    this.history.element.inert = narrow && !open;
    this.main.inert = narrow && open;
    set(this.menu, 'aria-expanded', String(open && narrow));
    if (open && narrow) this.history.element.querySelector('button').focus();
    else if (was) this.menu.focus();
  }

  #escape(event) {
    if (event.key !== 'Escape' || document.querySelector('dialog[open]')) return;
    if (this.classList.contains('drawer-open')) this.#drawer(false);
    else if (this.dictation?.isActive) this.dictation.end();
    else if (['sending', 'replying', 'parked'].includes(this.session.state.phase)) this.session.stop();
    else return;
    event.preventDefault();
  }

  /** Refreshes a tab that is visible again: other tabs and devices may have continued the conversation. */
  #looked() {
    if (document.visibilityState !== 'visible') return;
    this.session.refresh();
    this.#refreshThreads();
  }

  async #copy(event) {
    const button = event.target.closest?.('[data-copy]');
    if (!button) return;
    const text = button.dataset.copy === 'code' ? button.closest('.code').querySelector('code').textContent : button.closest('article').source;
    const copied = await navigator.clipboard?.writeText(text).then(
      () => true,
      () => false,
    );
    this.status.tell(copied ? 'Copied.' : 'The browser did not allow copying.');
    button.classList.toggle('copied', copied === true);
    setTimeout(() => button.classList.remove('copied'), COPIED);
  }
}

customElements.define('callboard-chat', CallboardChat);
