import assert from 'node:assert/strict';
import { test } from 'node:test';
import { applyUpdate } from '../../src/server/pages/assets/chat/updates.js';

const apply = (item, ...updates) => updates.reduce(applyUpdate, item);
const source = (title) => ({ type: 'annotation', source: { type: 'file', title, filename: title } });
const widget = (...children) => ({ type: 'widget', id: 'w', widget: { type: 'Card', id: 'root', children } });
const delta = (id, text, done = false) => ({ type: 'widget.streaming_text.value_delta', component_id: id, delta: text, done });

test('an annotation is inserted at its index, or at the end', () => {
  const added = (at, title, part = 0) => ({ type: 'assistant_message.content_part.annotation_added', content_index: part, annotation_index: at, annotation: source(title) });
  const item = apply({ type: 'assistant_message', content: [] }, added(0, 'a'), added(9, 'c'), added(1, 'b'), added(0, 'd', 1));
  assert.deepEqual(item.content.map(({ annotations }) => annotations.map((one) => one.source.title)), [['a', 'b', 'c'], ['d']]);
});

test('an update replaces a whole widget or one component', () => {
  const item = widget({ type: 'Row', children: [{ type: 'Text', id: 't', value: 'one' }, { type: 'Text', value: 'two' }] }, { type: 'Transition', children: { type: 'Text', id: 'u', value: 'three' } });
  const replaced = (id, value) => ({ type: 'widget.component.updated', component_id: id, component: { type: 'Title', id, value } });
  const next = apply(item, replaced('t', 'ONE'), replaced('u', 'THREE'));
  assert.deepEqual(next.widget.children[0].children[0], { type: 'Title', id: 't', value: 'ONE' });
  assert.deepEqual(next.widget.children[1].children, { type: 'Title', id: 'u', value: 'THREE' });
  assert.equal(next.widget.children[0].children[1], item.widget.children[0].children[1], 'other components are the same objects');
  assert.equal(item.widget.children[0].children[0].value, 'one', 'the earlier state is unchanged');
  assert.deepEqual(apply(item, { type: 'widget.root.updated', widget: { type: 'ListView', children: [] } }).widget, { type: 'ListView', children: [] });
  assert.equal(apply(item, replaced('root', 'x')).widget.type, 'Title', 'the root has an id as well');
});

test('a component’s text grows until it is complete', () => {
  const item = widget({ type: 'Markdown', id: 'm', value: 'He', streaming: true });
  const open = apply(item, delta('m', 'll'), delta('m', 'o'));
  assert.deepEqual(open.widget.children[0], { type: 'Markdown', id: 'm', value: 'Hello', streaming: true });
  assert.deepEqual(apply(open, delta('m', '.', true)).widget.children[0], { type: 'Markdown', id: 'm', value: 'Hello.', streaming: false });
});

test('tasks are appended, inserted and changed', () => {
  const at = (kind, index, title) => ({ type: `workflow.task.${kind}`, task_index: index, task: { type: 'custom', title } });
  const item = { type: 'workflow', workflow: { type: 'custom', tasks: [] } };
  const next = apply(item, at('added', 0, 'a'), at('added', 7, 'c'), at('added', 1, 'b'), at('updated', 0, 'A'), at('updated', 9, 'x'));
  assert.deepEqual(next.workflow.tasks.map(({ title }) => title), ['A', 'b', 'c']);
});

test('an image update sets its image and progress', () => {
  const item = apply({ type: 'generated_image', id: 'i' }, { type: 'generated_image.updated', image: { id: 'x', url: '/x.png' }, progress: 0.5 });
  assert.deepEqual(item, { type: 'generated_image', id: 'i', image: { id: 'x', url: '/x.png' }, progress: 0.5 });
});

test('updates change nothing if they are unknown, or for other kinds or unknown components', () => {
  const items = [widget({ type: 'Text', id: 't', value: 'x' }), { type: 'task', task: {} }, { type: 'constructor' }];
  const updates = [
    { type: 'workflow.task.added', task_index: 0, task: {} },
    { type: 'assistant_message.content_part.text_delta', content_index: 0, delta: 'x' },
    { type: 'assistant_message.content_part.added', content_index: 0 },
    { type: 'widget.root.updated' },
    { type: 'constructor' },
    { type: '__proto__' },
    {},
    null,
    delta('nowhere', 'x'),
    delta(undefined, 'x'),
  ];
  for (const item of items) for (const update of updates) assert.equal(applyUpdate(item, update), item, JSON.stringify([item, update]));
  const message = { type: 'assistant_message', content: [] };
  for (const index of [-1, 1.5, 1e9]) assert.equal(applyUpdate(message, { ...updates[1], content_index: index }), message);
});

test('a component that is nested too deeply is not changed', () => {
  let root = { type: 'Text', id: 'deep', value: 'x' };
  for (let depth = 0; depth < 20_000; depth += 1) root = { type: 'Box', children: [root] };
  const item = { type: 'widget', widget: root };
  assert.equal(applyUpdate(item, delta('deep', 'y')), item);
});
