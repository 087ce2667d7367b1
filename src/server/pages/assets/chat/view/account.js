// Who is signed in, and the way out.

import { h } from '../../dom.js';
import { ask } from '../../sign-in/ask.js';

/**
 * @param {string} email
 * @param {{onOut: () => void, tell: (text: string) => void}} asked `onOut` before the page goes; `tell` says what failed
 */
export function accountView(email, { onOut, tell }) {
  const out = h('button', { type: 'button', class: 'button small' }, 'Sign out');
  out.addEventListener('click', async () => {
    const answer = await ask('api/auth/logout', {});
    // Where nobody is signed in, the page leads to the sign-in.
    if (!answer.ok) return tell(answer.text);
    onOut();
    location.reload();
  });
  return h('p', { class: 'account' }, h('span', { class: 'quiet' }, 'Signed in as ', h('strong', { dir: 'auto' }, email)), out);
}
