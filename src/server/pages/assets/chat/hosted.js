// The page with the hosted widget. If the widget script does not load in time, the page shows the built-in chat.

const BASE = new URL('../../', import.meta.url);
/** Timeout for loading the widget script, in ms. */
const WIDGET_TIMEOUT = 5000;

const { body } = document;
const workflow = JSON.parse(body.dataset.workflow);

/** The options of the widget. */
function options() {
  const { start_prompts: prompts = [], models = [], uploads, dictation } = workflow.chat;
  const upload = new URL('api/chat/upload', BASE);
  upload.searchParams.set('workflow_id', workflow.id);
  return {
    api: {
      url: new URL('api/chat', BASE).href,
      domainKey: body.dataset.domainKey,
      fetch: send,
      uploadStrategy: { type: 'direct', uploadUrl: upload.href },
    },
    header: { title: { enabled: true, text: workflow.name } },
    history: { enabled: true, showDelete: true, showRename: true },
    startScreen: { greeting: workflow.name, prompts },
    composer: {
      attachments: { enabled: uploads === true },
      dictation: { enabled: dictation === true },
      ...(models.length > 0 ? { models } : {}),
    },
    threadItemActions: { feedback: true, retry: true },
  };
}

/** Sends a request; adds the workflow to it. */
function send(input, init = {}) {
  if (typeof init.body !== 'string') return fetch(input, init);
  const request = JSON.parse(init.body);
  const named = { workflow_id: workflow.id, workflow_name: workflow.name };
  const text = JSON.stringify({ ...request, workflow_id: workflow.id, metadata: { ...request.metadata, ...named } });
  return fetch(input, { ...init, body: text });
}

function showWidget() {
  const widget = document.createElement('openai-chatkit');
  widget.setOptions(options());
  body.replaceChildren(widget);
}

async function showOwn() {
  const loads = body.dataset.styles.split(' ').map((style) => {
    const link = document.createElement('link');
    link.rel = 'stylesheet';
    link.href = new URL(`assets/${style}`, BASE).href;
    document.head.append(link);
    return new Promise((resolve) => {
      link.onload = resolve;
      link.onerror = resolve;
    });
  });
  try {
    await Promise.all([import('./element.js'), ...loads]);
  } catch (error) {
    document.querySelector('.page-note').textContent = 'The chat cannot be loaded. Load this page again.';
    throw error;
  }
  const chat = document.createElement('callboard-chat');
  chat.setAttribute('workflow', body.dataset.workflow);
  if (body.dataset.user) chat.setAttribute('signed-in-as', body.dataset.user);
  body.replaceChildren(chat);
}

const late = new Promise((resolve) => setTimeout(resolve, WIDGET_TIMEOUT, 'late'));
const came = await Promise.race([customElements.whenDefined('openai-chatkit'), late]);
if (came === 'late') await showOwn();
else showWidget();
