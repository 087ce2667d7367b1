// Tables.

import { h, set } from '../../../dom.js';
import { oneOf, sides, size, spacing, whole } from '../../widget/values.js';
import { applyLook } from './apply.js';
import { Children } from './children.js';

const MAX_SPAN = 50;

export class Table {
  constructor(context) {
    this.rows = h('tbody');
    this.children = new Children(this.rows, context);
    this.element = h('div', { class: 'w-table', tabindex: '0', role: 'region', 'aria-label': 'Table' }, h('table', {}, this.rows));
  }

  show({ children }) {
    this.children.show(children.filter(({ type }) => type === 'Table.Row'));
  }
}

export class TableRow {
  constructor(context) {
    this.element = h('tr');
    this.children = new Children(this.element, context);
  }

  show({ props, children }) {
    const isHeader = props.header === true;
    set(this.element, 'class', isHeader ? 'w-header' : null);
    // A header cell is a different element, so it has a different key.
    const cells = children.filter(({ type }) => type === 'Table.Cell');
    this.children.show(isHeader ? cells.map((cell) => ({ ...cell, type: 'Table.Header' })) : cells);
  }
}

export class TableCell {
  constructor(context, tag = 'td') {
    this.element = h(tag, { scope: tag === 'th' ? 'col' : null });
    this.body = h('div', { class: 'w-cell' });
    this.element.append(this.body);
    this.children = new Children(this.body, context);
  }

  show({ props, children }) {
    set(this.element, 'colspan', span(props.colSpan));
    set(this.element, 'rowspan', span(props.rowSpan));
    const style = {};
    const width = size(props.width);
    if (width !== null) style.width = width;
    for (const [side, value] of Object.entries(sides(props.padding, spacing))) style[`padding-${side}`] = value;
    const classes = [
      ...oneOf('w-text', props.align, ['start', 'center', 'end']),
      ...oneOf('w-valign', props.vAlign, ['start', 'center', 'end']),
      ...oneOf('w-col', props.colSize, ['xs', 'sm', 'md', 'lg', 'xl']),
    ];
    applyLook(this.element, 'w-td', { classes, style });
    this.children.show(children);
  }
}

export class TableHeader extends TableCell {
  constructor(context) {
    super(context, 'th');
  }
}

function span(value) {
  const read = whole(value, 1, MAX_SPAN);
  return read === 1 ? null : read;
}
