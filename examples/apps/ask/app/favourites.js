// Favourites: in the collection of the app for a member who has signed in, else in this browser.

import { data } from '/__service/client.js';

const COLLECTION = 'favourites';
const STORAGE = 'favourites';
/** As many as are shown. */
const MOST = 50;

/** Those of this browser. Storage may be switched off, or hold what another version wrote. */
function stored() {
  try {
    const list = JSON.parse(localStorage.getItem(STORAGE) ?? '[]');
    return Array.isArray(list) ? list.filter((one) => one?.question && one?.answer).slice(0, MOST) : [];
  } catch {
    return [];
  }
}

function store(list) {
  localStorage.setItem(STORAGE, JSON.stringify(list.slice(0, MOST)));
}

class OfBrowser {
  /** Whether they belong to an account. */
  isOfAccount = false;

  async list() {
    return stored();
  }

  async add(question, answer) {
    store([{ question, answer }, ...stored().filter((one) => one.question !== question)]);
  }

  async remove(favourite) {
    store(stored().filter((one) => one.question !== favourite.question));
  }
}

class OfAccount {
  isOfAccount = true;

  async list() {
    const page = await data.list(COLLECTION, { limit: MOST, order: '-created_at' });
    return page.items.map(({ id, version, data: { question, answer } }) => ({ id, version, question, answer }));
  }

  async add(question, answer) {
    await data.create(COLLECTION, { question, answer });
  }

  async remove(favourite) {
    await data.remove(COLLECTION, favourite.id, favourite.version);
  }

  /** Takes over what this browser has kept before the sign-in. Each one leaves the browser after it was stored. */
  async takeOver() {
    const left = stored().reverse();
    const known = new Set(left.length ? (await this.list()).map(({ question }) => question) : []);
    for (const { question, answer } of left) {
      if (!known.has(question)) await this.add(question, answer);
      store(stored().filter((one) => one.question !== question));
    }
  }
}

/** Where favourites are kept; `isMember` says whether the visitor has signed in. */
export async function open(isMember) {
  if (!isMember) return new OfBrowser();
  const kept = new OfAccount();
  await kept.takeOver();
  return kept;
}
