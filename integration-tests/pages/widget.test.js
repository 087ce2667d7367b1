import assert from 'node:assert/strict';
import { test } from 'node:test';
import { actionOf, pendingScope } from '../../src/server/pages/assets/chat/widget/action.js';
import { imageAddress } from '../../src/server/pages/assets/chat/widget/address.js';
import { color } from '../../src/server/pages/assets/chat/widget/color.js';
import { Entered } from '../../src/server/pages/assets/chat/widget/entered.js';
import { mergeForm } from '../../src/server/pages/assets/chat/widget/form.js';
import { blockLook, boxLook, textLook } from '../../src/server/pages/assets/chat/widget/look.js';
import { bounded, keysOf, MAX_COMPONENTS, MAX_DEPTH } from '../../src/server/pages/assets/chat/widget/tree.js';
import { flex, ratio, sides, size, spacing } from '../../src/server/pages/assets/chat/widget/values.js';

test('form values nest by their dotted names', () => {
  assert.deepEqual(mergeForm(null, [['todo.title', 'Milk'], ['todo.done', false], ['note', 'x']]), { todo: { title: 'Milk', done: false }, note: 'x' });
  assert.deepEqual(mergeForm({ id: 1, todo: { list: 2 } }, [['todo.title', 'Milk']]), { id: 1, todo: { list: 2, title: 'Milk' } });
});

test('an existing key of the payload wins', () => {
  assert.deepEqual(mergeForm({ a: 1, b: { c: null } }, [['a', 2], ['b.c', 3], ['b.d', 4], ['a.x', 5]]), { a: 1, b: { c: null, d: 4 } });
  assert.deepEqual(mergeForm({}, [['a', 1], ['a', 2]]), { a: 1 }, 'the first field of a name wins');
});

test('a payload that is not an object stays as it is', () => {
  for (const payload of ['text', 7, [1], true]) assert.deepEqual(mergeForm(payload, [['a', 1]]), payload);
  assert.equal(mergeForm(null, []), null);
  assert.deepEqual(mergeForm({ list: [1] }, [['list.0', 2]]), { list: [1] });
});

test('form values change neither the payload nor a prototype', () => {
  const payload = { a: { b: 1 } };
  mergeForm(payload, [['a.c', 2], ['__proto__.bad', 1], ['a.__proto__.bad', 1], ['constructor.prototype.bad', 1], ['', 1], ['a..b', 1]]);
  assert.deepEqual(payload, { a: { b: 1 } });
  assert.equal({}.bad, undefined);
  const deep = 'a.'.repeat(5000);
  assert.deepEqual(mergeForm({}, [[`${deep}a`, 1]]), {});
});

test('an action has defaults, and is invalid without a type', () => {
  assert.deepEqual(actionOf({ type: 'a' }), { type: 'a', payload: null, handler: 'server', loadingBehavior: 'auto', streaming: true });
  const config = { type: 'a', payload: { x: null }, handler: 'client', loadingBehavior: 'self', streaming: false };
  assert.deepEqual(actionOf(config), config);
  for (const bad of [null, undefined, 'a', {}, { type: '' }, { type: 1 }, { type: 'x'.repeat(201) }]) assert.equal(actionOf(bad), null);
  assert.equal(pendingScope(actionOf({ type: 'a' }), 'click'), 'container');
  assert.equal(pendingScope(actionOf({ type: 'a' }), 'change'), 'none');
  assert.equal(pendingScope(actionOf(config), 'change'), 'self');
});

