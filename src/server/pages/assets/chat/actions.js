// What the actions of widgets do: the only place that knows who handles them.

import { lockOf } from './conversation.js';
import { plain } from './words.js';

/** The event that the page around the chat receives. */
const EVENT = 'callboard-action';

/**
 * @param {HTMLElement} element the chat
 * @param {() => import('./session.js').Session} session the current one
 * @param {(text: string) => void} tell says something to the visitor
 * @returns {import('./view/widget/context.js').Ports}
 */
export function widgetActions(element, session, tell) {
  const ask = async (action, itemId) => {
    const error = await session().action(action, { itemId });
    // Other failures are part of the conversation, which is not shown any more in this case.
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
