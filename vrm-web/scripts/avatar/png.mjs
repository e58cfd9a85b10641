/**
 * PNG files. The compression is our own, small and plain, because the bytes of a library's change
 * with its version and the avatar must come out the same everywhere.
 */

const LENGTHS = [3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258];
const LENGTH_BITS = [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0];
const DISTANCES = Array.from({ length: 30 }, (_, k) => (k < 4 ? k + 1 : ((2 + (k & 1)) << ((k >> 1) - 1)) + 1));
const DISTANCE_BITS = Array.from({ length: 30 }, (_, k) => (k < 4 ? 0 : (k >> 1) - 1));

class Bits {
  bytes = [];
  #held = 0;
  #count = 0;

  put(value, bits) {
    for (let k = 0; k < bits; k++) {
      this.#held |= ((value >>> k) & 1) << this.#count;
      if (++this.#count === 8) this.align();
    }
  }

  /** Codes go in with their highest bit first. */
  code(value, bits) {
    for (let k = bits - 1; k >= 0; k--) this.put((value >>> k) & 1, 1);
  }

  align() {
    if (this.#count === 0) return;
    this.bytes.push(this.#held);
    this.#held = 0;
    this.#count = 0;
  }
}

/** The fixed codes of deflate. */
function symbol(bits, value) {
  if (value < 144) bits.code(0x30 + value, 8);
  else if (value < 256) bits.code(0x190 + value - 144, 9);
  else if (value < 280) bits.code(value - 256, 7);
  else bits.code(0xc0 + value - 280, 8);
}

const lastNotAbove = (list, value) => {
  let k = list.length - 1;
  while (list[k] > value) k--;
  return k;
};

/** Zlib's format: one block, repeats found through the last places of each three bytes. */
export function zlib(data) {
  const bits = new Bits();
  bits.bytes.push(0x78, 0x01);
  bits.put(1, 1);
  bits.put(1, 2);
  const heads = new Map();
  const before = new Int32Array(data.length).fill(-1);
  const note = (at) => {
    if (at + 2 >= data.length) return;
    const key = data[at] | (data[at + 1] << 8) | (data[at + 2] << 16);
    before[at] = heads.get(key) ?? -1;
    heads.set(key, at);
  };
  for (let at = 0; at < data.length; ) {
    note(at);
    let [length, from] = [0, 0];
    for (let seen = before[at], tries = 24; seen >= 0 && at - seen <= 32768 && tries > 0; seen = before[seen], tries--) {
      let same = 0;
      while (same < 258 && at + same < data.length && data[seen + same] === data[at + same]) same++;
      if (same > length) [length, from] = [same, at - seen];
    }
    if (length < 3) {
      symbol(bits, data[at++]);
      continue;
    }
    const l = length === 258 ? 28 : lastNotAbove(LENGTHS.slice(0, 28), length);
    symbol(bits, 257 + l);
    bits.put(length - LENGTHS[l], LENGTH_BITS[l]);
    const d = lastNotAbove(DISTANCES, from);
    bits.code(d, 5);
    bits.put(from - DISTANCES[d], DISTANCE_BITS[d]);
    for (let k = 1; k < length; k++) note(at + k);
    at += length;
  }
  symbol(bits, 256);
  bits.align();
  let [a, b] = [1, 0];
  for (const byte of data) {
    a = (a + byte) % 65521;
    b = (b + a) % 65521;
  }
  return Buffer.from([...bits.bytes, b >> 8, b & 255, a >> 8, a & 255]);
}

const TABLE = Array.from({ length: 256 }, (_, n) => {
  let c = n;
  for (let k = 0; k < 8; k++) c = c & 1 ? 0xedb88320 ^ (c >>> 1) : c >>> 1;
  return c >>> 0;
});
const crc = (data) => {
  let c = 0xffffffff;
  for (const byte of data) c = TABLE[(c ^ byte) & 255] ^ (c >>> 8);
  return (c ^ 0xffffffff) >>> 0;
};

function chunk(name, data) {
  const body = Buffer.concat([Buffer.from(name, "latin1"), data]);
  const out = Buffer.alloc(body.length + 8);
  out.writeUInt32BE(data.length, 0);
  body.copy(out, 4);
  out.writeUInt32BE(crc(body), body.length + 4);
  return out;
}

/** A picture from `color(u, v)`, which gives `[r, g, b]` or `[r, g, b, a]` from 0 to 255; v runs down. */
export function picture(width, height, color, alpha = false) {
  const depth = alpha ? 4 : 3;
  const line = width * depth;
  const rows = Buffer.alloc((line + 1) * height);
  let above = new Uint8Array(line);
  for (let y = 0; y < height; y++) {
    const here = new Uint8Array(line);
    for (let x = 0; x < width; x++) {
      const rgb = color((x + 0.5) / width, (y + 0.5) / height);
      for (let k = 0; k < depth; k++) here[x * depth + k] = Math.min(255, Math.max(0, Math.round(rgb[k] ?? 255)));
    }
    // Filter "up": what changes from the line above.
    rows[y * (line + 1)] = 2;
    for (let k = 0; k < line; k++) rows[y * (line + 1) + 1 + k] = (here[k] - above[k]) & 255;
    above = here;
  }
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, alpha ? 6 : 2, 0, 0, 0], 8);
  return Buffer.concat([Buffer.from("89504e470d0a1a0a", "hex"), chunk("IHDR", head), chunk("IDAT", zlib(rows)), chunk("IEND", Buffer.alloc(0))]);
}