test('images come from https, from this service, or from the widget itself', () => {
  const base = 'http://chat.example/x/chat/1';
  const of = (source, rules) => imageAddress(source, { base, ...rules });
  assert.equal(of('https://e.org/a.png'), 'https://e.org/a.png');
  assert.equal(of('/a.png'), 'http://chat.example/a.png');
  assert.equal(of('data:image/png;base64,AA=='), 'data:image/png;base64,AA==');
  assert.equal(of('data:image/png;base64,AA==', { data: false }), null);
  const bad = ['http://e.org/a.png', 'javascript:alert(1)', 'data:text/html,x', 'data:image/png.html,x', 'blob:https://e.org/x', 'file:///a', 'https://u:p@e.org/a', '', null, 7, 'https://'];
  for (const source of bad) assert.equal(of(source), null, String(source));
  const domains = ['e.org', 'CDN.example'];
  assert.equal(of('https://e.org/a.png', { domains }), 'https://e.org/a.png');
  assert.equal(of('https://cdn.example/a.png', { domains }), 'https://cdn.example/a.png');
  assert.equal(of('https://x.e.org/a.png', { domains }), null);
  assert.equal(of('https://e.org/a.png', { domains: [] }), null);
  assert.equal(of('/a.png', { domains: [] }), 'http://chat.example/a.png');
});

test('a colour is a known name or a valid number', () => {
  assert.equal(color('secondary', 'text'), 'var(--w-text-secondary)');
  assert.equal(color('#0f766e', 'text'), '#0f766e');
  assert.equal(color('rgb(1, 2, 300)', 'text'), 'rgb(1 2 255 / 1)');
  assert.equal(color('rgba(1 2 3 / 50%)', 'text'), 'rgb(1 2 3 / 0.5)');
  assert.equal(color('red-500', 'surface'), 'oklch(0.63 0.2 25)');
  assert.equal(color('alpha-10', 'surface'), 'color-mix(in srgb, var(--ink) 10%, transparent)');
  assert.equal(color({ light: '#fff', dark: 'black' }, 'text'), 'light-dark(#fff, black)');
  assert.equal(color({ light: '#fff', dark: 'url(x)' }, 'text'), '#fff');
  const bad = ['surface', 'url(https://e.org)', 'var(--x)', 'red', '#12', '#12345', 'red-5', 'constructor-500', 'rgb(1,2)', 'rgb(1,2,3);x:y', '#fff;x', null, 7, [], 'x'.repeat(1000)];
  for (const value of bad) assert.equal(color(value, 'text'), null, String(value));
});

test('lengths are valid numbers or lengths, and clamped', () => {
  assert.deepEqual([size(12), size('12'), size('50%'), size('1.5rem'), size('auto'), size(1e9), size(-5), size('900%')], ['12px', '12px', '50%', '1.5rem', 'auto', '2000px', '0px', '100%']);
  assert.deepEqual([spacing(2), spacing('0.5rem'), spacing(1e9), spacing('999px'), spacing('99%')], ['8px', '0.5rem', '160px', '160px', '50%']);
  for (const bad of ['calc(1px)', 'var(--x)', '1px;color:red', '1px 2px', '100vw', NaN, Infinity, null, undefined, {}, [], true, '', 'inherit']) {
    assert.deepEqual([size(bad), spacing(bad)], [null, null], String(bad));
  }
  assert.deepEqual([flex(1), flex('auto'), flex('2 1 50%'), flex('1 1'), flex('1 1 calc(x)'), flex('x')], ['1 1 0%', 'auto', '2 1 50%', '1 1 0%', null, null]);
  assert.deepEqual([ratio('16 / 9'), ratio(2), ratio('1/0'), ratio('0/0'), ratio('x')], ['1.7778', '2', null, null, null]);
  assert.deepEqual(sides({ x: 1, top: 2 }, spacing), { top: '8px', right: '4px', left: '4px' });
  assert.deepEqual(sides(undefined, spacing), {});
});

