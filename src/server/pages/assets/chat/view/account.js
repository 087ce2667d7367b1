// The signed-in user, and the button to sign out.

import { h } from '../../dom.js';
import { ask } from '../../sign-in/ask.js';

/**
 * @param {string} email
 * @param {{onOut: () => void, tell: (text: string) => void}} asked `onOut` is called before the page is left; `tell` shows a failure
 */
export function accountView(email, { onOut, tell }) {
  const out = h('button', { type: 'button', class: 'button small' }, 'Sign out');
  out.addEventListener('click', async () => {
    const answer = await ask('api/auth/logout', {});
    // Without a signed-in user the page redirects to the sign-in page.
    if (!answer.ok) return tell(answer.text);
    onOut();
    location.reload();
  });
  return h('p', { class: 'account' }, h('span', { class: 'quiet' }, 'Signed in as ', h('strong', { dir: 'auto' }, email)), out);
}
