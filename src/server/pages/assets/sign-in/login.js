// The sign-in page: asks for an email address, then for the code.

import { set, setText } from '../dom.js';
import { ask, onward } from './ask.js';

const page = document.getElementById('sign-in');
const problem = document.getElementById('problem');
const element = (id) => document.getElementById(id);

function say(text, field) {
  setText(problem, text);
  set(problem, 'hidden', text === '');
  for (const input of page.querySelectorAll('input')) set(input, 'aria-invalid', input === field && text !== '' ? 'true' : null);
  if (field && text !== '') {
    field.focus();
    field.select();
  }
}

/** Runs one task at a time: ignores a second press while the first is in progress. */
async function once(form, work) {
  if (form.dataset.busy) return;
  form.dataset.busy = 'yes';
  const buttons = [...form.querySelectorAll('button')];
  for (const button of buttons) set(button, 'aria-disabled', 'true');
  try {
    await work();
  } finally {
    delete form.dataset.busy;
    for (const button of buttons) set(button, 'aria-disabled', null);
  }
}

function begin() {
  const [addressForm, codeForm] = [element('address-form'), element('code-form')];
  const [address, code] = [element('address'), element('code')];
  let challenge;

  /** Shows one of the two forms; the provider button is shown only with the address form. */
  function show(form) {
    set(addressForm, 'hidden', form !== addressForm);
    set(codeForm, 'hidden', form !== codeForm);
    if (element('provider')) set(element('provider'), 'hidden', form !== addressForm);
  }

  async function start(field) {
    const returnTo = page.dataset.returnTo;
    const email = address.value.trim();
    if (email === '') return say('Enter your email address.', address);
    const answer = await ask('api/auth/email/start', { email, ...(returnTo ? { return_to: returnTo } : {}) });
    if (!answer.ok) return say(answer.text, field);
    ({ challenge } = answer.body);
    say('');
    setText(element('sent-to'), email);
    show(codeForm);
    setText(element('told'), `A code was sent to ${email}.`);
    code.value = '';
    code.focus();
  }

  addressForm.addEventListener('submit', (event) => {
    event.preventDefault();
    once(addressForm, () => start(address));
  });
  codeForm.addEventListener('submit', (event) => {
    event.preventDefault();
    once(codeForm, async () => {
      if (code.value.trim() === '') return say('Enter the six digits from the email.', code);
      const answer = await ask('api/auth/email/verify', { challenge, email: address.value.trim(), code: code.value });
      if (!answer.ok) return say(answer.text, code);
      say('');
      setText(element('told'), 'You are signed in.');
      leave();
    });
  });
  element('again').addEventListener('click', () =>
    once(codeForm, async () => {
      await start(code);
      if (problem.hidden) setText(element('told'), `Another code was sent to ${address.value.trim()}. The previous code is no longer valid.`);
    }),
  );
  element('other').addEventListener('click', () => {
    say('');
    show(addressForm);
    address.focus();
    address.select();
  });
}

/** Leaves the page; uses `replace`, so that the back button does not return here. */
function leave() {
  if (page.dataset.returnTo) location.replace(onward(page.dataset.returnTo));
  else location.reload();
}

if (element('address-form')) begin();
element('sign-out')?.addEventListener('click', async () => {
  const answer = await ask('api/auth/logout', {});
  if (answer.ok) location.reload();
  else say(answer.text);
});
element('terminal')?.addEventListener('click', async () => {
  const answer = await ask('api/auth/terminal', {});
  if (!answer.ok) return say(answer.text);
  say('');
  const field = element('for-terminal');
  field.value = answer.body.code;
  set(element('terminal-code'), 'hidden', false);
  field.focus();
  field.select();
});
