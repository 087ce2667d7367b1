// The start screen of an empty conversation.

import { h } from '../../dom.js';

/**
 * @param {{name: string, description: string | null, chat: {start_prompts: object[]}}} workflow
 * @param {(text: string) => void} onPrompt
 */
export function startView(workflow, onPrompt) {
  const prompts = (workflow.chat?.start_prompts ?? []).map(({ label, prompt }) => {
    const text = typeof prompt === 'string' ? prompt : (prompt ?? []).map((part) => part.text ?? '').join('');
    return h('li', {}, h('button', { type: 'button', class: 'prompt', dir: 'auto', onclick: () => onPrompt(text) }, label ?? text));
  });
  return h(
    'div',
    { class: 'start' },
    h('p', { class: 'start-name', dir: 'auto' }, workflow.name),
    workflow.description ? h('p', { class: 'start-text', dir: 'auto' }, workflow.description) : null,
    prompts.length ? h('ul', { class: 'prompts', 'aria-label': 'Things to ask' }, ...prompts) : null,
  );
}
