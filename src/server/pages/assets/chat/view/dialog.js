// A modal question with two answers.

import { h } from '../../dom.js';

/**
 * @param {{title: string, about: string, text: string, yes: string, no?: string}} question `about` is a name in any language
 * @returns {Promise<boolean>} whether the answer was yes
 */
export function ask({ title, about, text, yes, no = 'Cancel' }) {
  return new Promise((resolve) => {
    const dialog = h(
      'dialog',
      { class: 'dialog', 'aria-labelledby': 'callboard-question', 'aria-describedby': 'callboard-question-text' },
      h('h2', { id: 'callboard-question' }, title),
      h('p', { id: 'callboard-question-text' }, '“', h('bdi', {}, about), '” ', text),
      h(
        'div',
        { class: 'dialog-actions' },
        h('button', { type: 'button', class: 'button', onclick: () => dialog.close('') }, no),
        h('button', { type: 'button', class: 'button danger', onclick: () => dialog.close('yes') }, yes),
      ),
    );
    dialog.addEventListener('close', () => {
      dialog.remove();
      resolve(dialog.returnValue === 'yes');
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}
