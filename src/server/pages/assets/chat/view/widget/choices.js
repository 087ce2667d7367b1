// Choice fields: one of several options, or yes and no.

import { h, set, setText } from '../../../dom.js';
import { Entered } from '../../widget/entered.js';
import { oneOf } from '../../widget/values.js';
import { applyLook, textIn } from './apply.js';
import { controlClasses } from './inputs.js';

/** Maximum options shown. */
const MAX_OPTIONS = 500;

function optionsOf({ options }) {
  const list = (Array.isArray(options) ? options : []).filter((option) => option !== null && typeof option === 'object');
  return list.slice(0, MAX_OPTIONS).map(({ label, value, disabled, description }) => ({
    label: textIn(label) || textIn(value),
    value: textIn(value),
    disabled: disabled === true,
    description: textIn(description),
  }));
}

export class Select {
  constructor(context) {
    this.context = context;
    this.entered = new Entered(context.actions);
    this.select = h('select', {
      id: context.id(),
      dir: 'auto',
      oninput: () => this.entered.changed(),
      onchange: () => context.act(this.action, 'change', this.select),
    });
    this.element = h('div', { class: 'w-select-holder' }, this.select);
  }

  show({ props }) {
    const options = optionsOf(props);
    const placeholder = textIn(props.placeholder) || 'Choose …';
    this.#options([{ label: placeholder, value: '', isEmpty: true, disabled: props.clearable !== true }, ...options]);
    set(this.select, 'data-field', textIn(props.name));
    set(this.select, 'data-label', textIn(props.placeholder) || textIn(props.name) || 'Choice');
    set(this.element, 'data-block', props.block === true);
    applyLook(this.select, 'w-input w-select', { classes: controlClasses(props), style: {} });
    this.action = props.onChangeAction;
    this.context.enable(this.select, this.action, props.disabled);
    const value = textIn(props.defaultValue);
    if (this.entered.takes(value)) this.select.value = options.some((option) => option.value === value) ? value : '';
  }

  #options(options) {
    const source = JSON.stringify(options);
    if (source === this.source) return;
    this.source = source;
    const { value } = this.select;
    this.select.replaceChildren(
      ...options.map((option) =>
        h('option', { value: option.value, disabled: option.disabled }, option.description ? `${option.label} – ${option.description}` : option.label),
      ),
    );
    this.select.value = options.some((option) => option.value === value) ? value : '';
  }
}

export class RadioGroup {
  constructor(context) {
    this.context = context;
    this.entered = new Entered(context.actions);
    this.group = context.id();
    this.element = h('fieldset', {
      id: context.id(),
      role: 'radiogroup',
      oninput: () => this.entered.changed(),
      onchange: () => context.act(this.action, 'change', this.element),
    });
  }

  show({ props }) {
    const options = optionsOf(props);
    set(this.element, 'data-field', textIn(props.name));
    set(this.element, 'data-label', textIn(props.ariaLabel) || textIn(props.name) || 'Choice');
    applyLook(this.element, 'w-radios', { classes: oneOf('w-direction', props.direction, ['row', 'col']), style: {} });
    this.#options(options, props.required === true);
    this.action = props.onChangeAction;
    this.context.enable(this.element, this.action, props.disabled);
    const value = textIn(props.defaultValue);
    if (this.entered.takes(value)) this.#choose(value);
  }

  #options(options, required) {
    const source = JSON.stringify([options, required]);
    if (source === this.source) return;
    this.source = source;
    const chosen = this.element.querySelector('input:checked')?.value;
    this.element.replaceChildren(
      ...options.map(({ label, value, disabled }) =>
        h('label', { class: 'w-choice' }, h('input', { type: 'radio', name: this.group, value, disabled, required }), h('span', { dir: 'auto' }, label)),
      ),
    );
    this.#choose(chosen);
  }

  #choose(value) {
    for (const radio of this.element.querySelectorAll('input')) radio.checked = radio.value === value;
  }
}

export class Checkbox {
  constructor(context) {
    this.context = context;
    this.entered = new Entered(context.actions);
    this.box = h('input', {
      type: 'checkbox',
      id: context.id(),
      oninput: () => this.entered.changed(),
      onchange: () => context.act(this.action, 'change', this.box),
    });
    this.words = h('span', { dir: 'auto' });
    this.element = h('label', { class: 'w-choice' }, this.box, this.words);
  }

  show({ props }) {
    const label = textIn(props.label);
    setText(this.words, label);
    set(this.words, 'hidden', label === '');
    set(this.box, 'data-field', textIn(props.name));
    set(this.box, 'data-label', label === '' ? textIn(props.name) || 'Choice' : null);
    set(this.box, 'required', props.required === true);
    this.action = props.onChangeAction;
    this.context.enable(this.box, this.action, props.disabled);
    const checked = props.defaultChecked === true;
    if (this.entered.takes(checked)) this.box.checked = checked;
  }
}
