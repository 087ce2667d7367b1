// Text and date fields.

import { h, set } from '../../../dom.js';
import { Entered } from '../../widget/entered.js';
import { textLook } from '../../widget/look.js';
import { oneOf, whole } from '../../widget/values.js';
import { applyLook, textIn } from './apply.js';

export const CONTROL_SIZES = ['3xs', '2xs', 'xs', 'sm', 'md', 'lg', 'xl', '2xl', '3xl'];
const INPUT_TYPES = ['number', 'email', 'text', 'password', 'tel', 'url'];
const AUTOCOMPLETE = /^[a-z][a-z -]{0,63}$/;
/** Maximum length of a pattern; longer ones are ignored. */
const MAX_PATTERN = 200;
const MAX_LENGTH = 10_000;

/** Classes shared by most controls. */
export function controlClasses(props) {
  return [
    ...oneOf('w-size', props.size, CONTROL_SIZES),
    ...oneOf('w-variant', props.variant, ['solid', 'soft', 'outline', 'ghost']),
    ...(props.pill === true ? ['w-pill'] : []),
    ...(props.block === true ? ['w-block'] : []),
  ];
}

/** Base class of fields with a single element. */
class Field {
  constructor(context, element) {
    this.context = context;
    this.element = element;
    this.entered = new Entered(context.actions);
    element.addEventListener('input', () => this.entered.changed());
    element.addEventListener('change', () => context.act(this.action, 'change', element));
    element.addEventListener('focus', () => this.selects && element.select?.());
    set(element, 'id', context.id());
  }

  field(props, value, words) {
    const { element } = this;
    set(element, 'data-field', textIn(props.name));
    set(element, 'data-label', words || textIn(props.name) || 'Field');
    set(element, 'placeholder', textIn(props.placeholder) || null);
    set(element, 'required', props.required === true);
    const pattern = textIn(props.pattern);
    set(element, 'pattern', pattern !== '' && pattern.length <= MAX_PATTERN ? pattern : null);
    this.selects = props.autoSelect === true;
    this.action = props.onChangeAction;
    this.context.enable(element, this.action, props.disabled);
    if (this.entered.takes(value)) element.value = value;
  }
}

export class Input extends Field {
  constructor(context) {
    super(context, h('input', { maxlength: MAX_LENGTH, dir: 'auto' }));
  }

  show({ props }) {
    const type = INPUT_TYPES.includes(props.inputType) ? props.inputType : 'text';
    set(this.element, 'type', type);
    set(this.element, 'step', type === 'number' ? 'any' : null);
    set(this.element, 'autocomplete', props.allowAutofillExtensions === true ? null : 'off');
    applyLook(this.element, 'w-input', { classes: controlClasses(props), style: {} });
    this.field(props, textIn(props.defaultValue), textIn(props.placeholder));
  }
}

export class Textarea extends Field {
  constructor(context) {
    super(context, h('textarea', { maxlength: MAX_LENGTH, dir: 'auto' }));
  }

  show({ props }) {
    const rows = whole(props.rows, 1, 40) ?? 3;
    set(this.element, 'rows', rows);
    const most = whole(props.maxRows, 1, 100);
    // A field that grows with its text ignores `rows`.
    const style = { 'min-height': `calc(${rows}lh + 0.8rem)`, ...(most === null ? {} : { 'max-height': `calc(${Math.max(most, rows)}lh + 0.8rem)` }) };
    const classes = [...controlClasses(props), ...(props.autoResize === false ? [] : ['w-grows'])];
    applyLook(this.element, 'w-input w-textarea', { classes, style });
    this.field(props, textIn(props.defaultValue), textIn(props.placeholder));
  }
}

export class DatePicker extends Field {
  constructor(context) {
    super(context, h('input', { type: 'date' }));
  }

  show({ props }) {
    set(this.element, 'min', dateOf(props.min) || null);
    set(this.element, 'max', dateOf(props.max) || null);
    applyLook(this.element, 'w-input w-date', { classes: controlClasses(props), style: {} });
    this.field(props, dateOf(props.defaultValue), textIn(props.placeholder));
  }
}

/** The date part of an ISO 8601 time, without a time zone conversion. */
function dateOf(value) {
  return /^\d{4}-\d{2}-\d{2}/.exec(textIn(value))?.[0] ?? '';
}

/** A `Text` that can be edited in place. */
export class EditableText extends Field {
  constructor(context) {
    super(context, h('input', { type: 'text', maxlength: MAX_LENGTH, dir: 'auto' }));
  }

  show({ props }) {
    const { editable } = props;
    const fill = textIn(editable.autoComplete);
    set(this.element, 'autocomplete', AUTOCOMPLETE.test(fill) ? fill : 'off');
    applyLook(this.element, 'w-editable', textLook(props, ['xs', 'sm', 'md', 'lg', 'xl']));
    this.field(editable, textIn(props.value), textIn(editable.placeholder));
  }
}
