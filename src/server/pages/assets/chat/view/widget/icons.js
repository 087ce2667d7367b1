// Icons of components, by ChatKit's names.

import { h, set } from '../../../dom.js';

const SVG = 'http://www.w3.org/2000/svg';
const RING = 'M12 3.5a8.5 8.5 0 1 0 0 17 8.5 8.5 0 0 0 0-17z';
const PAGE = 'M6 3.5h8l4 4v13H6zM14 3.5v4h4';
const BOOK = 'M5 5.5A2 2 0 0 1 7 3.5h12v17H7a2 2 0 0 1-2-2zM5 18a2 2 0 0 1 2-2h12';
const PEN = 'M4 20h4L19 9l-4-4L4 16zM13.5 6.5l4 4';
const SPARK = 'M12 3.5 14 10l6.5 2-6.5 2-2 6.5-2-6.5L3.5 12 10 10z';
const STAR = 'm12 3.5 2.6 5.4 5.9.8-4.3 4.1 1 5.9-5.2-2.8-5.2 2.8 1-5.9-4.3-4.1 5.9-.8z';
const HEAD = 'M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM4.5 20.5c.7-4 3.6-6 7.5-6s6.8 2 7.5 6';
const DOT = 'M12 10.5a1.5 1.5 0 1 0 0 3 1.5 1.5 0 0 0 0-3z';

