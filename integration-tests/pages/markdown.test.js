import assert from 'node:assert/strict';
import { test } from 'node:test';
import { blocks } from '../../src/server/pages/assets/markdown/blocks.js';
import { inline, safeAddress } from '../../src/server/pages/assets/markdown/inline.js';

/** A short form: `strong(em(x))`. */
function short(nodes) {
  return nodes
    .map((node) => {
      if (node.type === 'text') return node.text;
      if (node.type === 'break') return '⏎';
      if (node.type === 'code') return `code(${node.text})`;
      const inner = short(node.children);
      return node.type === 'link' ? `link[${node.href}](${inner})` : `${node.type}(${inner})`;
    })
    .join('');
}

const INLINE = {
  'plain': 'plain',
  '**b** *i* ~~d~~ _i_ __b__': 'strong(b) em(i) del(d) em(i) strong(b)',
  '**a *b* c**': 'strong(a em(b) c)',
  '***x***': 'em(strong(x))',
  'snake_case_name and 2 * 3 * 4': 'snake_case_name and 2 * 3 * 4',
  '**open *and': '**open *and',
  'a*b*c': 'aem(b)c',
  '\\*no\\* \\[x\\]': '*no* [x]',
  '`a *b*` ``a ` b`` `open': 'code(a *b*) code(a ` b) `open',
  'one\ntwo  \nthree\\\nfour': 'one⏎two⏎three⏎four',
  '[x](https://e.org/a_(b) "title") y': 'link[https://e.org/a_(b)](x) y',
  '[**b** `c`](<https://e.org/a b>)': 'link[https://e.org/a%20b](strong(b) code(c))',
  '[x](javascript:alert(1)) [y](data:text/html,z) [z](/path)': '[x](javascript:alert(1)) [y](data:text/html,z) [z](/path)',
  '[x](JaVaScRiPt:alert(1))': '[x](JaVaScRiPt:alert(1))',
  '![alt](https://e.org/i.png)': 'link[https://e.org/i.png](alt)',
  '[a [b](https://x.y) c](https://z.z)': '[a link[https://x.y/](b) c](link[https://z.z/](https://z.z))',
  'see https://a.b/c?d=e). And (https://a.b/(x)).': 'see link[https://a.b/c?d=e](https://a.b/c?d=e)). And (link[https://a.b/(x)](https://a.b/(x))).',
  '<https://x.y/z> <script>alert(1)</script> a < b': 'link[https://x.y/z](https://x.y/z) <script>alert(1)</script> a < b',
  'nohttps://x.y': 'nohttps://x.y',
  'שלום **עולם**': 'שלום strong(עולם)',
};

for (const [text, expected] of Object.entries(INLINE)) {
  test(`inline: ${JSON.stringify(text)}`, () => assert.equal(short(inline(text)), expected));
}

const BLOCKS = [
  ['# One #\n###### Six\n####### seven', [['heading', 1, 'One'], ['heading', 6, 'Six'], ['paragraph', '####### seven']]],
  ['a\nb\n\nc', [['paragraph', 'a\nb'], ['paragraph', 'c']]],
  ['```js\nlet a;\n\n# no\n```\nafter', [['code', 'js', 'let a;\n\n# no'], ['paragraph', 'after']]],
  ['~~~\nopen\n```', [['code', '', 'open\n```']]],
  ['***\n- - -\n___', [['rule'], ['rule'], ['rule']]],
  ['> a\nlazy\n> > b\n\nc', [['quote', [['paragraph', 'a\nlazy'], ['quote', [['paragraph', 'b']]]]], ['paragraph', 'c']]],
  ['- a\n- b\n\n  c\n+ d', [['list', '-', [[['paragraph', 'a']], [['paragraph', 'b'], ['paragraph', 'c']]]], ['list', '-', [[['paragraph', 'd']]]]]],
  ['3. a\n4. b\n   - c', [['list', 3, [[['paragraph', 'a']], [['paragraph', 'b'], ['list', '-', [[['paragraph', 'c']]]]]]]]],
  ['1. a\n\n   ```\n   x\n    y\n   ```\n2. b', [['list', 1, [[['paragraph', 'a'], ['code', '', 'x\n y']], [['paragraph', 'b']]]]]],
  ['It was in\n1986. A year\n- and a list', [['paragraph', 'It was in\n1986. A year'], ['list', '-', [[['paragraph', 'and a list']]]]]],
  ['| a | b\\|c |\n|:-|-:|\n| 1 |\n| 1 | 2 | 3 |\nend', [['table', ['left', 'right'], ['a', 'b|c'], [['1', ''], ['1', '2']]], ['paragraph', 'end']]],
  ['a | b\nno table', [['paragraph', 'a | b\nno table']]],
  ['text\n| a |\n|---|\n| 1 |', [['paragraph', 'text'], ['table', [null], ['a'], [['1']]]]],
  ['', []],
  ['\n\n  \n', []],
  ['a\r\nb\r\n\r\n\tc', [['paragraph', 'a\nb'], ['paragraph', 'c']]],
];

