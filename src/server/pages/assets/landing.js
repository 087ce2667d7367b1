// Fills the landing page with the content that this visitor may see.

import { h, set, setText } from './dom.js';

const BASE = new URL('../', import.meta.url);

async function read(path) {
  const response = await fetch(new URL(path, BASE), { headers: { Accept: 'application/json' }, cache: 'no-store' });
  return { status: response.status, body: await response.json().catch(() => null) };
}

async function showHealth(element) {
  const { status, body } = await read('readyz').catch(() => ({ status: 0, body: null }));
  const reasons = Object.values(body?.parts ?? {}).filter(({ ready }) => !ready).map(({ reason }) => reason);
  set(element, 'data-state', status === 200 ? 'good' : 'bad');
  setText(element, status === 200 ? 'Ready' : reasons.length ? `Not ready: ${reasons.join('; ')}` : 'It does not answer');
}

async function showWorkflows(element) {
  const { status, body } = await read('api/workflows').catch(() => ({ status: 0, body: null }));
  if (status === 401 || status === 403) return replace(element, 'Sign in to see the workflows that you may read.');
  if (!Array.isArray(body)) return replace(element, 'The list cannot be read right now. Load the page again in a moment.');
  if (body.length === 0) return replace(element, 'No workflow yet. The commands below make the first one; callboard demo brings examples.');
  return element.replaceChildren(h('ul', { class: 'workflows' }, ...body.map(card)));
}

function replace(element, text) {
  element.replaceChildren(h('p', { class: 'quiet' }, text));
}

function card(workflow) {
  const { name, handle, description, is_public: isPublic, require_login: asksLogin, latest_version: version } = workflow;
  const published = isPublic ? (asksLogin ? 'Published, with login' : 'Published') : 'Not published';
  const diagram = `api/workflows/${encodeURIComponent(workflow.id)}/versions/${version}/diagram.svg`;
  const trainings = new URL(`workflows/${encodeURIComponent(workflow.id)}/training`, BASE).href;
  const facts = [
    h('span', {}, published),
    h('code', {}, handle),
    version === null
      ? h('span', {}, 'No version yet')
      : h('a', { href: new URL(diagram, BASE).href, 'aria-label': `Version ${version}, drawn: ${name}` }, `Version ${version}, drawn`),
    version === null ? null : h('a', { href: trainings, 'aria-label': `Trainings: ${name}` }, 'Trainings'),
  ];
  const chat = h('a', { class: 'button primary', href: new URL(`chat/${workflow.id}`, BASE).href, 'aria-label': `Open the chat ${name}` }, 'Open the chat');
  return h(
    'li',
    { class: 'workflow' },
    h('h3', { dir: 'auto' }, name),
    description ? h('p', { dir: 'auto' }, description) : null,
    h('div', { class: 'facts' }, ...facts),
    h('div', { class: 'go' }, isPublic ? chat : h('code', {}, `callboard workflow publish ${handle}`)),
  );
}

// The default service addresses of the CLI.
const DEFAULT = ['http://localhost:8000', 'http://127.0.0.1:8000'];
const service = BASE.href.replace(/\/$/, '');
if (!DEFAULT.includes(service)) document.getElementById('first').prepend(`export SERVICE_API_URL=${service}\n`);

showHealth(document.getElementById('health'));
showWorkflows(document.getElementById('workflows'));
