// The records of the board: cards that everyone sees, and the pins of the member who has signed in.

import { data } from '/__service/client.js';

const CARDS = 'cards';
const PINS = 'pins';
/** Records of a page, and pages that are read at most: a larger board needs another view. */
const PAGE = 100;
const MOST_PAGES = 10;

async function all(collection) {
  const records = [];
  let cursor;
  for (let page = 0; page < MOST_PAGES; page += 1) {
    const { items, next_cursor: next } = await data.list(collection, { limit: PAGE, order: '-created_at', cursor });
    records.push(...items);
    if (!next) break;
    cursor = next;
  }
  return records;
}

/** All cards, newest first: `{id, version, data: {title, text, lane, by}}`. */
export const cards = () => all(CARDS);

/** The card as it is stored now. */
export const card = (id) => data.get(CARDS, id);

export const create = (content) => data.create(CARDS, content);

/** Replaces a card, if it still has the version that was read. */
export const replace = (id, content, version) => data.replace(CARDS, id, content, version);

/** Moves a card to another lane, if it still has the version that was read. */
export const move = (id, lane, version) => data.merge(CARDS, id, { lane }, version);

export const remove = (id, version) => data.remove(CARDS, id, version);

/** The pins of the member, by the ids of their cards. */
export async function pins() {
  return new Map((await all(PINS)).map((pin) => [pin.data.card, pin]));
}

export const pin = (id) => data.create(PINS, { card: id });

export const unpin = (pinned) => data.remove(PINS, pinned.id, pinned.version);
