// The dialog in which a card is written. If another member has saved the card meanwhile, both versions are shown.

import { card, create, remove, replace } from '/cards.js';
import { at, element } from '/dom.js';
import { explain, isConflict, isGone } from '/problems.js';

const dialog = at('editor');
const LANES = { ideas: 'Ideas', doing: 'Doing', done: 'Done' };

/** The card that is open, as it was read; `null` for a new one. */
let opened = null;
/** The card as another member has saved it. */
let theirs = null;
let name = '';
let changed = () => {};

const content = () => ({
  title: at('title').value.trim(),
  text: at('text').value.trim(),
  lane: at('lane').value,
  by: name,
});

function fill({ title, text, lane }) {
  at('title').value = title;
  at('text').value = text;
  at('lane').value = lane;
}

function showProblem(text) {
  at('editor-problem').textContent = text;
  at('editor-problem').hidden = !text;
}

function showConflict(record) {
  theirs = record;
  at('conflict').hidden = !record;
  if (!record) return;
  const { title, text, lane } = record.data;
  at('conflict-title').textContent = 'This card was changed while you were writing';
  const rows = [['Title', title], ['Text', text || '(none)'], ['Lane', LANES[lane]]];
  at('theirs').replaceChildren(
    ...rows.flatMap(([label, value]) => [element('dt', {}, label), element('dd', {}, value)]),
  );
  at('conflict-title').focus();
}

/** Opens the dialog for a card, or for a new one in a lane. `done` is called after each change. */
export function edit(record, lane, member, done) {
  opened = record;
  name = member;
  changed = done;
  showProblem('');
  showConflict(null);
  at('editor-title').textContent = record ? 'Edit card' : 'New card';
  at('delete').hidden = !record;
  fill(record?.data ?? { title: '', text: '', lane });
  dialog.showModal();
  at('title').focus();
}

/** Does something with the card; the dialog closes if it succeeds. */
async function attempt(change, news) {
  showProblem('');
  at('save').disabled = true;
  try {
    await change();
    dialog.close();
    changed(news);
  } catch (error) {
    if (isConflict(error)) {
      await readTheirs();
    } else if (isGone(error)) {
      showProblem('This card was deleted meanwhile. “Save” creates it again.');
      opened = null;
      at('delete').hidden = true;
      changed('');
    } else {
      showProblem(explain(error));
    }
  } finally {
    at('save').disabled = false;
  }
}

async function readTheirs() {
  try {
    showConflict(await card(opened.id));
    changed('');
  } catch (error) {
    showProblem(explain(error));
  }
}

at('form').addEventListener('submit', (event) => {
  event.preventDefault();
  const written = content();
  if (!written.title) {
    showProblem('A card needs a title.');
    at('title').focus();
    return;
  }
  const save = () => (opened ? replace(opened.id, written, opened.version) : create(written));
  attempt(save, opened ? 'Saved.' : 'Added.');
});

at('delete').addEventListener('click', () => attempt(() => remove(opened.id, opened.version), 'Deleted.'));
at('cancel').addEventListener('click', () => dialog.close());

at('take-theirs').addEventListener('click', () => {
  opened = theirs;
  fill(theirs.data);
  showConflict(null);
  at('title').focus();
});

at('keep-mine').addEventListener('click', () => {
  // Replaces exactly the version that was shown: a third change is a conflict again.
  opened = theirs;
  showConflict(null);
  at('form').requestSubmit();
});
