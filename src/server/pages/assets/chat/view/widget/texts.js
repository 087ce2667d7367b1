// Text components.

import { h, set, setText } from '../../../dom.js';
import { MarkdownView } from '../../../markdown/render.js';
import { textLook } from '../../widget/look.js';
import { applyLook, textIn } from './apply.js';
import { EditableText } from './inputs.js';

const TEXT_SIZES = ['xs', 'sm', 'md', 'lg', 'xl'];
const TITLE_SIZES = ['sm', 'md', 'lg', 'xl', '2xl', '3xl', '4xl', '5xl'];
const CAPTION_SIZES = ['sm', 'md', 'lg'];

class Words {
  constructor(tag, base, sizes) {
    this.element = h(tag, { dir: 'auto' });
    this.base = base;
    this.sizes = sizes;
  }

  show({ props }) {
    applyLook(this.element, this.base, textLook(props, this.sizes));
    const text = textIn(props.value);
    set(this.element, 'hidden', text === '');
    setText(this.element, text);
  }
}

export class Title extends Words {
  constructor() {
    super('h3', 'w-title', TITLE_SIZES);
  }
}

export class Caption extends Words {
  constructor() {
    super('p', 'w-caption', CAPTION_SIZES);
  }
}

/** A text, or an editable field that looks like text. */
export class Text {
  constructor(context) {
    this.context = context;
    this.element = h('div', { class: 'w-text-holder' });
  }

  show(component) {
    const { editable } = component.props;
    const isField = editable !== null && typeof editable === 'object';
    if (this.isField !== isField) {
      this.isField = isField;
      this.view = isField ? new EditableText(this.context) : new Words('p', 'w-text', TEXT_SIZES);
      this.element.replaceChildren(this.view.element);
    }
    this.view.show(component);
    set(this.element, 'data-streaming', component.props.streaming === true);
  }
}

export class Markdown {
  constructor() {
    this.element = h('div', { class: 'markdown w-markdown' });
    this.view = new MarkdownView(this.element);
  }

  show({ props }) {
    this.view.show(textIn(props.value));
    set(this.element, 'data-streaming', props.streaming === true);
  }
}

export class Label {
  constructor(context) {
    this.element = h('label', { id: context.id(), dir: 'auto' });
  }

  show({ props }) {
    applyLook(this.element, 'w-label', textLook(props, TEXT_SIZES));
    set(this.element, 'data-for', textIn(props.fieldName));
    setText(this.element, textIn(props.value));
  }
}