test('values from closed lists become classes, and others are ignored', () => {
  const look = boxLook({ align: 'center', justify: 'between', wrap: 'wrap', direction: 'row', radius: '100%', gap: 3, border: 1, background: 'surface-secondary' });
  assert.deepEqual(look.classes, ['w-radius-full', 'w-direction-row', 'w-align-center', 'w-justify-between', 'w-wrap-wrap']);
  assert.equal(look.style.gap, '12px');
  assert.equal(look.style['border-top'], '1px solid var(--line)');
  assert.equal(look.style['background-color'], 'var(--w-surface-surface-secondary)');
  const sided = boxLook({ border: { top: { size: 99, color: 'strong', style: 'dashed' } }, padding: { x: 2 } }).style;
  assert.deepEqual(sided, { 'border-top': '16px dashed var(--w-line-strong)', 'padding-right': '8px', 'padding-left': '8px' });
  const hostile = { align: 'x y', radius: 'constructor', padding: 'url(x)', margin: ['1'], border: { size: '1px', style: 'x' }, background: 'url(x)', width: {}, flex: 'x', aspectRatio: '1;x', gap: -1 };
  assert.deepEqual(boxLook(hostile), { classes: [], style: { gap: '0px' } });
  for (const value of [null, undefined, 7, 'x', [], true]) {
    const props = Object.fromEntries([...Object.keys(hostile), 'size', 'color', 'maxLines'].map((name) => [name, value]));
    assert.ok(boxLook(props) && blockLook(props) && textLook(props, []));
  }
  assert.deepEqual(textLook({ maxLines: 2, size: 'lg', italic: true, truncate: 'yes' }, ['lg']), { classes: ['w-size-lg', 'w-italic', 'w-clamp'], style: { '--w-lines': '2' } });
});

test('depth and count of components are limited', () => {
  let deep = { type: 'Text', value: 'x' };
  for (let depth = 0; depth < 20_000; depth += 1) deep = { type: 'Box', children: [deep] };
  let [depth, at] = [1, bounded({ type: 'Card', children: [deep] })];
  for (; at.children.length > 0; depth += 1) [at] = at.children;
  assert.equal(depth, MAX_DEPTH);
  const wide = bounded({ type: 'Card', children: Array.from({ length: 5000 }, () => ({ type: 'Row', children: [{ type: 'Text' }] })) });
  const count = (component) => 1 + component.children.reduce((sum, child) => sum + count(child), 0);
  assert.equal(count(wide), MAX_COMPONENTS);
});

test('only known roots are widgets, and only components are children', () => {
  for (const root of [null, 'x', {}, [], { type: 'Text' }, { type: 'constructor' }]) assert.equal(bounded(root), null);
  const { children } = bounded({ type: 'Basic', children: [null, false, 'x', { type: 'Text' }, {}, { type: 'Transition', children: { type: 'Title' } }] });
  assert.deepEqual(children.map(({ type, children: inner }) => [type, inner.length]), [['Text', 0], ['Transition', 1]]);
});

test('a component keeps its key when siblings are added', () => {
  const of = (...types) => keysOf(types.map((one) => (typeof one === 'string' ? { type: one, props: {} } : { type: one.type, props: one })));
  const name = { type: 'Input', name: 'mail' };
  const [input] = of(name);
  assert.equal(of('Text', { type: 'Title', id: 't' }, name, 'Text')[2], input);
  assert.equal(of('Text', 'Title')[0], of('Badge', 'Text')[1]);
  assert.equal(new Set(of('Text', 'Text', name, name, { type: 'Text', key: 'a' }, { type: 'Text', id: 'a' })).size, 6);
  assert.notEqual(of({ ...name, key: '1' })[0], of({ ...name, key: '2' })[0], 'another key makes another field');
});

test('a field keeps the entered value until an action is complete', () => {
  const actions = { completed: 0 };
  const field = new Entered(actions);
  assert.equal(field.takes('a'), true);
  assert.equal(field.takes('a'), false, 'the default value is the same');
  assert.equal(field.takes('b'), true, 'nothing was entered');
  field.changed();
  assert.equal(field.takes('c'), false);
  actions.completed += 1;
  assert.equal(field.takes('c'), false, 'not a new default value');
  assert.equal(field.takes(''), true);
});
