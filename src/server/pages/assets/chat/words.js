// What went wrong, in plain words.

const WORDS = {
  network: 'The service cannot be reached.',
  'chat.not_published': 'This chat was closed by its owner.',
  'workflow.not_found': 'This chat was removed.',
  'chat.login_required': 'You are not signed in. Reload the page to sign in.',
  'chat.session_invalid': 'You are no longer signed in.',
  'workflow.no_version': 'This chat is not ready yet: its workflow has no version.',
  'thread.not_found': 'This conversation no longer exists.',
  'request.too_large': 'The message is too long. Shorten it and send it again.',
  'stream.error': 'Something went wrong while answering.',
};

/**
 * @param {{code: string, message?: string}} failure
 * @returns {string} a sentence or two
 */
export function plain({ code, message }) {
  return WORDS[code] ?? (message || 'Something went wrong. Try again in a moment.');
}
