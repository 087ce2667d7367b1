// Action configurations of widget components.

/**
 * @typedef {object} Action
 * @property {string} type
 * @property {unknown} payload null without a payload
 * @property {'server' | 'client'} handler
 * @property {'auto' | 'none' | 'self' | 'container'} loadingBehavior
 * @property {boolean} streaming
 */

/** Maximum length of a type: the limit of the service. */
const MAX_TYPE = 200;

/**
 * Reads the configuration of an action.
 * @param {unknown} config such as a button's `onClickAction`
 * @returns {Action | null} null if it is not an action
 */
export function actionOf(config) {
  if (config === null || typeof config !== 'object' || typeof config.type !== 'string') return null;
  if (config.type === '' || config.type.length > MAX_TYPE) return null;
  return {
    type: config.type,
    payload: config.payload ?? null,
    handler: config.handler === 'client' ? 'client' : 'server',
    loadingBehavior: ['none', 'self', 'container'].includes(config.loadingBehavior) ? config.loadingBehavior : 'auto',
    streaming: config.streaming !== false,
  };
}

/**
 * The controls that are disabled while an action is pending.
 * @param {Action} action
 * @param {'click' | 'change' | 'submit'} cause
 * @returns {'none' | 'self' | 'container'} `container`: the whole widget
 */
export function pendingScope({ loadingBehavior }, cause) {
  if (loadingBehavior !== 'auto') return loadingBehavior;
  // A field that is disabled after each change would not be usable with the keyboard.
  return cause === 'change' ? 'none' : 'container';
}
