// A board of three lanes. Everyone reads the cards; members who have signed in change them, and pin some for themselves.

import { auth, config } from '/__service/client.js';
import * as store from '/cards.js';
import { at, button, element } from '/dom.js';
import { draggable, target } from '/drag.js';
import { edit } from '/editor.js';
import { explain, isConflict, isGone } from '/problems.js';

const LANES = ['ideas', 'doing', 'done'];
const NAMES = { ideas: 'Ideas', doing: 'Doing', done: 'Done' };
/** Milliseconds between two looks at what others have changed. */
const EVERY = 10_000;

let may = new Set();
let member = null;
let pins = new Map();
let shown = '';
let silence;

const can = (verb) => may.has(verb);

function say(news) {
  at('news').textContent = news;
  clearTimeout(silence);
  silence = setTimeout(() => at('news').replaceChildren(), 6_000);
}

function showProblem(text) {
  at('problem').textContent = text;
  at('problem').hidden = !text;
}

/** Reads everything and shows it; an unchanged board stays as it is, with its focus. */
async function refresh(news) {
  if (news !== undefined) say(news);
  try {
    const [cards, pinned] = await Promise.all([store.cards(), member ? store.pins() : new Map()]);
    showProblem('');
    const seen = JSON.stringify([cards, [...pinned.keys()]]);
    at('board').removeAttribute('aria-busy');
    if (seen === shown) return;
    shown = seen;
    pins = pinned;
    draw(cards);
  } catch (error) {
    at('board').removeAttribute('aria-busy');
    showProblem(explain(error));
  }
}

function draw(cards) {
  const focused = document.activeElement?.dataset?.key;
  for (const lane of LANES) {
    const section = document.querySelector(`[data-lane="${lane}"]`);
    const own = cards.filter((card) => card.data.lane === lane);
    own.sort((one, other) => Number(pins.has(other.id)) - Number(pins.has(one.id)));
    section.querySelector('.count').textContent = String(own.length);
    const rows = own.map(cardOf);
    section.querySelector('ul').replaceChildren(
      ...(rows.length ? rows : [element('li', { className: 'empty' }, 'No cards yet.')]),
    );
  }
  // A redrawn button gets the focus that the one before it had.
  if (focused) document.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
}

function keyed(key, made) {
  made.dataset.key = key;
  return made;
}

function cardOf(card) {
  const { title, text, lane, by } = card.data;
  const row = element('li', { className: 'card' }, element('h3', {}, title));
  if (text) row.append(element('p', { className: 'text' }, text));
  if (member) row.append(pinOf(card));
  const foot = element('div', { className: 'row' });
  if (by) foot.append(element('p', { className: 'by' }, initial(by), by));
  if (can('update')) {
    draggable(row, (to) => to !== lane && move(card, to, row));
    const actions = element('p', { className: 'row actions' });
    const place = LANES.indexOf(lane);
    const label = (what) => ({ ariaLabel: `${what}: ${title}` });
    actions.append(Object.assign(keyed(`edit-${card.id}`, button('small', 'Edit', () => open(card))), label('Edit')));
    for (const [to, arrow] of [[LANES[place - 1], '←'], [LANES[place + 1], '→']]) {
      if (!to) continue;
      const pressed = () => move(card, to, row);
      const made = keyed(`${arrow}${card.id}`, button('small', arrow, pressed));
      actions.append(Object.assign(made, label(`Move to ${NAMES[to]}`), { title: `Move to ${NAMES[to]}` }));
    }
    foot.append(actions);
  }
  if (foot.hasChildNodes()) row.append(foot);
  return row;
}

/** A disc with the first letter of a name, always in the same colour. */
function initial(name) {
  const disc = element('span', { className: 'disc', ariaHidden: 'true' }, [...name.trim()][0]?.toUpperCase() ?? '');
  const sum = [...name].reduce((all, letter) => all + letter.codePointAt(0), 0);
  disc.style.setProperty('--hue', String((sum * 47) % 360));
  return disc;
}

function pinOf(card) {
  const pinned = pins.get(card.id);
  const toggle = async () => {
    try {
      await (pinned ? store.unpin(pinned) : store.pin(card.id));
    } catch (error) {
      if (!isGone(error)) return showProblem(explain(error));
    }
    await refresh(pinned ? 'Unpinned.' : 'Pinned for you.');
  };
  const made = keyed(`pin-${card.id}`, button('pin', pinned ? '★' : '☆', toggle));
  made.setAttribute('aria-pressed', String(Boolean(pinned)));
  made.ariaLabel = `Pin: ${card.data.title}`;
  return made;
}

async function move(card, lane, row) {
  row.classList.add('changing');
  try {
    await store.move(card.id, lane, card.version);
    await refresh(`Moved to ${NAMES[lane]}.`);
  } catch (error) {
    row.classList.remove('changing');
    if (!isConflict(error) && !isGone(error)) return showProblem(explain(error));
    shown = '';
    await refresh(
      isGone(error)
        ? 'This card was deleted meanwhile.'
        : 'This card was changed meanwhile. It was not moved; you see its newest version.',
    );
  }
}

const open = (card, lane) => edit(card, lane, member, refresh);

function showAccount(mode) {
  if (member !== null) {
    const out = button('button', 'Sign out', async () => {
      await auth.logout().catch((error) => showProblem(explain(error)));
      location.reload();
    });
    at('account').replaceChildren(initial(member), member, out);
    return;
  }
  if (mode === 'none') return;
  const link = () => {
    const made = element('a', { href: '/__service/auth/login' }, 'Sign in');
    made.addEventListener('click', (event) => {
      event.preventDefault();
      auth.login('/');
    });
    return made;
  };
  at('account').replaceChildren(link());
  at('invite').replaceChildren('Everyone can read this board. ', link(), ' to add, move and pin cards.');
  at('invite').hidden = false;
}

/** What members can do besides: add cards, and drop them into a lane. */
function showAdding() {
  if (!can('create')) return;
  for (const lane of LANES) {
    target(document.querySelector(`[data-lane="${lane}"]`), lane);
    const add = button('small', '+ Add', () => open(null, lane));
    add.ariaLabel = `Add a card to ${NAMES[lane]}`;
    document.querySelector(`[data-lane="${lane}"] header`).append(add);
  }
}

async function begin() {
  try {
    const [{ auth: { mode }, collections }, session] = await Promise.all([config(), auth.session()]);
    may = new Set(collections.cards.capabilities);
    member = session.authenticated ? (session.display_name ?? 'A member') : null;
    showAccount(mode);
    showAdding();
  } catch (error) {
    at('board').removeAttribute('aria-busy');
    at('problem').replaceChildren(explain(error), ' ', button('small', 'Try again', () => location.reload()));
    at('problem').hidden = false;
    return;
  }
  await refresh();
  const look = () => document.visibilityState === 'visible' && refresh();
  setInterval(look, EVERY);
  document.addEventListener('visibilitychange', look);
}

begin();

// A page that the browser has kept may show what a member saw before they signed out.
addEventListener('pageshow', (event) => {
  if (event.persisted) location.reload();
});
