// Visible texts about uploads.

import { sizeName, typeName } from './files.js';
import { MAX_FILES } from './uploads.js';
import { plain } from '../words.js';

export const TOO_MANY = `A message can have at most ${MAX_FILES} files.`;
export const NO_FOLDERS = 'Folders cannot be attached. Attach their files.';

/** Maximum file names in a sentence; above it the sentence has their number. */
const MAX_NAMES = 3;

const PROBLEMS = {
  'request.timeout': 'The upload took too long.',
  'request.too_large': 'The file is too large.',
  'http.413': 'The file is too large.',
  'attachment.type_not_allowed': 'Files of this type cannot be attached.',
  'attachment.damaged': 'The image is damaged.',
  'attachment.size_mismatch': 'The file is empty.',
  'attachment.uploads_off': 'This chat does not accept files.',
};

/**
 * The reason why an upload failed.
 * @param {{code?: string, message?: string, retryAfter?: number}} error
 * @returns {string} a sentence
 */
export function problemOf({ code = '', message = '', retryAfter = 0 }) {
  if (code === 'chat.rate_limited.uploads') return `Too many uploads. Try again ${soon(retryAfter)}.`;
  if (Object.hasOwn(PROBLEMS, code)) return PROBLEMS[code];
  // Without a service error code, the message is for developers.
  return code === '' || code === 'page.failed' ? 'The upload failed.' : plain({ code, message });
}

/** @param {number} seconds 0 if unknown */
function soon(seconds) {
  if (seconds <= 0) return 'later';
  const [count, unit] =
    seconds < 90 ? [seconds, 'second'] : seconds < 5400 ? [Math.ceil(seconds / 60), 'minute'] : [Math.ceil(seconds / 3600), 'hour'];
  return `in ${Math.ceil(count)} ${unit}${count === 1 ? '' : 's'}`;
}

/** The line below a file name. */
export function detailOf({ state, progress, file, attachment, error }) {
  switch (state) {
    case 'waiting':
      return 'Waiting';
    case 'uploading':
      return progress < 1 ? `Uploading, ${Math.floor(progress * 100)} %` : 'Processing';
    case 'failed':
      return problemOf(error);
    default:
      return `${typeName(attachment.mime_type, attachment.name)}, ${sizeName(file.size)}`;
  }
}

/**
 * The reason why the message cannot be sent yet.
 * @param {import('./uploads.js').Uploads} uploads
 * @returns {string | null}
 */
export function noteOf({ blocked, list }) {
  if (blocked === null) return null;
  if (blocked === 'failed') return 'Retry or remove the files that failed. Then the message can be sent.';
  const left = list.filter(({ state }) => state !== 'done').length;
  return `The message can be sent after ${left === 1 ? 'the upload' : `${left} uploads`}.`;
}

/**
 * The screen reader announcement for a change.
 * @param {import('./uploads.js').Upload[]} before
 * @param {import('./uploads.js').Upload[]} now
 * @returns {string} empty if there is nothing to announce
 */
export function announcement(before, now) {
  const known = new Map(before.map((upload) => [upload.key, upload]));
  const kept = new Set(now.map(({ key }) => key));
  const became = (state) => now.filter((upload) => upload.state === state && known.get(upload.key)?.state !== state);
  const active = ['waiting', 'uploading'];
  const started = now.filter((upload) => active.includes(upload.state) && !active.includes(known.get(upload.key)?.state));
  const removed = before.filter(({ key }) => !kept.has(key));
  const sentences = [
    started.length > 0 && `Uploading ${namesOf(started)}.`,
    became('done').length > 0 && `Attached ${namesOf(became('done'))}.`,
    ...became('failed').map(({ file, error }) => `${file.name} was not uploaded. ${problemOf(error)}`),
    removed.length > 0 && `Removed ${namesOf(removed)}.`,
  ];
  return sentences.filter(Boolean).join(' ');
}

function namesOf(uploads) {
  return uploads.length > MAX_NAMES ? `${uploads.length} files` : uploads.map(({ file }) => file.name).join(', ');
}
