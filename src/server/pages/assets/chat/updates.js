// Applies the updates of open items. Pure: takes a stored item and an update, and returns the next item.

import { withComponent, withText } from './widget/tree.js';

/**
 * Applies one update. Ignores unknown updates, and updates for another kind of item.
 * @param {object} item as the service sends it
 * @param {{type: string}} update
 * @returns {object} the same item if nothing changed
 */
export function applyUpdate(item, update) {
  const changes = Object.hasOwn(KINDS, item.type) ? KINDS[item.type] : {};
  return Object.hasOwn(changes, update?.type) ? changes[update.type](item, update) : item;
}

const KINDS = {
  assistant_message: {
    // The dialect `interface` has no index: text continues in the last part.
    content_part_added: (item, { part }) =>
      withPart(item, Math.max((item.content ?? []).length - 1, 0), (known) => ({ ...known, text: known.text + (part?.text ?? '') })),
    'assistant_message.content_part.added': setPart,
    'assistant_message.content_part.done': setPart,
    'assistant_message.content_part.text_delta': (item, { content_index: index = 0, delta }) =>
      withPart(item, index, (part) => ({ ...part, text: part.text + (delta ?? '') })),
    'assistant_message.content_part.annotation_added': (item, { content_index: index = 0, annotation_index: at, annotation }) =>
      withPart(item, index, (part) => ({ ...part, annotations: inserted(part.annotations ?? [], at, annotation) })),
  },
  widget: {
    'widget.root.updated': (item, { widget }) => (widget ? { ...item, widget } : item),
    'widget.component.updated': (item, { component_id: id, component }) => withWidget(item, withComponent(item.widget, id, () => component)),
    'widget.streaming_text.value_delta': (item, { component_id: id, delta, done }) => withWidget(item, withText(item.widget, id, delta, done)),
  },
  workflow: {
    'workflow.task.added': (item, { task_index: at, task }) => withTasks(item, (tasks) => inserted(tasks, at, task)),
    'workflow.task.updated': (item, { task_index: at, task }) =>
      withTasks(item, (tasks) => tasks.map((known, index) => (index === at && task ? task : known))),
  },
  generated_image: {
    'generated_image.updated': (item, { image, progress }) => ({ ...item, image, progress }),
  },
};

const EMPTY = { type: 'output_text', text: '', annotations: [] };
/** Maximum parts per message; the service sends no larger index. */
const PARTS = 1000;

function setPart(item, { content_index: index = 0, content }) {
  return content ? withPart(item, index, () => content) : item;
}

function withPart(item, index, change) {
  if (!Number.isInteger(index) || index < 0 || index >= PARTS) return item;
  const content = [...(item.content ?? [])];
  while (content.length <= index) content.push(EMPTY);
  content[index] = change({ ...content[index], text: content[index].text ?? '' });
  return { ...item, content };
}

function withWidget(item, widget) {
  return widget === item.widget ? item : { ...item, widget };
}

function withTasks(item, change) {
  return { ...item, workflow: { ...item.workflow, tasks: change(item.workflow?.tasks ?? []) } };
}

/** Inserts an entry at an index, or at the end if the index is larger. */
function inserted(list, at, entry) {
  return entry ? list.toSpliced(Number.isInteger(at) && at >= 0 ? at : list.length, 0, entry) : list;
}
