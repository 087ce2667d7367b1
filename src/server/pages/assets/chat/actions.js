// Dispatches widget actions to their handler: the service, or the page around the chat. No other module knows the handlers.

import { lockOf } from './conversation.js';
import { plain } from './words.js';

/** The event that the page around the chat receives. */
const EVENT = 'callboard-action';

/**
 * @param {HTMLElement} element the chat
 * @param {() => import('./session.js').Session} session returns the current session
 * @param {(text: string) => void} tell shows a text to the visitor
 * @returns {import('./view/widget/context.js').Ports}
 */
export function widgetActions(element, session, tell) {
  const ask = async (action, itemId) => {
    const error = await session().action(action, { itemId });
    // The conversation shows all other failures; in this case it is no longer open.
    if (error?.code === 'request.dropped') tell(plain(error));
  };
  return {
    // The service refuses actions in a thread that accepts no messages.
    isAvailable: ({ handler }) => handler === 'client' || lockOf(session().state) === null,
    onAction(action, { itemId }) {
      if (action.handler !== 'client') return ask(action, itemId);
      element.dispatchEvent(new CustomEvent(EVENT, { bubbles: true, composed: true, detail: { action, itemId } }));
      return undefined;
    },
  };
}
