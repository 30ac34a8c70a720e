// From scores to probabilities, and from probabilities to one token: temperature, top-k and a die.

// Random numbers from 0 up to 1, always the same ones for a seed (mulberry32, by Tommy Ettinger, public domain).
export function dice(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

// The probability of each score at a temperature, among the topK highest (0: among all).
// counts says how many tokens share a score, for those that were recorded together; a share is for all of them.
//
// The temperature divides the scores before they become shares of 1 (softmax). Towards 0 only the highest
// one is left, so at 0 that is what happens; of equal ones the first.
export function probabilities(scores, { t = 1, topK = 0, counts = null } = {}) {
  const order = Array.from(scores, (_, i) => i).sort((a, b) => scores[b] - scores[a] || a - b);
  const shares = new Float64Array(scores.length);
  if (t === 0) {
    shares[order[0]] = 1;
    return shares;
  }
  const highest = scores[order[0]];
  let left = topK || Infinity;
  let sum = 0;
  for (const i of order) {
    const allowed = Math.min(left, counts?.[i] ?? 1);
    left -= allowed;
    shares[i] = allowed * Math.exp((scores[i] - highest) / t);
    sum += shares[i];
    if (left <= 0) break;
  }
  return shares.map((share) => share / sum);
}

// Draws one place: each as often as its probability says.
export function draw(shares, random) {
  let rest = random();
  let last = 0;
  for (let i = 0; i < shares.length; i++) {
    if (shares[i] === 0) continue;
    last = i;
    rest -= shares[i];
    if (rest < 0) return i;
  }
  return last; // what rounding has left over
}
