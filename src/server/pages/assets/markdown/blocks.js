// Parses Markdown blocks: paragraphs, headings, lists, code, quotes, tables. Takes a text, and returns a list of blocks.

/**
 * @typedef {{type: 'paragraph', text: string} | {type: 'heading', level: number, text: string}
 *   | {type: 'code', language: string, text: string} | {type: 'rule'} | {type: 'quote', blocks: Block[]}
 *   | {type: 'list', ordered: boolean, start: number, items: {checked: boolean | null, blocks: Block[]}[]}
 *   | {type: 'table', align: ('left' | 'right' | 'center' | null)[], head: string[], rows: string[][]}} Block
 */

/** Maximum nesting depth of lists and quotes; deeper ones are text. */
const DEEPEST = 10;

const FENCE = /^( {0,3})(`{3,}|~{3,})\s*([^`]*)$/;
const HEADING = /^ {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$/;
const RULE = /^ {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])(?:([ \t]+)(.*)|[ \t]*)$/;
const DELIMITER = /^ {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$/;

/**
 * @param {string} text
 * @returns {Block[]}
 */
export function blocks(text) {
  return parse(text.replaceAll('\r\n', '\n').replaceAll('\t', '    ').split('\n'), 0);
}

/** Parses lines. The parser of each kind returns the block and the next line; null if no such block begins here. */
function parse(lines, depth) {
  const found = [];
  let at = 0;
  while (at < lines.length) {
    if (lines[at].trim() === '') {
      at += 1;
      continue;
    }
    const [block, next] =
      fence(lines, at) ??
      heading(lines, at) ??
      rule(lines, at) ??
      (depth < DEEPEST ? (quote(lines, at, depth) ?? list(lines, at, depth)) : null) ??
      table(lines, at) ??
      paragraph(lines, at, depth);
    found.push(block);
    at = next;
  }
  return found;
}

function fence(lines, at) {
  const open = FENCE.exec(lines[at]);
  if (!open) return null;
  const [, indent, marks, info] = open;
  const close = new RegExp(`^ {0,3}[${marks[0]}]{${marks.length},}\\s*$`);
  const text = [];
  let next = at + 1;
  for (; next < lines.length && !close.test(lines[next]); next += 1) text.push(unindent(lines[next], indent.length));
  const language = info.trim().split(/\s/)[0];
  return [{ type: 'code', language, text: text.join('\n') }, next + 1];
}

function heading(lines, at) {
  const found = HEADING.exec(lines[at]);
  return found && [{ type: 'heading', level: found[1].length, text: (found[2] ?? '').trim() }, at + 1];
}

function rule(lines, at) {
  return RULE.test(lines[at]) ? [{ type: 'rule' }, at + 1] : null;
}

function quote(lines, at, depth) {
  if (!QUOTE.test(lines[at])) return null;
  const inner = [];
  let next = at;
  // A paragraph continues without marks.
  for (; next < lines.length; next += 1) {
    if (QUOTE.test(lines[next])) inner.push(lines[next].replace(QUOTE, ''));
    else if (lines[next].trim() !== '' && goesOn(lines[next]) && inner.at(-1)?.trim()) inner.push(lines[next]);
    else break;
  }
  return [{ type: 'quote', blocks: parse(inner, depth + 1) }, next];
}

function list(lines, at, depth) {
  const first = ITEM.exec(lines[at]);
  if (!first || RULE.test(lines[at])) return null;
  const kind = kindOf(first[2]);
  const items = [];
  let next = at;
  while (next < lines.length) {
    const item = ITEM.exec(lines[next]);
    if (!item || kindOf(item[2]) !== kind || RULE.test(lines[next])) break;
    const [inner, end] = itemLines(lines, next, item);
    items.push(itemOf(inner, depth));
    next = end;
  }
  return [{ type: 'list', ordered: kind !== '-' && kind !== '*' && kind !== '+', start: parseInt(first[2], 10) || 0, items }, next];
}

function kindOf(mark) {
  return mark.at(-1);
}

/** The lines of an item without their indent, and the next line after it. */
function itemLines(lines, at, [, indent, mark, gap = ' ', rest = '']) {
  const width = indent.length + mark.length + (gap.length > 4 ? 1 : gap.length);
  const inner = [rest];
  let next = at + 1;
  for (; next < lines.length; next += 1) {
    const line = lines[next];
    if (line.trim() === '') {
      // Empty lines belong to the item if more of it follows.
      const more = lines.slice(next, next + 8).find((later) => later.trim() !== '');
      if (more === undefined || (indentOf(more) < width && !ITEM.test(more))) break;
      inner.push('');
    } else if (indentOf(line) >= width) inner.push(unindent(line, width));
    // Models indent the content of a numbered item by two or three spaces.
    else if (indentOf(line) >= 2 && indentOf(line) > indent.length) inner.push(line.trimStart());
    else if (!ITEM.test(line) && goesOn(line) && inner.at(-1).trim() !== '') inner.push(line);
    else break;
  }
  while (inner.length > 1 && inner.at(-1).trim() === '') inner.pop();
  return [inner, next];
}

function itemOf(lines, depth) {
  const task = /^\[([ xX])\][ \t]+/.exec(lines[0]);
  const rest = task ? [lines[0].slice(task[0].length), ...lines.slice(1)] : lines;
  return { checked: task ? task[1] !== ' ' : null, blocks: parse(rest, depth + 1) };
}

function table(lines, at) {
  const delimiter = lines[at + 1];
  if (delimiter === undefined || !lines[at].includes('|') || !DELIMITER.test(delimiter)) return null;
  const head = cells(lines[at]);
  const align = cells(delimiter).map(alignment);
  if (head.length !== align.length) return null;
  const rows = [];
  let next = at + 2;
  for (; next < lines.length && lines[next].includes('|') && lines[next].trim() !== ''; next += 1) {
    const row = cells(lines[next]).slice(0, head.length);
    while (row.length < head.length) row.push('');
    rows.push(row);
  }
  return [{ type: 'table', align, head, rows }, next];
}

function cells(line) {
  const inner = line.trim().replace(/^\|/, '').replace(/(?<!\\)\|$/, '');
  return inner.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll('\\|', '|'));
}

function alignment(cell) {
  const left = cell.startsWith(':');
  const right = cell.endsWith(':');
  return left && right ? 'center' : right ? 'right' : left ? 'left' : null;
}

function paragraph(lines, at, depth) {
  const text = [lines[at].trim()];
  let next = at + 1;
  for (; next < lines.length; next += 1) {
    const line = lines[next];
    if (line.trim() === '' || !goesOn(line, depth) || startsTable(lines, next)) break;
    text.push(line.trimStart());
  }
  return [{ type: 'paragraph', text: text.join('\n').trimEnd() }, next];
}

/** Whether a line may continue the paragraph above it. */
function goesOn(line, depth = 0) {
  if (FENCE.test(line) || HEADING.test(line) || RULE.test(line)) return false;
  if (depth >= DEEPEST) return true;
  const item = ITEM.exec(line);
  // "1986. A year" in the middle of a paragraph is not a list.
  return !QUOTE.test(line) && !(item && item[4] && (!/\d/.test(item[2]) || /^1[.)]$/.test(item[2])));
}

function startsTable(lines, at) {
  return lines[at].includes('|') && lines[at + 1] !== undefined && DELIMITER.test(lines[at + 1]) && lines[at + 1].includes('|');
}

function indentOf(line) {
  return line.length - line.trimStart().length;
}

function unindent(line, width) {
  return line.slice(Math.min(width, indentOf(line)));
}
