// One question, one answer: a form that calls the workflow behind the binding `ask`.

import { ServiceError, auth, call, config } from '/__service/client.js';
import { addressOf, at, element } from '/dom.js';
import { open } from '/favourites.js';

const BINDING = 'ask';
const STATES = { queued: 'Waiting for a place …', running: 'Looking it up …' };
const MOST_LETTERS = 300;
const TOO_LONG = `The question is too long. Please ask in at most ${MOST_LETTERS} letters.`;
const PROBLEMS = {
  input_invalid: TOO_LONG,
  input_too_large: TOO_LONG,
  timed_out: 'The answer took too long. Please try again.',
  run_failed: 'The question could not be answered. Please try again.',
  storage_full: 'No more can be stored at the moment.',
  collection_full: 'No more favourites can be saved.',
  record_invalid: 'This answer is too long to be kept.',
  login_required: 'You are signed out. Sign in to change your favourites.',
};

const form = at('form');
const input = at('question');
const send = at('send');

let favourites;
/** Those that are shown. */
let kept = [];
/** The question and the answer that are shown. */
let shown = { question: '', answer: '' };
/** The question that is being answered, if any; a later one replaces it. */
let asking;

/** What a visitor can do about a failure. */
function explain(error) {
  if (!(error instanceof ServiceError)) return 'The service cannot be reached. Please try again.';
  if (error.code === 'rate_limited') {
    const wait = Math.ceil(error.retryAfter ?? 1);
    return wait > 3600
      ? 'That was the last question of the day. Please come back tomorrow.'
      : `That was quick. Please ask again in ${wait} ${wait === 1 ? 'second' : 'seconds'}.`;
  }
  return PROBLEMS[error.code] ?? 'The service does not answer at the moment. Please try again.';
}

function showProblem(text) {
  at('problem').textContent = text;
  at('problem').hidden = !text;
}

function showProgress(state) {
  at('progress').hidden = !state;
  at('state').textContent = state ? (STATES[state] ?? '') : '';
  // Not `disabled`, which would take the focus away.
  send.setAttribute('aria-disabled', String(Boolean(state)));
}

function showAnswer(question, { answer, topic }) {
  at('asked').textContent = question;
  at('result').value = answer;
  at('topic').textContent = topic ?? '';
  shown = { question, answer };
  showStar();
  at('ideas').hidden = true;
  at('card').hidden = false;
}

async function ask(question) {
  asking?.abort();
  const own = new AbortController();
  asking = own;
  showProblem('');
  at('card').hidden = true;
  at('result').value = '';
  showProgress('queued');
  try {
    const onState = (state) => {
      if (asking === own) showProgress(state);
    };
    const output = await call(BINDING, { question }, { signal: own.signal, onState });
    if (asking === own) showAnswer(question, output);
  } catch (error) {
    if (asking === own && !own.signal.aborted) showProblem(explain(error));
  } finally {
    if (asking === own) {
      asking = undefined;
      showProgress();
    }
  }
}

/** The page without a question. */
function showStart() {
  asking?.abort();
  asking = undefined;
  showProblem('');
  showProgress();
  at('card').hidden = true;
  at('ideas').hidden = false;
}

/** Opens the page with a question or without one: at the start, by a link, and by the buttons of the browser. */
function follow() {
  const question = new URLSearchParams(location.search).get('q')?.trim() ?? '';
  input.value = question;
  if (question) ask(question);
  else showStart();
}

form.addEventListener('submit', (event) => {
  event.preventDefault();
  const question = input.value.trim();
  if (!question || asking) return;
  history.pushState(null, '', addressOf(question));
  ask(question);
});

document.addEventListener('click', (event) => {
  const link = event.target.closest?.('a[href="/"], a[href^="/?"]');
  if (!link || event.metaKey || event.ctrlKey || event.shiftKey || event.button) return;
  event.preventDefault();
  history.pushState(null, '', link.href);
  follow();
  input.focus();
});

addEventListener('popstate', follow);

const star = element('button', { type: 'button', className: 'plain' });

/** The button that keeps the answer, or removes it from the favourites. */
function showStar() {
  // Before there are an answer and the favourites, there is nothing to press.
  if (!favourites || !shown.question) return;
  const isKept = kept.some(({ question }) => question === shown.question);
  star.textContent = `${isKept ? '★' : '☆'} Favourite`;
  star.ariaPressed = String(isKept);
  // Inserted once, so that it keeps the focus.
  if (!star.isConnected) at('actions').append(star);
}

star.addEventListener('click', () => {
  const known = kept.find(({ question }) => question === shown.question);
  change(() => (known ? favourites.remove(known) : favourites.add(shown.question, shown.answer)));
});

/** Changes the favourites and shows them. */
async function change(work) {
  showProblem('');
  try {
    await work();
  } catch (error) {
    // One that is gone was removed in another window.
    if (error?.status !== 404) showProblem(explain(error));
  }
  await showFavourites().catch((error) => showProblem(explain(error)));
}

async function showFavourites() {
  kept = await favourites.list();
  at('saved').hidden = kept.length === 0;
  at('saved-note').textContent = favourites.isOfAccount ? 'Kept in your account.' : 'Kept in this browser only.';
  at('favourites').replaceChildren(...kept.map(favouriteRow));
  showStar();
}

function favouriteRow(favourite) {
  const { question, answer } = favourite;
  const remove = element('button', { type: 'button', className: 'plain' }, 'Remove');
  remove.setAttribute('aria-label', `Remove: ${question}`);
  remove.addEventListener('click', async () => {
    await change(() => favourites.remove(favourite));
    (at('favourites').querySelector('button') ?? input).focus();
  });
  const link = element('a', { href: addressOf(question) }, question);
  return element('li', {}, element('p', {}, link), element('p', { className: 'quiet' }, answer), remove);
}

function showAccount(mode, session) {
  if (session.authenticated) {
    const out = element('button', { type: 'button', className: 'plain' }, 'Sign out');
    out.addEventListener('click', async () => {
      await auth.logout().catch((error) => showProblem(explain(error)));
      location.reload();
    });
    at('account').replaceChildren(session.display_name ?? 'Signed in', out);
  } else if (mode !== 'none') {
    const link = element('a', { href: '/__service/auth/login' }, 'Sign in');
    link.addEventListener('click', (event) => {
      event.preventDefault();
      auth.login(location.pathname + location.search);
    });
    at('account').replaceChildren(link);
  }
}

async function begin() {
  follow();
  try {
    const [{ auth: { mode } }, session] = await Promise.all([config(), auth.session()]);
    showAccount(mode, session);
    favourites = await open(session.authenticated);
  } catch {
    // Questions may be answered all the same.
    favourites = await open(false);
  }
  await showFavourites().catch((error) => showProblem(explain(error)));
}

begin();

// A page that the browser has kept may show what a member saw before they signed out.
addEventListener('pageshow', (event) => {
  if (event.persisted) location.reload();
});
