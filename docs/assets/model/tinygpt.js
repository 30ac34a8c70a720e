// The tiny GPT of exercise 4, in the browser. It does what lab_code/hpc_lab/04_tinygpt/model.py does, one
// character after the other, and keeps the keys and values of the characters that it has read.

export async function loadTinyGPT(folder = new URL("data/", import.meta.url)) {
  const answers = await Promise.all(["tinygpt.json", "tinygpt.bin"].map((file) => fetch(new URL(file, folder))));
  if (answers.some((answer) => !answer.ok)) throw new Error("The tiny GPT could not be loaded.");
  return new TinyGPT(await answers[0].json(), await answers[1].arrayBuffer());
}

// The matrices of the file, each as rows of 32-bit numbers. With "int8" every row has a factor in front.
function readMatrices({ numbers, matrices }, content) {
  if (numbers === "int8") content = multiplyRows(matrices, content);
  const result = {};
  let place = 0;
  for (const [name, height, width] of matrices) {
    result[name] = new Float32Array(content, 4 * place, height * width);
    place += height * width;
  }
  return result;
}

// Plain loops: this runs while the page waits, and calling a function for each number takes ten times as long.
function multiplyRows(matrices, content) {
  const rows = matrices.reduce((sum, [, height]) => sum + height, 0);
  const factors = new Float32Array(content, 0, rows);
  const values = new Int8Array(content, 4 * rows);
  const result = new Float32Array(values.length);
  let row = 0;
  let place = 0;
  for (const [, height, width] of matrices) {
    for (const end = row + height; row < end; row++) {
      for (const stop = place + width; place < stop; place++) result[place] = values[place] * factors[row];
    }
  }
  return result.buffer;
}

// Scales a vector so that its numbers have the size 1 on average (RMSNorm).
function normalize(x) {
  let sum = 0;
  for (const value of x) sum += value * value;
  const scale = 1 / Math.sqrt(sum / x.length + 2 ** -23);
  return x.map((value) => value * scale);
}

// A matrix times a vector. Four rows at once: each number of the vector is fetched once for all of them.
// What is 0 is left out: of the numbers behind the ReLU these are three of four.
function multiply(matrix, x) {
  const n = x.length;
  const used = new Uint16Array(n);
  let count = 0;
  for (let i = 0; i < n; i++) if (x[i] !== 0) used[count++] = i;
  const result = new Float32Array(matrix.length / n);
  let row = 0;
  for (; row + 3 < result.length; row += 4) {
    const one = row * n, two = one + n, three = two + n, four = three + n;
    let a = 0, b = 0, c = 0, d = 0;
    for (let k = 0; k < count; k++) {
      const i = used[k];
      const value = x[i];
      a += matrix[one + i] * value;
      b += matrix[two + i] * value;
      c += matrix[three + i] * value;
      d += matrix[four + i] * value;
    }
    result[row] = a;
    result[row + 1] = b;
    result[row + 2] = c;
    result[row + 3] = d;
  }
  for (; row < result.length; row++) {
    for (let i = 0; i < n; i++) result[row] += matrix[row * n + i] * x[i];
  }
  return result;
}

const add = (x, y) => x.map((value, i) => value + y[i]);

export class TinyGPT {
  constructor(head, content) {
    this.head = head; // the settings and how it was trained, as in tinygpt.json
    this.characters = head.characters;
    this.blockSize = head.block_size;
    this.width = head.n_embd / head.n_head; // of one head
    this.matrices = readMatrices(head, content);
    const points = this.width / 2;
    const angles = Float32Array.from({ length: head.block_size * points }, (_, i) =>
      Math.floor(i / points) * 100 ** -((i % points) / points));
    this.cos = angles.map(Math.cos);
    this.sin = angles.map(Math.sin);
    this.forget();
  }

  // Begins a new text.
  forget() {
    this.read = []; // the characters that it has read, as numbers
    const kept = () => Array.from({ length: this.head.n_layer }, () => new Float32Array(this.blockSize * this.head.n_embd));
    this.keys = kept();
    this.values = kept();
  }

  encode(text) {
    return Array.from(text, (character) => this.characters.indexOf(character)).filter((number) => number >= 0);
  }

  unknown(text) {
    return [...new Set(text)].filter((character) => !this.characters.includes(character));
  }

  // Where the context is full, forgets all and returns the second half of it, to be read again.
  makeRoom() {
    if (this.read.length < this.blockSize) return [];
    const kept = this.read.slice(-this.blockSize / 2);
    this.forget();
    return kept;
  }

  // Reads one more character and returns the scores of all that may come next.
  // shares, if given, gets what every head in every layer looks at: [layer][head][place].
  // Where its context is full, it goes on with the second half of it.
  next(character, shares = null) {
    for (const earlier of this.makeRoom()) this.next(earlier);
    const { matrices, head } = this;
    const vector = (name, number) => matrices[name].subarray(number * head.n_embd, (number + 1) * head.n_embd);
    let x = vector("here", character);
    if (this.read.length) x = add(x, vector("before", this.read.at(-1)));
    x = normalize(x);
    for (let layer = 0; layer < head.n_layer; layer++) {
      const part = (name) => matrices[`blocks.${layer}.${name}`];
      const looked = [];
      x = add(x, multiply(part("attention.output"), this.#attend(layer, normalize(x), looked)));
      x = add(x, multiply(part("narrow"), multiply(part("widen"), normalize(x)).map((value) => Math.max(0, value))));
      shares?.push(looked);
    }
    this.read.push(character);
    return multiply(matrices.scores, normalize(x));
  }

  // Each head asks with a query, finds the keys that fit, and takes over their values.
  #attend(layer, x, looked) {
    const part = (name) => multiply(this.matrices[`blocks.${layer}.attention.${name}`], x);
    const query = this.#rotate(part("query"));
    const keys = this.keys[layer]; // of all characters, one after the other
    const values = this.values[layer];
    const n = x.length;
    keys.set(this.#rotate(part("key")), this.read.length * n);
    values.set(part("value"), this.read.length * n);
    const result = new Float32Array(n);
    for (let start = 0; start < n; start += this.width) {
      const end = start + this.width;
      const shares = new Float32Array(this.read.length + 1); // there are no later characters yet: the mask
      let highest = -Infinity;
      for (let place = 0; place < shares.length; place++) {
        let score = 0;
        for (let i = start, at = place * n + start; i < end; i++, at++) score += query[i] * keys[at];
        shares[place] = score / Math.sqrt(this.width);
        highest = Math.max(highest, shares[place]);
      }
      let sum = 0;
      for (let place = 0; place < shares.length; place++) sum += shares[place] = Math.exp(shares[place] - highest);
      for (let place = 0; place < shares.length; place++) {
        const share = (shares[place] /= sum);
        for (let i = start, at = place * n + start; i < end; i++, at++) result[i] += share * values[at];
      }
      looked.push(shares);
    }
    return result;
  }

  // Turns each head's vector by an angle that grows with the place in the text.
  #rotate(x) {
    const points = this.width / 2;
    const first = this.read.length * points;
    const result = new Float32Array(x.length);
    for (let start = 0; start < x.length; start += this.width) {
      for (let i = 0; i < points; i++) {
        const cos = this.cos[first + i];
        const sin = this.sin[first + i];
        const a = x[start + i];
        const b = x[start + points + i];
        result[start + i] = a * cos - b * sin;
        result[start + points + i] = a * sin + b * cos;
      }
    }
    return result;
  }
}
