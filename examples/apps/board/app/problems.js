// What a visitor can do about a failure.

import { ServiceError } from '/__service/client.js';

const TEXTS = {
  login_required: 'You are signed out. Sign in to change the board.',
  forbidden: 'You may not change this board.',
  record_invalid: 'A card needs a title of at most 120 letters and a text of at most 4,000.',
  record_too_large: 'The text is too long.',
  collection_full: 'The board is full. Delete cards that are done.',
  storage_full: 'The board is full. Delete cards that are done.',
};

/** Whether another member has changed the record meanwhile. */
export const isConflict = (error) => error instanceof ServiceError && error.code === 'version_conflict';

/** Whether the record is gone. */
export const isGone = (error) => error instanceof ServiceError && error.code === 'not_found';

/** The text for any failure. */
export function explain(error) {
  if (!(error instanceof ServiceError)) return 'The service cannot be reached. Please try again.';
  return TEXTS[error.code] ?? 'The service does not answer at the moment. Please try again.';
}
