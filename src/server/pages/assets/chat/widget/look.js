// The look of a component: classes for values from closed lists, CSS properties for numbers and colours.

import { color } from './color.js';
import { flex, number, oneOf, ratio, sides, size, spacing } from './values.js';

/**
 * @typedef {{classes: string[], style: Record<string, string>}} Look
 */

const RADII = ['none', '2xs', 'xs', 'sm', 'md', 'lg', 'xl', '2xl', '3xl', '4xl', 'full'];
const ALIGN = ['start', 'center', 'end', 'baseline', 'stretch'];
const JUSTIFY = ['start', 'center', 'end', 'between', 'around', 'evenly', 'stretch'];
const LINES = ['solid', 'dashed', 'dotted', 'double', 'groove', 'ridge', 'inset', 'outset'];
const WEIGHTS = ['normal', 'medium', 'semibold', 'bold'];
const MAX_LINES = 100;
const MAX_BORDER = 16;

/** The look that all blocks share: size, margin, radius and flex. */
export function blockLook(props) {
  const style = {};
  put(style, 'width', size(props.width ?? props.size));
  put(style, 'height', size(props.height ?? props.size));
  put(style, 'min-width', size(props.minWidth ?? props.minSize));
  put(style, 'min-height', size(props.minHeight ?? props.minSize));
  put(style, 'max-width', size(props.maxWidth ?? props.maxSize));
  put(style, 'max-height', size(props.maxHeight ?? props.maxSize));
  put(style, 'aspect-ratio', ratio(props.aspectRatio));
  put(style, 'flex', flex(props.flex));
  putSides(style, 'margin-*', sides(props.margin, spacing));
  return { classes: oneOf('w-radius', props.radius === '100%' ? 'full' : props.radius, RADII), style };
}

/** The look of containers: the block look, the arrangement of children, padding, border and background. */
export function boxLook(props) {
  const { classes, style } = blockLook(props);
  put(style, 'gap', spacing(props.gap));
  putSides(style, 'padding-*', sides(props.padding, spacing));
  putSides(style, 'border-*', sides(isBorder(props.border) ? { x: props.border, y: props.border } : props.border, border));
  put(style, 'background-color', color(props.background, 'surface'));
  return {
    classes: [
      ...classes,
      ...oneOf('w-direction', props.direction, ['row', 'col']),
      ...oneOf('w-align', props.align, ALIGN),
      ...oneOf('w-justify', props.justify, JUSTIFY),
      ...oneOf('w-wrap', props.wrap, ['nowrap', 'wrap', 'wrap-reverse']),
    ],
    style,
  };
}

/**
 * The look of texts.
 * @param {object} props
 * @param {string[]} sizes
 */
export function textLook(props, sizes) {
  const style = {};
  put(style, 'color', color(props.color, 'text'));
  put(style, 'width', size(props.width));
  const most = number(props.maxLines, 1, MAX_LINES);
  put(style, '--w-lines', most === null ? null : String(Math.round(most)));
  const least = number(props.minLines, 1, MAX_LINES);
  put(style, 'min-height', least === null ? null : `${Math.round(least)}lh`);
  return {
    classes: [
      ...oneOf('w-size', props.size, sizes),
      ...oneOf('w-weight', props.weight, WEIGHTS),
      ...oneOf('w-text', props.textAlign, ['start', 'center', 'end']),
      ...(props.italic === true ? ['w-italic'] : []),
      ...(props.lineThrough === true ? ['w-line-through'] : []),
      ...(props.truncate === true ? ['w-truncate'] : []),
      ...(most === null ? [] : ['w-clamp']),
    ],
    style,
  };
}

/** One side of a border. */
function border(value) {
  const { size: width, color: name, style = 'solid' } = value !== null && typeof value === 'object' ? value : { size: value };
  const px = number(width, 0, MAX_BORDER);
  if (px === null) return null;
  return `${px}px ${LINES.includes(style) ? style : 'solid'} ${color(name, 'line') ?? 'var(--line)'}`;
}

/** Whether a value is a border; otherwise it is a set of sides. */
function isBorder(value) {
  return typeof value !== 'object' || value === null || 'size' in value;
}

function put(style, name, value) {
  if (value !== null) style[name] = value;
}

function putSides(style, name, values) {
  for (const [side, value] of Object.entries(values)) style[name.replace('*', side)] = value;
}
