// Shows prompt texts.

import { h } from '../../dom.js';
import { value } from './value.js';

/** The prompts that a training may change; all prompts of the config if it may change none. */
export function promptsOf(prompts) {
  const all = Object.entries(prompts);
  const trained = all.filter(([, prompt]) => prompt?.requires_grad === true);
  return texts((trained.length > 0 ? trained : all).map(([name, prompt]) => [name, prompt?.text ?? '']));
}

/** @param {[string, string][]} named names and texts */
export function texts(named) {
  if (named.length === 0) return null;
  const title = named.length === 1 ? 'Prompt' : 'Prompts';
  return h('details', { class: 'prompts' }, h('summary', {}, title), h('div', { class: 'entry-body' }, ...named.map(([name, text]) => value(name, text))));
}
