// The page of a sign-in link: its button redeems the link, which works only once.

import { set, setText } from '../dom.js';
import { ask, onward } from './ask.js';

const button = document.getElementById('use');
const problem = document.getElementById('problem');

button.addEventListener('click', async () => {
  set(button, 'disabled', true);
  const answer = await ask(location.href, {});
  if (answer.ok) {
    location.replace(answer.body.return_to ? onward(answer.body.return_to) : onward('/login'));
    return;
  }
  set(button, 'disabled', false);
  const passed = 'This link is no longer valid: it was used, has expired, or was replaced by a newer one.';
  setText(problem, answer.code === 'auth.code_invalid' ? passed : answer.text);
  set(problem, 'hidden', false);
});
