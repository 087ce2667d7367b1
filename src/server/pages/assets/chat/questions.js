// Questions of the workflow: their display data, the visitor's entries, and the input to send.

/**
 * @typedef {object} Question
 * @property {string} id
 * @property {string} text
 * @property {string[] | null} options null for a question with a text answer
 * @property {boolean} multiple whether several options are allowed
 * @property {string} description may be empty
 * @property {string[] | null} answer null if it was skipped or is not answered yet
 */

/** @typedef {{status: 'pending' | 'answered' | 'skipped', list: Question[]}} Questions */

/** @typedef {{chosen: string[], isOther: boolean, text: string}} Entry `isOther`: `text` is an answer in addition to the options */

/**
 * @param {object} stored an item of the type `structured_input`
 * @returns {Questions}
 */
export function questionsOf({ status, inputs }) {
  const list = (Array.isArray(inputs) ? inputs : []).filter((input) => typeof input?.id === 'string').map(questionOf);
  return { status: status === 'answered' || status === 'skipped' ? status : 'pending', list };
}

function questionOf({ id, question, type, options, multiple, description, answer }) {
  const values = strings(answer?.values);
  return {
    id,
    text: string(question) || 'Question',
    options: type === 'multiple_choice' ? [...new Set(strings((Array.isArray(options) ? options : []).map((option) => option?.value)))] : null,
    multiple: multiple === true,
    description: string(description),
    answer: answer?.skipped === true || values.length === 0 ? null : values,
  };
}

/** @returns {Entry} */
export function emptyEntry() {
  return { chosen: [], isOther: false, text: '' };
}

/**
 * The entered answers to a question.
 * @param {Question} question
 * @param {Entry | undefined} entry
 * @returns {string[]} in the order of the options; empty if nothing is entered
 */
export function valuesOf({ options, multiple }, entry = emptyEntry()) {
  const text = entry.text.trim();
  if (options === null) return text === '' ? [] : [text];
  const other = entry.isOther && text !== '' && !options.includes(text) ? [text] : [];
  const chosen = options.filter((option) => entry.chosen.includes(option) || (entry.isOther && option === text));
  const values = [...chosen, ...other];
  return multiple ? values : values.slice(0, 1);
}

/**
 * The input to send for a form.
 * @param {Question[]} list
 * @param {Record<string, Entry>} entries by the question's id
 * @returns {{status: 'answered', answers: object} | null} null if nothing is entered
 */
export function submission(list, entries) {
  const answers = list.map((question) => [question.id, valuesOf(question, own(entries, question.id))]);
  if (answers.every(([, values]) => values.length === 0)) return null;
  return { status: 'answered', answers: Object.fromEntries(answers.map(([id, values]) => [id, { values, skipped: values.length === 0 }])) };
}

/**
 * The input to send if all questions are skipped.
 * @param {Question[]} list
 */
export function skippedAll(list) {
  return { status: 'skipped', answers: Object.fromEntries(list.map(({ id }) => [id, { values: [], skipped: true }])) };
}

/** Unsent form entries that a tab keeps, by item. */
export class Drafts {
  /** @param {{get: (name: string) => string | null, set: (name: string, value: string | null) => void}} memory */
  constructor(memory) {
    this.memory = memory;
  }

  /** @returns {Record<string, Entry>} by the question's id; empty without a draft */
  read(item) {
    try {
      const saved = Object.entries(JSON.parse(this.memory.get(name(item)) ?? '{}'));
      return Object.fromEntries(saved.map(([id, entry]) => [id, entryOf(entry)]));
    } catch {
      // Other code of this origin may have written the value.
      return {};
    }
  }

  /** @param {Record<string, Entry>} entries */
  keep(item, entries) {
    const entered = Object.entries(entries).filter(([, { chosen, isOther, text }]) => chosen.length > 0 || isOther || text !== '');
    this.memory.set(name(item), entered.length === 0 ? null : JSON.stringify(Object.fromEntries(entered)));
  }

  remove(item) {
    this.memory.set(name(item), null);
  }
}

function entryOf(saved) {
  return { chosen: strings(saved?.chosen), isOther: saved?.isOther === true, text: string(saved?.text) };
}

function name(item) {
  return `answers:${item}`;
}

function own(entries, id) {
  return Object.hasOwn(entries, id) ? entries[id] : undefined;
}

function string(value) {
  return typeof value === 'string' ? value : '';
}

function strings(list) {
  return (Array.isArray(list) ? list : []).filter((value) => typeof value === 'string');
}
