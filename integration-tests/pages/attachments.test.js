import assert from 'node:assert/strict';
import { test } from 'node:test';
import { attachmentsOf, droppedFiles, pastedFiles, sizeName, typeName } from '../../src/server/pages/assets/chat/attachments/files.js';
import { canRetry, MAX_FILES, Uploads } from '../../src/server/pages/assets/chat/attachments/uploads.js';
import { announcement, detailOf, noteOf, problemOf } from '../../src/server/pages/assets/chat/attachments/words.js';

const file = (name, size = 1000) => ({ name, size });
const attachment = (id, name = `${id}.txt`) => ({ id, name, mime_type: 'text/plain', type: 'file', preview_url: null });
const settled = () => new Promise((resolve) => setImmediate(resolve));

/** Uploads whose requests the test completes. */
function uploading() {
  const sent = [];
  const discarded = [];
  const send = (of, { onProgress, signal }) =>
    new Promise((resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason));
      sent.push({ name: of.name, onProgress, signal, resolve, reject });
    });
  const uploads = new Uploads({ send, discard: (id) => discarded.push(id), onChange: () => {} });
  const states = () => uploads.list.map(({ file: of, state }) => `${of.name} ${state}`);
  const finish = async (at, id) => {
    sent[at].resolve(attachment(id));
    await settled();
  };
  const fail = async (at, error) => {
    sent[at].reject(error);
    await settled();
  };
  return { uploads, sent, discarded, states, finish, fail };
}

test('at most two files are uploaded at the same time', async () => {
  const { uploads, sent, states, finish } = uploading();
  assert.equal(uploads.add(['a', 'b', 'c', 'd'].map((name) => file(name))), 0);
  assert.deepEqual(states(), ['a uploading', 'b uploading', 'c waiting', 'd waiting']);
  await finish(1, 'atc_b');
  assert.deepEqual(states(), ['a uploading', 'b done', 'c uploading', 'd waiting']);
  sent[0].onProgress(0.5);
  assert.equal(uploads.list[0].progress, 0.5);
  assert.equal(uploads.blocked, 'uploading');
  assert.deepEqual(uploads.take(), [], 'a message takes all of them or none');
  await finish(0, 'atc_a');
  await finish(2, 'atc_c');
  await finish(3, 'atc_d');
  assert.equal(uploads.blocked, null);
  assert.deepEqual(uploads.take().map(({ id }) => id), ['atc_a', 'atc_b', 'atc_c', 'atc_d'], 'in the order in which they were added');
  assert.deepEqual(uploads.list, []);
});

test('a failed upload blocks the message until it is retried or removed', async () => {
  const { uploads, sent, states, finish, fail } = uploading();
  uploads.add([file('a'), file('b')]);
  await fail(0, { code: 'attachment.too_large', status: 413, message: 'Too large.' });
  await fail(1, { code: 'network', status: 0 });
  assert.deepEqual(states(), ['a failed', 'b failed']);
  assert.equal(uploads.blocked, 'failed');
  assert.deepEqual(uploads.list.map(({ error }) => canRetry(error)), [false, true]);
  uploads.remove(uploads.list[0].key);
  uploads.retry(uploads.list[0].key);
  assert.deepEqual(states(), ['b uploading']);
  assert.equal(uploads.list[0].error, null);
  uploads.retry(uploads.list[0].key);
  assert.equal(sent.length, 3, 'only what failed is retried');
  await finish(2, 'atc_b');
  assert.equal(uploads.blocked, null);
});

test('removing a file cancels its upload or deletes the attachment', async () => {
  const { uploads, sent, discarded, states, finish } = uploading();
  uploads.add([file('a'), file('b'), file('c')]);
  await finish(0, 'atc_a');
  uploads.remove(uploads.list[0].key);
  assert.deepEqual(discarded, ['atc_a']);
  uploads.remove(uploads.list[0].key);
  assert.equal(sent[1].signal.aborted, true);
  assert.deepEqual(states(), ['c uploading']);
  uploads.remove('unknown');
  await settled();
  assert.deepEqual(states(), ['c uploading'], 'a cancelled upload is not shown as failed');
});

test('an attachment is deleted if its upload completes after its removal', async () => {
  const discarded = [];
  let resolve;
  const send = () => new Promise((done) => (resolve = done));
  const uploads = new Uploads({ send, discard: (id) => discarded.push(id), onChange: () => {} });
  uploads.add([file('a')]);
  uploads.remove(uploads.list[0].key);
  resolve(attachment('atc_a'));
  await settled();
  assert.deepEqual([uploads.list, discarded], [[], ['atc_a']]);
});

test('a message has at most ten files', async () => {
  const { uploads } = uploading();
  assert.equal(uploads.add(Array.from({ length: MAX_FILES + 2 }, (_, at) => file(String(at)))), 2);
  assert.equal(uploads.add([file('x')]), 1);
  assert.equal(uploads.list.length, MAX_FILES);
  uploads.remove(uploads.list[0].key);
  assert.equal(uploads.add([file('x')]), 0);
});