/** Path data in a 24 × 24 square. */
const PATHS = {
  agent: 'M6 8.5h12v9H6zM12 8.5V5M9.5 12.5v1M14.5 12.5v1M3.5 11.5v3M20.5 11.5v3M12 5V4',
  analytics: 'M4 20h16M7 16v-5M12 16V6M17 16v-8',
  atom: 'M12 10.8v2.4M4.5 12c0-2.2 3.4-4 7.5-4s7.5 1.8 7.5 4-3.4 4-7.5 4-7.5-1.8-7.5-4zM8.25 5.5c1.9-1.1 5.2.9 7.25 4.5s2.05 7.4.15 8.5-5.2-.9-7.25-4.5-2.05-7.4-.15-8.5z',
  batch: 'm12 3.5 8.5 4.25L12 12 3.5 7.75zM3.5 12 12 16.25 20.5 12M3.5 16.25 12 20.5l8.5-4.25',
  bolt: 'M13 3 5 13.5h6L10.5 21 19 10.5h-6z',
  'book-open': 'M12 6.5c-2-1.5-5-2-8.5-2v13c3.5 0 6.5.5 8.5 2 2-1.5 5-2 8.5-2v-13c-3.5 0-6.5.5-8.5 2zM12 6.5v13',
  'book-closed': BOOK,
  'book-clock': `${BOOK}M12 6.5v3.5l2 1.5`,
  bug: 'M8 9.5a4 4 0 0 1 8 0V15a4 4 0 0 1-8 0zM8 12.5H4M16 12.5h4M8.5 8 5.5 5.5M15.5 8l3-2.5M8.5 17l-3 2.5M15.5 17l3 2.5M12 10v8.5',
  calendar: 'M4 6h16v14H4zM4 10.5h16M8.5 3.5V8M15.5 3.5V8',
  chart: 'M4 4v16h16M8 14.5l3.5-4 3 2.5L19.5 7',
  check: 'm5 12.5 4.5 4.5L19 7',
  'check-circle': `${RING}M8 12.3l2.8 2.8L16 9.5`,
  'check-circle-filled': `${RING}M8 12.3l2.8 2.8L16 9.5`,
  'chevron-left': 'M15 5.5 8.5 12l6.5 6.5',
  'chevron-right': 'M9 5.5 15.5 12 9 18.5',
  'circle-question': `${RING}M9.6 9.5a2.4 2.4 0 1 1 3.4 2.3c-.7.4-1 .9-1 1.7M12 16.3v.2`,
  clock: `${RING}M12 7.5V12l3 2`,
  compass: `${RING}m3.7-12.2-2 5.5-5.5 2 2-5.5z`,
  confetti: 'm4 20 4.5-12 7.5 7.5zM14 4.5v2M19.5 10h-2M18.5 5.5l-3 3M13.5 9.5c1.5-.5 1.5-2 .5-3',
  cube: 'm12 3.5 8 4.5v8l-8 4.5L4 16V8zM4 8l8 4.5L20 8M12 12.5v8',
  desktop: 'M3.5 5h17v11h-17zM8.5 20h7M12 16v4',
  document: `${PAGE}M9 12h6M9 16h6`,
  dot: DOT,
  'dots-horizontal': 'M6 11a1 1 0 1 0 0 2 1 1 0 0 0 0-2zM12 11a1 1 0 1 0 0 2 1 1 0 0 0 0-2zM18 11a1 1 0 1 0 0 2 1 1 0 0 0 0-2z',
  'dots-vertical': 'M12 5a1 1 0 1 0 0 2 1 1 0 0 0 0-2zM12 11a1 1 0 1 0 0 2 1 1 0 0 0 0-2zM12 17a1 1 0 1 0 0 2 1 1 0 0 0 0-2z',
  'empty-circle': RING,
  'external-link': 'M13.5 4.5h6v6M19.5 4.5 11 13M10 6H5v13h13v-5',
  globe: `${RING}M3.5 12h17M12 3.5c5 4.5 5 12.5 0 17-5-4.5-5-12.5 0-17z`,
  keys: 'M8.5 19.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9zM11.7 11.8 19.5 4M16 7.5l3 3',
  lab: 'M9.5 3.5h5M10.5 3.5v6L5 19.5h14L13.5 9.5v-6M7.5 15h9',
  images: 'M7 4h13.5v12H7zM17 16v4H3.5V8H7M7 13.5l4-4 5 6',
  info: `${RING}M12 11v5.5M12 7.7v.2`,
  lifesaver: `${RING}M12 8.5a3.5 3.5 0 1 0 0 7 3.5 3.5 0 0 0 0-7zM6 6l3.5 3.5M18 6l-3.5 3.5M6 18l3.5-3.5M18 18l-3.5-3.5`,
  lightbulb: 'M9 17c0-2-3-3.5-3-7a6 6 0 0 1 12 0c0 3.5-3 5-3 7zM9.5 20.5h5',
  mail: 'M3.5 5.5h17v13h-17zM3.5 7l8.5 6.5L20.5 7',
  'map-pin': 'M12 21c-4-4.5-6.5-7.5-6.5-11a6.5 6.5 0 0 1 13 0c0 3.5-2.5 6.5-6.5 11zM12 7.8a2.2 2.2 0 1 0 0 4.4 2.2 2.2 0 0 0 0-4.4z',
  maps: 'm3.5 6.5 5.5-2 6 2 5.5-2v13l-5.5 2-6-2-5.5 2zM9 4.5v13M15 6.5v13',
  mobile: 'M7 3.5h10v17H7zM11 17.5h2',
  name: 'M3.5 6h17v12h-17zM8.5 12a1.5 1.5 0 1 0 0-3 1.5 1.5 0 0 0 0 3zM6 15.5c.5-1.3 1.3-2 2.5-2s2 .7 2.5 2M14 10h4M14 13.5h4',
  notebook: 'M6 3.5h13v17H6zM4 7.5h4M4 12h4M4 16.5h4',
  'notebook-pencil': 'M12 20.5H6v-17h13V9M4 7.5h4M4 12h4M4 16.5h4M14 20v-2.5l5-5 2.5 2.5-5 5z',
  'page-blank': PAGE,
  phone: 'M5 4h4l1.5 4.5L8 10.5c1 2.5 3 4.5 5.5 5.5l2-2.5L20 15v4c0 .7-.5 1-1 1C11 20 4 13 4 5c0-.5.3-1 1-1z',
  play: 'M7 4.5v15l12-7.5z',
  plus: 'M12 5v14M5 12h14',
  profile: HEAD,
  'profile-card': 'M3.5 5h17v14h-17zM12 12a2.3 2.3 0 1 0 0-4.6 2.3 2.3 0 0 0 0 4.6zM7.5 16.5c.7-1.8 2.3-2.7 4.5-2.7s3.8.9 4.5 2.7',
  reload: 'M4 12a8 8 0 1 0 2.6-5.9M4 4v4.5h4.5',
  star: STAR,
  'star-filled': STAR,
  search: 'M10.5 4a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13zM15.3 15.3l5.2 5.2',
  sparkle: SPARK,
  'sparkle-double': 'M10 6.5 11.5 12l5.5 1.5-5.5 1.5L10 20.5 8.5 15 3 13.5 8.5 12zM18 3.5l.7 2.3 2.3.7-2.3.7L18 9.5l-.7-2.3L15 6.5l2.3-.7z',
  'square-code': 'M4 4h16v16H4zM10 9l-3 3 3 3M14 9l3 3-3 3',
  'square-image': 'M4 4h16v16H4zM4 16l4.5-4.5L16 20M15 9.5v.2',
  'square-text': 'M4 4h16v16H4zM8 9h8M8 12.5h8M8 16h5',
  suitcase: 'M3.5 8h17v12h-17zM9 8V4.5h6V8M3.5 13h17',
  'settings-slider': 'M4 8h8M17 8h3M4 16h3M12 16h8M14.5 5.5a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5zM9.5 13.5a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5z',
  user: HEAD,
  wreath: 'M8 4.5C4.5 7.5 4 13 7 17c1.3 1.7 3 2.7 5 3.5 2-.8 3.7-1.8 5-3.5 3-4 2.5-9.5-1-12.5M5.5 9.5l3 1.5M6.5 14.5l3.5-.5M18.5 9.5l-3 1.5M17.5 14.5l-3.5-.5',
  write: PEN,
  'write-alt': PEN,
  'write-alt2': `${PEN}M13 20.5h7`,
};
/** Filled icons. */
const FILLED = ['dot', 'dots-horizontal', 'dots-vertical', 'star-filled', 'play'];
/** Names from other icon sets for the same icons. */
const OTHER = {
  'arrow-right': 'chevron-right', 'bar-chart': 'analytics', bell: 'info', briefcase: 'suitcase', 'chart-line': 'chart', 'check-circle-2': 'check-circle',
  'circle-check': 'check-circle', code: 'square-code', file: 'page-blank', 'file-text': 'document', 'help-circle': 'circle-question', home: 'cube', image: 'square-image',
  key: 'keys', map: 'maps', package: 'cube', pencil: 'write', 'refresh-cw': 'reload', settings: 'settings-slider', smartphone: 'mobile', sparkles: 'sparkle', zap: 'bolt',
};

/** The element of an icon that may change or be absent. */
export class IconHolder {
  constructor() {
    this.path = document.createElementNS(SVG, 'path');
    const svg = document.createElementNS(SVG, 'svg');
    for (const [key, value] of Object.entries({ viewBox: '0 0 24 24', class: 'icon', 'aria-hidden': 'true' })) svg.setAttribute(key, value);
    svg.append(this.path);
    this.element = h('span', { class: 'w-icon', hidden: true }, svg);
  }

  /** @param {unknown} name no icon if it is not a string; a dot if it is unknown */
  show(name) {
    const isNamed = typeof name === 'string' && name !== '';
    set(this.element, 'hidden', !isNamed);
    if (!isNamed || name === this.name) return;
    this.name = name;
    const plain = name.replace(/^(?:lucide|vendor):/, '');
    const key = Object.hasOwn(OTHER, plain) ? OTHER[plain] : plain;
    const known = Object.hasOwn(PATHS, key) ? key : 'dot';
    set(this.path, 'd', PATHS[known]);
    set(this.path, 'fill', FILLED.includes(known) ? 'currentcolor' : null);
  }
}
