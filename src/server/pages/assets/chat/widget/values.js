// Numbers of components as CSS. What is not exactly a number or a length is ignored, and what is too large is clamped.

/** A spacing unit, in px. */
const UNIT = 4;
/** The largest numbers by unit. */
const SIZES = { px: 2000, rem: 120, em: 120, ch: 200, '%': 100 };
const SPACINGS = { px: 160, rem: 10, em: 10, ch: 20, '%': 50 };
const KEYWORDS = ['auto', 'min-content', 'max-content', 'fit-content'];

/** A number within limits; null if it is not one. */
export function number(value, least, most) {
  const read = typeof value === 'string' && /^-?\d+(?:\.\d+)?$/.test(value.trim()) ? Number(value) : value;
  return typeof read === 'number' && Number.isFinite(read) ? Math.min(Math.max(read, least), most) : null;
}

/** A whole number within limits; null if it is not a number. */
export function whole(value, least, most) {
  const read = number(value, least, most);
  return read === null ? null : Math.round(read);
}

/** A width or height: a number is in px. */
export function size(value) {
  const px = number(value, 0, SIZES.px);
  if (px !== null) return `${px}px`;
  return KEYWORDS.includes(value) ? value : length(value, SIZES);
}

/** A distance: a number is in units of 4 px. */
export function spacing(value) {
  const units = number(value, 0, SPACINGS.px / UNIT);
  return units === null ? length(value, SPACINGS) : `${units * UNIT}px`;
}

function length(value, most) {
  const [, digits, unit] = /^(\d+(?:\.\d+)?)(px|rem|em|ch|%)$/.exec(typeof value === 'string' ? value.trim() : '') ?? [];
  return digits === undefined ? null : `${Math.min(Number(digits), most[unit])}${unit}`;
}

/**
 * The four sides of a value for all of them, or of an object with `x`, `y` and sides.
 * @param {unknown} value
 * @param {(value: unknown) => unknown} read null for what is not a value
 * @returns {Record<string, unknown>} without the sides that have none
 */
export function sides(value, read) {
  const own = value !== null && typeof value === 'object' ? value : { x: value, y: value };
  const all = { top: read(own.top ?? own.y), right: read(own.right ?? own.x), bottom: read(own.bottom ?? own.y), left: read(own.left ?? own.x) };
  return Object.fromEntries(Object.entries(all).filter(([, side]) => side !== null));
}

/** `flex` as CSS: a factor, or factors with a size. */
export function flex(value) {
  const factor = number(value, 0, 100);
  if (factor !== null) return `${factor} 1 0%`;
  if (value === 'auto' || value === 'none') return value;
  const [, grow, shrink, basis = '0%'] = /^(\d{1,3}) (\d{1,3})(?: (auto|0|\S+))?$/.exec(typeof value === 'string' ? value : '') ?? [];
  if (grow === undefined) return null;
  const read = basis === '0' || basis === 'auto' ? basis : size(basis);
  return read === null ? null : `${Math.min(grow, 100)} ${Math.min(shrink, 100)} ${read}`;
}

/** `aspectRatio` as CSS: a number, or two as in `16 / 9`. */
export function ratio(value) {
  const [, width, height] = /^(\d+(?:\.\d+)?)\s*[/:]\s*(\d+(?:\.\d+)?)$/.exec(typeof value === 'string' ? value.trim() : '') ?? [];
  const read = number(width === undefined ? value : Number(width) / Number(height), 0.05, 20);
  return read === null ? null : String(Number(read.toFixed(4)));
}

/** The class `prefix-value`, if the value is one of a list. */
export function oneOf(prefix, value, list) {
  return list.includes(value) ? [`${prefix}-${value}`] : [];
}