function shape(block) {
  switch (block.type) {
    case 'heading':
      return ['heading', block.level, block.text];
    case 'code':
      return ['code', block.language, block.text];
    case 'rule':
      return ['rule'];
    case 'quote':
      return ['quote', block.blocks.map(shape)];
    case 'list':
      return ['list', block.ordered ? block.start : '-', block.items.map((item) => item.blocks.map(shape))];
    case 'table':
      return ['table', block.align, block.head, block.rows];
    default:
      return ['paragraph', block.text];
  }
}

for (const [text, expected] of BLOCKS) {
  test(`blocks: ${JSON.stringify(text)}`, () => assert.deepEqual(blocks(text).map(shape), expected));
}

test('task items are checked or unchecked', () => {
  const [list] = blocks('- [x] done\n- [ ] open\n- [y] neither');
  assert.deepEqual(list.items.map(({ checked }) => checked), [true, false, null]);
});

test('only safe addresses become links', () => {
  assert.equal(safeAddress('https://e.org'), 'https://e.org/');
  assert.equal(safeAddress('mailto:a@e.org'), 'mailto:a@e.org');
  for (const bad of ['javascript:alert(1)', ' javascript:alert(1)', 'java\nscript:alert(1)', 'vbscript:x', 'data:text/html,x', 'file:///etc/passwd', 'blob:https://e.org/x', '//e.org', 'x', '']) {
    assert.equal(safeAddress(bad), null, bad);
  }
});

/** The letters of all parsed texts, to check that no text is lost. */
function letters(text) {
  const of = (block) => {
    switch (block.type) {
      case 'quote':
        return block.blocks.map(of).join('');
      case 'list':
        return block.items.map((item) => item.blocks.map(of).join('')).join('');
      case 'table':
        return [...block.head, ...block.rows.flat()].join('');
      default:
        return block.text ?? '';
    }
  };
  return blocks(text).map(of).join('').replace(/[^a-z]/g, '');
}

test('random texts are parsed without errors and keep their letters', () => {
  const pieces = ['*', '**', '_', '`', '```\n', '~~', '[', ']', '](https://e.org)', '!', '<', '>', '> ', '- ', '1. ', '# ', '|', '\n', '\n\n', '    ', ' ', 'a', 'bc', '\\', '\t', ':-:', '---'];
  let seed = 1;
  const random = (below) => {
    seed = (seed * 48271) % 2147483647;
    return seed % below;
  };
  for (let round = 0; round < 3000; round += 1) {
    const text = Array.from({ length: random(40) }, () => pieces[random(pieces.length)]).join('');
    for (const block of blocks(text)) if (block.text) inline(block.text);
    // Code languages and cells beyond the table head are not shown.
    if (!text.includes('`') && !text.includes('|')) assert.equal(letters(text), text.replaceAll('https://e.org', 'httpseorg').replace(/[^a-z]/g, ''), JSON.stringify(text));
  }
});

test('very long texts of any shape are parsed in linear time', () => {
  const shapes = ['*a ', '*', '**a', '*a*b', '[', '[a](', '[a](b "', '>', '> - ', '- ', '- a\n\n', '1. a\n   ', '<', '_a_ ', 'http://', ')', 'a\n', '|', '|-', '`', '` ', '~~a', '\\'];
  // Quadratic time takes minutes here and exceeds the test timeout.
  for (const shape of shapes) {
    for (const text of [shape.repeat(150_000), `https://e.org/${shape.repeat(150_000)}`, `${'`'.repeat(9)}${shape.repeat(150_000)}`]) {
      for (const block of blocks(text)) if (block.text) inline(block.text);
    }
  }
});
