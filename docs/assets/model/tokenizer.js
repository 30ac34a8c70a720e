// Cuts a text into tokens, as the models' own tokenizers do it: byte pair encoding.
//
// First rules cut the text into pieces: words with the space before them, numbers, signs. Then the bytes of
// each piece are merged, two neighbors at a time. Which two: those whose merged token comes first
// in the vocabulary. (Sennrich and others 2016, arxiv.org/abs/1508.07909)
//
// Bytes are kept as strings whose characters are the bytes, 0 to 255: JavaScript finds strings fastest.

// The rules are those of the tokenizer.json of each model, written for JavaScript: \s means other characters
// here, so it is spelled out, and so is "s in any case", to which an old long s belongs.
const QWEN = /'(?:[sSſ]|[tT]|[rR][eE]|[vV][eE]|[mM]|[lL][lL]|[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\p{White_Space}\p{L}\p{N}]+[\r\n]*|\p{White_Space}*[\r\n]+|\p{White_Space}+(?!\P{White_Space})|\p{White_Space}+/gu;
const SMOLLM2 = /'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?[^\p{White_Space}\p{L}\p{N}]+|\p{White_Space}+(?!\P{White_Space})|\p{White_Space}+/gu;

// The models' tokenizers normalize (NFC) by the tables of Unicode 9: a mark that is younger stays where it stands.
// Browsers know more, so these marks, and what they would combine with, are kept out of it.
const AFTER_UNICODE_9 = /([\u07fd\u0897-\u089f\u08ca-\u08d3\u09fe\u0c3c\u0d3b\u0d3c\u0eba\u1715\u1abf-\u1add\u1ae0-\u1aeb\u1df6-\u1dfa\ua82c\u{105d2}\u{105da}\u{10d24}-\u{10d27}\u{10d69}-\u{10d6d}\u{10eab}\u{10eac}\u{10efa}\u{10efb}\u{10efd}-\u{10eff}\u{10f46}-\u{10f50}\u{10f82}-\u{10f85}\u{11070}\u{1133b}\u{113b8}\u{113bb}\u{113c2}\u{113c9}\u{113ce}-\u{113d0}\u{1145e}\u{11839}\u{1183a}\u{11930}\u{1193d}\u{1193e}\u{11943}\u{119e0}\u{11a34}\u{11a47}\u{11a99}\u{11d42}\u{11d44}\u{11d45}\u{11d97}\u{11f41}\u{11f42}\u{1611e}-\u{16120}\u{16129}\u{1612f}\u{16d67}\u{16ff0}\u{16ff1}\u{1e08f}\u{1e130}-\u{1e136}\u{1e2ae}\u{1e2ec}-\u{1e2ef}\u{1e4ec}-\u{1e4ef}\u{1e5ee}\u{1e5ef}\u{1e6e3}\u{1e6e6}\u{1e6ee}\u{1e6ef}\u{1e6f5}])/u;
const normalizeAsUnicode9 = (text) => text.split(AFTER_UNICODE_9).map((part) => part.normalize("NFC")).join("");

export const VOCABULARIES = {
  // first: the id of the first token in the file. Before it are special ones, which no text is cut into.
  "qwen2.5": { name: "Qwen2.5", first: 0, normalize: normalizeAsUnicode9, pieces: (text) => text.match(QWEN) ?? [] },
  "smollm2": {
    name: "SmolLM2",
    first: 17,
    normalize: (text) => text,
    // Each digit is alone, and the rules see only what is between two of them.
    pieces: (text) => text.split(/(\p{N})/u).flatMap((part, i) => (i % 2 ? part : part.match(SMOLLM2) ?? [])),
  },
};

const utf8 = new TextEncoder();
const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function bytesOf(text) {
  let bytes = "";
  for (const byte of utf8.encode(text)) bytes += String.fromCharCode(byte);
  return bytes;
}

// The text of some bytes, or null where they are no whole characters.
export function textOf(bytes) {
  try {
    return strict.decode(Uint8Array.from(bytes, (byte) => byte.charCodeAt(0)));
  } catch {
    return null;
  }
}

export async function loadTokenizer(name) {
  const answer = await fetch(new URL(`data/${name}.vocabulary`, import.meta.url));
  if (!answer.ok) throw new Error(`The vocabulary of ${VOCABULARIES[name].name} could not be loaded (${answer.status}).`);
  const unpacked = answer.body.pipeThrough(new DecompressionStream("gzip"));
  const content = new Uint8Array(await new Response(unpacked).arrayBuffer());
  return new Tokenizer(VOCABULARIES[name], readTokens(content));
}

