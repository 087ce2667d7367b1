// Colours of components: names from a closed list, or numbers that are parsed and formatted again. Component text never becomes
// CSS.

/** Colour names by use; their values are in widget/frame.css. */
const TOKENS = {
  text: ['prose', 'primary', 'emphasis', 'secondary', 'tertiary', 'success', 'warning', 'danger'],
  surface: ['surface', 'surface-secondary', 'surface-tertiary', 'surface-elevated', 'surface-elevated-secondary'],
  line: ['default', 'subtle', 'strong'],
  chart: ['blue', 'purple', 'orange', 'green', 'red', 'yellow', 'pink'],
};

/** Hue and chroma of primitive colours such as `red-500`. */
const HUES = { gray: [90, 0.006], red: [25, 0.2], orange: [50, 0.17], yellow: [90, 0.15], green: [150, 0.15], blue: [255, 0.17], purple: [300, 0.18], pink: [0, 0.18] };
/** Lightness and chroma factor, by shade. */
const SHADES = {
  25: [0.985, 0.06], 50: [0.97, 0.12], 75: [0.955, 0.18], 100: [0.935, 0.26], 200: [0.88, 0.45], 300: [0.81, 0.7], 400: [0.72, 0.95], 500: [0.63, 1],
  600: [0.55, 0.98], 700: [0.47, 0.88], 800: [0.4, 0.75], 900: [0.33, 0.6], 950: [0.25, 0.45], 1000: [0.18, 0.3],
};
const PLAIN = ['white', 'black', 'transparent'];

/**
 * @param {unknown} value a name, `#hex`, `rgb(…)`, or `{light, dark}` of these
 * @param {'text' | 'surface' | 'line' | 'chart'} use
 * @returns {string | null} CSS; null if the value is not a colour
 */
export function color(value, use) {
  if (value !== null && typeof value === 'object') {
    const [light, dark] = [single(value.light, use), single(value.dark, use)];
    return light !== null && dark !== null ? `light-dark(${light}, ${dark})` : (light ?? dark);
  }
  return single(value, use);
}

function single(value, use) {
  if (typeof value !== 'string' || value.length > 64) return null;
  const name = value.trim().toLowerCase();
  if (TOKENS[use].includes(name)) return `var(--w-${use}-${name})`;
  if (PLAIN.includes(name)) return name;
  return primitive(name) ?? alpha(name) ?? hex(name) ?? rgb(name);
}

function primitive(name) {
  const [, hue, shade] = /^([a-z]+)-(\d{2,4})$/.exec(name) ?? [];
  if (!Object.hasOwn(HUES, hue ?? '') || !Object.hasOwn(SHADES, shade)) return null;
  const [[angle, chroma], [lightness, part]] = [HUES[hue], SHADES[shade]];
  return `oklch(${lightness} ${Number((chroma * part).toFixed(3))} ${angle})`;
}

/** `alpha-10`: the text colour with 10 % opacity. */
function alpha(name) {
  const percent = Number(/^alpha-(\d{1,2})$/.exec(name)?.[1] ?? NaN);
  return Number.isNaN(percent) ? null : `color-mix(in srgb, var(--ink) ${percent}%, transparent)`;
}

function hex(name) {
  return /^#(?:[0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})$/.test(name) ? name : null;
}

function rgb(name) {
  const parts = /^rgba?\(\s*(\d{1,3})\s*[, ]\s*(\d{1,3})\s*[, ]\s*(\d{1,3})\s*(?:[,/]\s*(\d*\.?\d+)(%?)\s*)?\)$/.exec(name);
  if (!parts) return null;
  const [red, green, blue] = parts.slice(1, 4).map((part) => Math.min(Number(part), 255));
  const opacity = parts[4] === undefined ? 1 : Math.min(Number(parts[4]) / (parts[5] ? 100 : 1), 1);
  return `rgb(${red} ${green} ${blue} / ${opacity})`;
}
