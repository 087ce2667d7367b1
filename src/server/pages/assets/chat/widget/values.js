// Converts numbers of components to CSS. Ignores values that are not exactly a number or a length, and clamps large ones.

/** The spacing unit, in px. */
const UNIT = 4;
/** Maximum numbers, by unit. */
const SIZES = { px: 2000, rem: 120, em: 120, ch: 200, '%': 100 };
const SPACINGS = { px: 160, rem: 10, em: 10, ch: 20, '%': 50 };
const KEYWORDS = ['auto', 'min-content', 'max-content', 'fit-content'];

/** Clamps a number; null if the value is not a number. */
export function number(value, least, most) {
  const read = typeof value === 'string' && /^-?\d+(?:\.\d+)?$/.test(value.trim()) ? Number(value) : value;
  return typeof read === 'number' && Number.isFinite(read) ? Math.min(Math.max(read, least), most) : null;
}

/** Clamps and rounds a number; null if the value is not a number. */
export function whole(value, least, most) {
  const read = number(value, least, most);
  return read === null ? null : Math.round(read);
}

/** Converts a width or height; a plain number is in px. */
export function size(value) {
  const px = number(value, 0, SIZES.px);
  if (px !== null) return `${px}px`;
  return KEYWORDS.includes(value) ? value : length(value, SIZES);
}

/** Converts a distance; a plain number is in units of 4 px. */
export function spacing(value) {
  const units = number(value, 0, SPACINGS.px / UNIT);
  return units === null ? length(value, SPACINGS) : `${units * UNIT}px`;
}

function length(value, most) {
  const [, digits, unit] = /^(\d+(?:\.\d+)?)(px|rem|em|ch|%)$/.exec(typeof value === 'string' ? value.trim() : '') ?? [];
  return digits === undefined ? null : `${Math.min(Number(digits), most[unit])}${unit}`;
}

/**
 * Reads four sides from one value for all sides, or from an object with `x`, `y` and sides.
 * @param {unknown} value
 * @param {(value: unknown) => unknown} read returns null for invalid values
 * @returns {Record<string, unknown>} only the sides with a value
 */
export function sides(value, read) {
  const own = value !== null && typeof value === 'object' ? value : { x: value, y: value };
  const all = { top: read(own.top ?? own.y), right: read(own.right ?? own.x), bottom: read(own.bottom ?? own.y), left: read(own.left ?? own.x) };
  return Object.fromEntries(Object.entries(all).filter(([, side]) => side !== null));
}

/** Converts `flex` to CSS: a factor, or factors with a size. */
export function flex(value) {
  const factor = number(value, 0, 100);
  if (factor !== null) return `${factor} 1 0%`;
  if (value === 'auto' || value === 'none') return value;
  const [, grow, shrink, basis = '0%'] = /^(\d{1,3}) (\d{1,3})(?: (auto|0|\S+))?$/.exec(typeof value === 'string' ? value : '') ?? [];
  if (grow === undefined) return null;
  const read = basis === '0' || basis === 'auto' ? basis : size(basis);
  return read === null ? null : `${Math.min(grow, 100)} ${Math.min(shrink, 100)} ${read}`;
}

/** Converts `aspectRatio` to CSS: a number, or two as in `16 / 9`. */
export function ratio(value) {
  const [, width, height] = /^(\d+(?:\.\d+)?)\s*[/:]\s*(\d+(?:\.\d+)?)$/.exec(typeof value === 'string' ? value.trim() : '') ?? [];
  const read = number(width === undefined ? value : Number(width) / Number(height), 0.05, 20);
  return read === null ? null : String(Number(read.toFixed(4)));
}

/** Returns the class `prefix-value` if the list contains the value. */
export function oneOf(prefix, value, list) {
  return list.includes(value) ? [`${prefix}-${value}`] : [];
}