test('a response without an attachment fails the upload', async () => {
  const { uploads, sent } = uploading();
  uploads.add([file('a')]);
  sent[0].resolve(null);
  await settled();
  assert.equal(uploads.list[0].state, 'failed');
  assert.equal(problemOf(uploads.list[0].error), 'The upload failed.');
});

test('invalid attachments of items are skipped', () => {
  const image = { id: 'atc_1', name: 'a.png', mime_type: 'image/png', type: 'image', preview_url: 'https://e.org/p', metadata: {} };
  assert.deepEqual(attachmentsOf([image, null, 'atc_2', {}, { id: 'atc_3', type: 'other' }]), [
    { id: 'atc_1', name: 'a.png', mime_type: 'image/png', type: 'image', preview_url: 'https://e.org/p' },
    { id: 'atc_3', name: 'file', mime_type: '', type: 'file', preview_url: null },
  ]);
  for (const list of [undefined, null, 'x', {}]) assert.deepEqual(attachmentsOf(list), []);
});

test('types and sizes are formatted for display', () => {
  assert.equal(typeName('application/pdf', 'a'), 'PDF');
  assert.equal(typeName('text/plain; charset=utf-8', 'a.log'), 'Text');
  assert.equal(typeName('image/webp', 'a'), 'Image');
  assert.equal(typeName('application/octet-stream', 'a.tar.gz'), 'GZ');
  assert.equal(typeName('', 'README'), 'File');
  assert.equal(typeName('constructor', 'x'), 'File');
  assert.deepEqual([0, 999, 1000, 1234, 99_500, 999_499, 999_500, 5_242_880, 3e9].map(sizeName), [
    '0 B', '999 B', '1 KB', '1.2 KB', '100 KB', '999 KB', '1 MB', '5.2 MB', '3 GB',
  ]);
});

test('pasted text is not attached as a picture', () => {
  const files = [file('image.png')];
  assert.deepEqual(pastedFiles({ types: ['Files'], files }), files);
  assert.deepEqual(pastedFiles({ types: ['text/html', 'Files'], files }), files, 'an image of a web page');
  assert.deepEqual(pastedFiles({ types: ['text/plain', 'Files'], files }), files, 'a file of a file manager');
  assert.deepEqual(pastedFiles({ types: ['text/plain', 'text/html', 'Files'], files }), [], 'cells of a spreadsheet');
  assert.deepEqual(pastedFiles({ types: ['text/plain'], files: [] }), []);
});

test('dropped folders are skipped and counted', () => {
  const item = (name, isDirectory) => ({ kind: 'file', webkitGetAsEntry: () => ({ isDirectory }), getAsFile: () => file(name) });
  const files = [file('a'), file('folder')];
  const dropped = droppedFiles({ items: [item('a', false), item('folder', true), { kind: 'string' }], files });
  assert.deepEqual([dropped.files.map(({ name }) => name), dropped.folders], [['a'], 1]);
  assert.deepEqual(droppedFiles({ items: undefined, files }), { files, folders: 0 });
});

test('a failed upload shows its reason', () => {
  assert.equal(problemOf({ code: 'attachment.too_large', message: 'The limit is 5 MiB.' }), 'The limit is 5 MiB.');
  assert.equal(problemOf({ code: 'http.413', message: '' }), 'The file is too large.');
  assert.equal(problemOf({ code: 'network', message: 'network' }), 'The service cannot be reached.');
  assert.equal(problemOf(new TypeError('x is undefined')), 'The upload failed.');
  const limited = (retryAfter) => problemOf({ code: 'chat.rate_limited.uploads', message: 'x', retryAfter });
  assert.equal(limited(0), 'Too many uploads. Try again later.');
  assert.equal(limited(1), 'Too many uploads. Try again in 1 second.');
  assert.equal(limited(120), 'Too many uploads. Try again in 2 minutes.');
  assert.equal(limited(40_000), 'Too many uploads. Try again in 12 hours.');
});

test('each upload state is shown and announced', async () => {
  const { uploads, sent, finish, fail } = uploading();
  const said = [];
  let before = uploads.list;
  const hear = () => {
    said.push(announcement(before, uploads.list));
    before = uploads.list;
  };
  uploads.add([file('a.txt', 1200), file('b.txt'), file('c.txt')]);
  hear();
  sent[0].onProgress(0.429);
  hear();
  assert.deepEqual(uploads.list.map(detailOf), ['Uploading, 42 %', 'Uploading, 0 %', 'Waiting']);
  assert.equal(noteOf(uploads), 'The message can be sent after 3 uploads.');
  await finish(0, 'atc_a');
  hear();
  await fail(1, { code: 'attachment.damaged', status: 422 });
  hear();
  uploads.remove(uploads.list[2].key);
  hear();
  assert.deepEqual(uploads.list.map(detailOf), ['Text, 1.2 KB', 'The image is damaged.']);
  assert.match(noteOf(uploads), /^Retry or remove/);
  assert.deepEqual(said, [
    'Uploading a.txt, b.txt, c.txt.',
    '',
    'Attached a.txt.',
    'b.txt was not uploaded. The image is damaged.',
    'Removed c.txt.',
  ]);
  assert.equal(announcement([], Array.from({ length: 4 }, (_, at) => ({ key: String(at), state: 'waiting', file: file('x') }))), 'Uploading 4 files.');
});