// The file has: how many tokens, the length of each, and their bytes one after the other.
function readTokens(content) {
  const count = new DataView(content.buffer).getUint32(0, true);
  let bytes = "";
  for (let i = 4 + count; i < content.length; i += 8192) bytes += String.fromCharCode(...content.subarray(i, i + 8192));
  const tokens = [];
  for (let i = 0, start = 0; i < count; i++) {
    const end = start + content[4 + i];
    tokens.push(bytes.slice(start, end));
    start = end;
  }
  return tokens;
}

export class Tokenizer {
  // tokens: strings of bytes, in the order in which they were made.
  constructor(vocabulary, tokens) {
    this.vocabulary = vocabulary;
    this.tokens = tokens;
    this.ranks = new Map(tokens.map((token, rank) => [token, rank]));
    this.known = new Map(); // the tokens of pieces that were seen already
    const missing = Array.from({ length: 256 }, (_, byte) => String.fromCharCode(byte)).filter((byte) => !this.ranks.has(byte));
    this.missing = new Set(missing); // a vocabulary may lack bytes that its makers never met; they are left out
  }

  encode(text) {
    const ranks = [];
    for (const piece of this.vocabulary.pieces(this.vocabulary.normalize(text.toWellFormed()))) {
      for (const rank of this.#ranksOf(piece)) ranks.push(rank);
    }
    return ranks.map((rank) => rank + this.vocabulary.first);
  }

  bytes(id) {
    return this.tokens[id - this.vocabulary.first];
  }

  decode(ids) {
    return textOf(ids.map((id) => this.bytes(id)).join(""));
  }

  // Puts together the tokens that only together are whole characters: [{ bytes: [of each token], ids }].
  groups(ids, limit = Infinity) {
    const groups = [];
    for (const id of ids) {
      const bytes = this.bytes(id);
      const goesOn = (bytes.charCodeAt(0) & 0xc0) === 0x80; // a byte from the middle of a character
      if (!goesOn || groups.length === 0) {
        if (groups.length === limit) break;
        groups.push({ bytes: [], ids: [] });
      }
      groups.at(-1).bytes.push(bytes);
      groups.at(-1).ids.push(id);
    }
    return groups;
  }

  #ranksOf(piece) {
    let ranks = this.known.get(piece);
    if (ranks === undefined) {
      let bytes = bytesOf(piece);
      if (this.missing.size) bytes = [...bytes].filter((byte) => !this.missing.has(byte)).join("");
      ranks = merge(bytes, this.ranks);
      if (this.known.size > 50_000) this.known.clear();
      if (piece.length < 100) this.known.set(piece, ranks);
    }
    return ranks;
  }
}

// Merges neighbors until no two of them make a token, and returns the ranks of what is left.
// A token begins at i and ends where the next one begins. All merges that are possible wait in a heap, the
// first to do on top: so a piece of n bytes takes n log n steps, even one of 100,000 letters.
function merge(bytes, ranks) {
  const n = bytes.length;
  const next = Int32Array.from({ length: n }, (_, i) => i + 1);
  const previous = Int32Array.from({ length: n }, (_, i) => i - 1);
  const merged = new Int32Array(n).fill(-1); // the rank of what the token at i makes with the one after it
  const heap = new Heap();

  const look = (i) => {
    const middle = next[i];
    merged[i] = middle < n ? ranks.get(bytes.slice(i, next[middle])) ?? -1 : -1;
    if (merged[i] >= 0) heap.push(merged[i] * 2 ** 32 + i); // lowest rank first, then from left to right
  };

  for (let i = 0; i < n; i++) look(i);
  while (heap.size) {
    const top = heap.pop();
    const i = top % 2 ** 32;
    if (merged[i] !== Math.floor(top / 2 ** 32)) continue; // one of the two was merged with another by now
    const middle = next[i];
    next[i] = next[middle];
    if (next[i] < n) previous[next[i]] = i;
    merged[middle] = -1;
    look(i);
    if (i > 0) look(previous[i]);
  }
  const result = [];
  for (let i = 0; i < n; i = next[i]) result.push(ranks.get(bytes.slice(i, next[i])));
  return result;
}

// Numbers, of which the smallest is always found at once.
class Heap {
  #numbers = [];

  get size() {
    return this.#numbers.length;
  }

  push(number) {
    const numbers = this.#numbers;
    let i = numbers.length;
    while (i > 0) {
      const parent = (i - 1) >> 1;
      if (numbers[parent] <= number) break;
      numbers[i] = numbers[parent];
      i = parent;
    }
    numbers[i] = number;
  }

  pop() {
    const numbers = this.#numbers;
    const top = numbers[0];
    const last = numbers.pop();
    const n = numbers.length;
    let i = 0;
    while (n > 0) {
      let child = 2 * i + 1;
      if (child + 1 < n && numbers[child + 1] < numbers[child]) child++;
      if (child >= n || last <= numbers[child]) {
        numbers[i] = last;
        break;
      }
      numbers[i] = numbers[child];
      i = child;
    }
    return top;
  }
}
