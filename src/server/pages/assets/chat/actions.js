// What the actions of widgets do: the only place that knows who handles them.

/** The event that the page around the chat receives. */
const EVENT = 'callboard-action';

/**
 * @param {HTMLElement} element the chat
 * @param {() => import('./session.js').Session} session the current one
 * @returns {import('./view/widget/context.js').Ports}
 */
export function widgetActions(element, session) {
  return {
    isAvailable: ({ handler }) => handler === 'client' || typeof session().action === 'function',
    onAction(action, { itemId, form }) {
      if (action.handler === 'client') {
        element.dispatchEvent(new CustomEvent(EVENT, { bubbles: true, composed: true, detail: { action, itemId } }));
        return undefined;
      }
      return session().action(action, { itemId, form });
    },
  };
}
