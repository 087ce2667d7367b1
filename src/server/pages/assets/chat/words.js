// Visible texts for errors.

const WORDS = {
  network: 'The service cannot be reached.',
  'chat.not_published': 'This chat was closed by its owner.',
  'workflow.not_found': 'This chat was removed.',
  'chat.login_required': 'You are not signed in. Reload the page to sign in.',
  'chat.session_invalid': 'You are no longer signed in.',
  'chat.visitor_unknown': 'This browser sends no cookies to the chat, so the chat does not know who you are.',
  'chat.token_missing': 'This page did not provide a session token. Reload the page.',
  'workflow.no_version': 'This chat is not ready yet: its workflow has no version.',
  'thread.not_found': 'This conversation no longer exists.',
  'item.not_found': 'This part of the conversation no longer exists.',
  'item.not_pending': 'This was already answered.',
  'request.dropped': 'It was not sent, because another conversation was opened.',
  'chat.action_unhandled': 'This action is not available in this chat.',
  'chat.action_failed': 'The action failed. Try again.',
  'chat.action_timeout': 'The action took too long. Try again.',
  'request.too_large': 'The message is too long. Shorten it and send it again.',
  'attachment.not_found': 'An attached file is no longer available. Attach it again.',
  'chat.transcription_off': 'Dictation is not available in this chat.',
  'chat.transcription_failed': 'The recording could not be transcribed. Try again.',
  'stream.error': 'Something went wrong while answering.',
};

/**
 * @param {{code: string, message?: string}} failure
 * @returns {string} a sentence or two
 */
export function plain({ code, message }) {
  return WORDS[code] ?? (message || 'Something went wrong. Try again in a moment.');
}
