// Parses inline Markdown: emphasis, code, links, breaks. Takes a text, and returns a tree, in time linear in the text's length.
//
// Supports the subset of CommonMark and GitHub's dialect that models write. HTML is text here, and images are links, so
// that a reply cannot make the reader's browser fetch anything.

/**
 * @typedef {{type: 'text' | 'code', text: string} | {type: 'break'}
 *   | {type: 'strong' | 'em' | 'del', children: Inline[]}
 *   | {type: 'link', href: string, children: Inline[]}} Inline
 */

const PUNCTUATION = /[\p{P}\p{S}]/u;
const SPACE = /\s/u;
const ADDRESS = /(?:https?:\/\/|mailto:)[^\s<>"`]+/y;
/** Maximum nesting depth of emphasis. */
const DEEPEST = 20;

/**
 * @param {string} text one paragraph, cell or heading
 * @returns {Inline[]}
 */
export function inline(text) {
  return new Scanner(text).all();
}

/**
 * @param {string} address
 * @returns {string | null} the address; null if a page must not link to it
 */
export function safeAddress(address) {
  try {
    const url = new URL(address);
    return ['http:', 'https:', 'mailto:'].includes(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

class Scanner {
  constructor(text) {
    this.text = text;
    this.at = 0;
    this.plain = '';
    /** Nodes and marks; a mark is a run of `*`, `_` or `~`, or an opening bracket. */
    this.list = [];
    /** List indexes of brackets that may still open a link. */
    this.brackets = [];
    /** Lengths of code marks without a closing partner in the rest of the text. */
    this.unclosed = new Set();
  }

  all() {
    while (this.at < this.text.length) this.step(this.text[this.at]);
    this.flush();
    return emphasise(this.list);
  }

  step(c) {
    switch (c) {
      case '\\':
        return this.escape();
      case '`':
        return this.code();
      case '\n':
        return this.lineBreak();
      case '*':
      case '_':
      case '~':
        return this.mark(c);
      case '!':
        if (this.text[this.at + 1] === '[') this.at += 1;
        else return this.take(1);
        return this.bracket();
      case '[':
        return this.bracket();
      case ']':
        return this.close();
      case '<':
        return this.angle();
      default:
        return this.word(c);
    }
  }

  take(length) {
    this.plain += this.text.slice(this.at, this.at + length);
    this.at += length;
  }

  flush() {
    if (this.plain !== '') this.list.push({ type: 'text', text: this.plain });
    this.plain = '';
  }

  add(node, end) {
    this.flush();
    this.list.push(node);
    this.at = end;
  }

  escape() {
    const next = this.text[this.at + 1];
    if (next === '\n') {
      this.at += 1;
      this.lineBreak();
    } else if (next !== undefined && PUNCTUATION.test(next)) {
      this.at += 1;
      this.take(1);
    } else this.take(1);
  }

  lineBreak() {
    this.plain = this.plain.trimEnd();
    this.add({ type: 'break' }, this.at + 1);
    while (this.text[this.at] === ' ') this.at += 1;
  }

  code() {
    let length = 1;
    while (this.text[this.at + length] === '`') length += 1;
    const end = this.unclosed.has(length) ? -1 : this.partner(length);
    if (end < 0) {
      this.unclosed.add(length);
      return this.take(length);
    }
    const inner = this.text.slice(this.at + length, end).replaceAll('\n', ' ');
    const stripped = /^ .*[^ ].* $|^ [^ ] $/u.test(inner) ? inner.slice(1, -1) : inner;
    return this.add({ type: 'code', text: stripped }, end + length);
  }

  /** The position of the next run of exactly this many code marks, or -1. */
  partner(length) {
    let at = this.at + length;
    for (;;) {
      at = this.text.indexOf('`', at);
      if (at < 0) return -1;
      let found = 1;
      while (this.text[at + found] === '`') found += 1;
      if (found === length) return at;
      at += found;
    }
  }

  mark(c) {
    let length = 1;
    while (this.text[this.at + length] === c) length += 1;
    const before = this.text[this.at - 1] ?? ' ';
    const after = this.text[this.at + length] ?? ' ';
    const left = opens(before, after);
    const right = opens(after, before);
    const within = c === '_' && left && right;
    const opening = left && (!within || PUNCTUATION.test(before));
    const closing = right && (!within || PUNCTUATION.test(after));
    this.add({ type: 'mark', c, length, opening, closing }, this.at + length);
  }

  bracket() {
    this.flush();
    this.brackets.push(this.list.length);
    this.list.push({ type: 'text', text: '[' });
    this.at += 1;
  }

  close() {
    const open = this.brackets.pop();
    const target = open === undefined || this.text[this.at + 1] !== '(' ? null : this.target(this.at + 2);
    const href = target && safeAddress(target.address);
    if (!href) return this.take(1);
    this.flush();
    const children = emphasise(this.list.splice(open).slice(1)).filter(({ type }) => type !== 'link');
    this.list.push({ type: 'link', href, children: children.length ? children : [{ type: 'text', text: href }] });
    // A link cannot contain another link.
    this.brackets = [];
    this.at = target.end;
  }

  /** Parses `address "title")`; the title is not shown. */
  target(from) {
    const match = /\s*(?:<([^<>\n]*)>|([^\s<>()]*(?:\([^\s<>()]*\)[^\s<>()]*)*))(?:\s+(?:"[^"\n]*"|'[^'\n]*'))?\s*\)/y;
    match.lastIndex = from;
    const found = match.exec(this.text.length - from > 4096 ? this.text.slice(0, from + 4096) : this.text);
    return found && { address: found[1] ?? found[2] ?? '', end: match.lastIndex };
  }

  angle() {
    const end = this.text.indexOf('>', this.at);
    const address = end < 0 || end - this.at > 2048 ? '' : this.text.slice(this.at + 1, end);
    if (!/^(?:https?:\/\/|mailto:)[^\s<>]+$/u.test(address)) return this.take(1);
    return this.link(address, end + 1);
  }

  word(c) {
    if ((c === 'h' || c === 'm') && !/[\p{L}\p{N}]/u.test(this.text[this.at - 1] ?? ' ')) {
      ADDRESS.lastIndex = this.at;
      const found = ADDRESS.exec(this.text)?.[0];
      if (found) {
        const address = trimmed(found);
        return this.link(address, this.at + address.length);
      }
    }
    return this.take(1);
  }

  link(address, end) {
    const href = safeAddress(address);
    if (!href) return this.take(end - this.at);
    return this.add({ type: 'link', href, children: [{ type: 'text', text: address }] }, end);
  }
}

/** Whether a mark may open emphasis. */
function opens(before, after) {
  if (SPACE.test(after)) return false;
  return !PUNCTUATION.test(after) || SPACE.test(before) || PUNCTUATION.test(before);
}

/** Removes the punctuation of the surrounding sentence from the end of an address. */
function trimmed(address) {
  let end = address.length;
  let loose = count(address, ')') - count(address, '(');
  for (; end > 0; end -= 1) {
    const c = address[end - 1];
    if (c === ')' && loose > 0) loose -= 1;
    else if (!/[.,:;!?'*_~\]]/.test(c)) break;
  }
  return address.slice(0, end);
}

function count(text, c) {
  return text.split(c).length - 1;
}

/** Pairs each closing mark with the nearest opening mark of the same kind. */
function emphasise(list) {
  const result = [];
  /** Result indexes of opening marks without a partner. */
  const open = [];
  for (const node of list) {
    if (node.type !== 'mark') {
      result.push(node);
      continue;
    }
    const left = node.closing ? closeAll(node, result, open) : node.length;
    if (left > 0) {
      const rest = { ...node, length: left };
      if (node.opening && open.length < DEEPEST) open.push(result.length);
      result.push(rest);
    }
  }
  return result.map((node) => (node.type === 'mark' ? { type: 'text', text: node.c.repeat(node.length) } : node));
}

/** @returns {number} the number of the mark's characters that closed nothing */
function closeAll(node, result, open) {
  let left = node.length;
  while (left > 0) {
    const pair = open.findLastIndex((at) => fits(result[at], { ...node, length: left }));
    if (pair < 0) return left;
    const at = open[pair];
    const opener = result[at];
    const used = node.c === '~' ? opener.length : Math.min(2, opener.length, left);
    const type = node.c === '~' ? 'del' : used === 2 ? 'strong' : 'em';
    const children = result.splice(at + 1).map(asText);
    open.length = pair;
    opener.length -= used;
    left -= used;
    if (opener.length > 0) open.push(at);
    else result.pop();
    result.push({ type, children });
  }
  return 0;
}

function fits(opener, closer) {
  if (opener.c !== closer.c) return false;
  if (opener.c === '~') return opener.length === closer.length && opener.length <= 2;
  // CommonMark's rule of three.
  const either = (opener.opening && opener.closing) || (closer.opening && closer.closing);
  return !(either && (opener.length + closer.length) % 3 === 0 && opener.length % 3 !== 0);
}

function asText(node) {
  return node.type === 'mark' ? { type: 'text', text: node.c.repeat(node.length) } : node;
}
