// Calculates the geometry of the curve. Pure.

/** Space for the labels around the drawing. */
const MARGIN = { top: 14, right: 16, bottom: 30, left: 42 };

/**
 * @param {{epoch: number, score: number}[]} epochs in order
 * @param {{score: number} | null} seed
 * @param {{width: number, height: number, last: number}} room `last`: the last planned epoch
 */
export function layout(epochs, seed, { width, height, last }) {
  const scores = [...epochs.map(({ score }) => score), ...(seed ? [seed.score] : [])];
  const [low, high] = bounds(scores);
  const end = Math.max(last, ...epochs.map(({ epoch }) => epoch), 1);
  const x = (epoch) => MARGIN.left + (epoch / end) * (width - MARGIN.left - MARGIN.right);
  const y = (score) => MARGIN.top + ((high - score) / (high - low)) * (height - MARGIN.top - MARGIN.bottom);
  const points = epochs.map(({ epoch, score }) => ({ epoch, score, x: x(epoch), y: y(score) }));
  const start = seed && points.length > 0 ? [{ x: x(0), y: y(seed.score) }] : [];
  return {
    width,
    height,
    left: MARGIN.left,
    right: width - MARGIN.right,
    bottom: height - MARGIN.bottom,
    points,
    path: [...start, ...points].map(({ x, y }, at) => `${at === 0 ? 'M' : 'L'}${round(x)} ${round(y)}`).join(' '),
    seed: seed ? y(seed.score) : null,
    rows: steps(low, high, 0.1, 6).map((score) => ({ score, y: y(score) })),
    columns: steps(0, end, 1, 8).map((epoch) => ({ epoch, x: x(epoch) })),
  };
}

/** The score range to show, in tenths: 0 to 1 without scores, else the part that contains them. */
function bounds(scores) {
  if (scores.length === 0) return [0, 1];
  const low = Math.max(0, Math.floor((Math.min(...scores) - 0.05) * 10) / 10);
  const high = Math.min(1, Math.ceil((Math.max(...scores) + 0.05) * 10) / 10);
  return high - low >= 0.2 ? [low, high] : [Math.max(0, high - 0.2), Math.max(high, 0.2)];
}

/** Multiples of a step between two numbers; the step grows until there are at most about `most` of them. */
function steps(low, high, step, most) {
  let wide = step;
  for (let factor = 2; (high - low) / wide > most; factor += 1) wide = step * factor;
  const found = [];
  for (let at = Math.ceil(low / wide - 1e-9); at * wide <= high + 1e-9; at += 1) found.push(round(at * wide));
  return found;
}

function round(number) {
  return Math.round(number * 100) / 100;
}
