// <callboard-chat workflow="{UUID}">: the chat of a workflow on a page of another site. This is a classic script, loaded
// with one tag; it loads nothing from other hosts.
//
// The chat runs in a frame served by the service, so that neither page can access the other. Session tokens and client tool calls
// pass through a message channel.

(() => {
  /** Timeout for the frame's greeting after its load event, in ms. */
  const HELLO_TIMEOUT = 10_000;
  const REFUSED = 'The chat cannot be shown here. The service has to list the origin of this page in SERVICE_CORS_ALLOW_ORIGINS.';
  const script = document.currentScript?.src;
  /** Three folders above `/api/chat/assets/element.js`: the service may be mounted below a path prefix. */
  const ownBase = script ? new URL('../../../', script).href : null;

  /** The address of the page in the frame; null if the base is not an http address. */
  function addressOf(base) {
    try {
      const address = new URL('chat/embed', new URL(base.endsWith('/') ? base : `${base}/`, document.baseURI));
      return /^https?:$/.test(address.protocol) ? address : null;
    } catch {
      return null;
    }
  }

  /** The handler's result after a round trip through JSON. A copy from `chat/tools.js`: this script is loaded alone and imports nothing. */
  async function resultOf(handler, call) {
    if (handler === null) throw new Error('The page has no handler for client tools.');
    const result = await handler(call);
    const text = JSON.stringify(result === undefined ? {} : result);
    if (text === undefined) throw new Error('The result of the handler is not JSON.');
    return JSON.parse(text);
  }

  class CallboardChat extends HTMLElement {
    static observedAttributes = ['workflow', 'base'];

    #frame = null;
    #port = null;
    #hello = null;
    #listening = null;
    #getToken = null;
    #onClientTool = null;
    #isOpen = false;

    /**
     * Returns a session token from `POST /api/chat/session`; `null`: a cookie identifies the visitor. Called before the first request,
     * 30 seconds before the token expires, and if the service rejects it.
     * @type {(() => string | Promise<string>) | null}
     */
    get getToken() {
      return this.#getToken;
    }

    set getToken(get) {
      const had = this.#getToken !== null;
      this.#getToken = typeof get === 'function' ? get : null;
      // A replaced function needs no reload: the next token comes from it.
      if (had !== (this.#getToken !== null)) this.#again();
    }

    /**
     * Answers client tool calls; its result is converted to JSON.
     * @type {((call: {name: string, params: object}) => unknown) | null}
     */
    get onClientTool() {
      return this.#onClientTool;
    }

    set onClientTool(handler) {
      this.#onClientTool = typeof handler === 'function' ? handler : null;
      this.#port?.postMessage({ set: { tools: this.#onClientTool !== null } });
    }

    connectedCallback() {
      // The page may have set the properties before this script was loaded.
      for (const name of ['getToken', 'onClientTool']) {
        if (!Object.hasOwn(this, name)) continue;
        const value = this[name];
        delete this[name];
        this[name] = value;
      }
      this.#isOpen = true;
      this.#open();
    }

    disconnectedCallback() {
      this.#isOpen = false;
      this.#close();
    }

    attributeChangedCallback(_name, before, now) {
      if (before !== now) this.#again();
    }

    #again() {
      if (!this.#isOpen) return;
      this.#close();
      this.#open();
    }

    #open() {
      const workflow = this.getAttribute('workflow');
      const base = this.getAttribute('base') ?? ownBase;
      if (!workflow || !base) return this.#fail(`The attribute ${workflow ? 'base' : 'workflow'} is missing.`);
      const address = addressOf(base);
      if (address === null) return this.#fail('The attribute base is not an http address.');
      const frame = document.createElement('iframe');
      frame.src = address.href;
      frame.title = this.getAttribute('heading') ?? 'Chat';
      frame.allow = 'microphone; clipboard-write';
      Object.assign(frame.style, { display: 'block', border: '0', inlineSize: '100%', blockSize: '100%', minBlockSize: '24rem', colorScheme: 'normal' });
      if (getComputedStyle(this).display === 'inline') this.style.display = 'block';
      this.#listening = new AbortController();
      const { signal } = this.#listening;
      addEventListener('message', (event) => this.#greeted(event, frame, address.origin, workflow), { signal });
      // A browser that refuses to show our page loads its own error page instead.
      frame.addEventListener('load', () => this.#loaded(), { once: true, signal });
      this.#frame = frame;
      this.replaceChildren(frame);
    }

    #loaded() {
      if (this.#port === null) this.#hello = setTimeout(() => this.#fail(REFUSED), HELLO_TIMEOUT);
    }

    #close() {
      clearTimeout(this.#hello);
      this.#listening?.abort();
      this.#port?.close();
      this.#frame?.remove();
      this.#frame = null;
      this.#port = null;
    }

    /** Answers the frame's greeting with its channel port, if the greeting came from the service's origin. */
    #greeted(event, frame, origin, workflow) {
      if (event.source !== frame.contentWindow || event.origin !== origin || event.data?.callboard !== 'hello') return;
      clearTimeout(this.#hello);
      this.#port?.close();
      const { port1, port2 } = new MessageChannel();
      this.#port = port1;
      port1.onmessage = ({ data }) => this.#told(data, port1);
      const tokens = this.#getToken !== null;
      const tools = this.#onClientTool !== null;
      frame.contentWindow.postMessage({ callboard: 'start', workflow, tokens, tools }, origin, [port2]);
    }

    async #told({ ask, id, call, event }, port) {
      if (event) {
        const { name, detail } = event;
        this.dispatchEvent(new CustomEvent(name, { bubbles: true, composed: true, detail }));
        return;
      }
      try {
        const value = ask === 'token' ? await this.#getToken?.() : await resultOf(this.#onClientTool, call);
        port.postMessage({ id, value });
      } catch (error) {
        // The frame receives only the message; log the whole error for the page's developers.
        console.error(error);
        port.postMessage({ id, error: `${error?.message ?? error}` });
      }
    }

    #fail(message) {
      this.#close();
      const note = document.createElement('p');
      note.setAttribute('role', 'alert');
      note.textContent = message;
      this.replaceChildren(note);
      console.error(`callboard-chat: ${message}`);
      this.dispatchEvent(new CustomEvent('callboard-error', { bubbles: true, composed: true, detail: { message } }));
    }
  }

  if (!customElements.get('callboard-chat')) customElements.define('callboard-chat', CallboardChat);
})();
