/** Surfaces: grids of points, joined to triangles with smooth normals. Metres; y up, she faces +z. */

const { sin, cos, hypot, PI } = Math;

export const lerp = (a, b, t) => a + (b - a) * t;
export const clamp = (x, low = 0, high = 1) => Math.min(Math.max(x, low), high);
export const smooth = (from, to, x) => {
  const t = clamp((x - from) / (to - from));
  return t * t * (3 - 2 * t);
};
export const add = (a, b) => [a[0] + b[0], a[1] + b[1], a[2] + b[2]];
export const sub = (a, b) => [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
export const scale = (a, s) => [a[0] * s, a[1] * s, a[2] * s];
export const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
export const norm = (a) => {
  const length = hypot(...a) || 1;
  return scale(a, 1 / length);
};

/** A value between the points of a table of [position, value], smoothly. */
export function along(table, x) {
  let last = table[0];
  for (const point of table) {
    if (x <= point[0]) {
      const span = point[0] - last[0];
      return span <= 0 ? point[1] : lerp(last[1], point[1], smooth(0, 1, (x - last[0]) / span));
    }
    last = point;
  }
  return last[1];
}

/** A part of the figure: points, triangles, and where needed bones and morphs. */
export class Part {
  positions = [];
  indices = [];
  normals = null;

  /** `rows` × `columns` points from `at(v, u)`, both from 0 to 1; `closed` joins the last column to the first. */
  static grid(rows, columns, closed, at) {
    const part = new Part();
    for (let row = 0; row <= rows; row++) {
      for (let column = 0; column < columns + (closed ? 0 : 1); column++) {
        part.positions.push(at(row / rows, column / columns));
      }
    }
    const wide = columns + (closed ? 0 : 1);
    const point = (row, column) => row * wide + (closed ? column % columns : column);
    for (let row = 0; row < rows; row++) {
      for (let column = 0; column < columns; column++) {
        const [a, b, c, d] = [point(row, column), point(row, column + 1), point(row + 1, column), point(row + 1, column + 1)];
        part.triangle(a, c, b);
        part.triangle(b, c, d);
      }
    }
    return part;
  }

  triangle(a, b, c) {
    const [p, q, r] = [this.positions[a], this.positions[b], this.positions[c]];
    if (hypot(...cross(sub(q, p), sub(r, p))) > 1e-12) this.indices.push(a, b, c);
  }

  /** Turns the surface inside out. */
  flip() {
    for (let i = 0; i < this.indices.length; i += 3) {
      [this.indices[i + 1], this.indices[i + 2]] = [this.indices[i + 2], this.indices[i + 1]];
    }
    return this;
  }

  /** Makes a closed surface face outward, by the sign of its volume. */
  outward() {
    let volume = 0;
    for (let i = 0; i < this.indices.length; i += 3) {
      const [a, b, c] = [0, 1, 2].map((k) => this.positions[this.indices[i + k]]);
      const n = cross(b, c);
      volume += a[0] * n[0] + a[1] * n[1] + a[2] * n[2];
    }
    return volume < 0 ? this.flip() : this;
  }

  map(change) {
    this.positions = this.positions.map(change);
    return this;
  }

  mirror() {
    const other = new Part();
    other.positions = this.positions.map(([x, y, z]) => [-x, y, z]);
    other.indices = [...this.indices];
    return other.flip();
  }

  static join(...parts) {
    const all = new Part();
    for (const part of parts) {
      const base = all.positions.length;
      all.positions.push(...part.positions);
      all.indices.push(...part.indices.map((index) => index + base));
    }
    return all;
  }

  /** Normals from the faces around each point; points at the same place share theirs. */
  smoothNormals() {
    const sums = new Map();
    const key = (p) => p.map((x) => Math.round(x * 1e5)).join();
    for (let i = 0; i < this.indices.length; i += 3) {
      const [a, b, c] = [0, 1, 2].map((k) => this.positions[this.indices[i + k]]);
      const face = cross(sub(b, a), sub(c, a));
      for (const p of [a, b, c]) sums.set(key(p), add(sums.get(key(p)) ?? [0, 0, 0], face));
    }
    return this.positions.map((p) => norm(sums.get(key(p)) ?? [0, 0, 1]));
  }
}

/** A tube along `path(t)`, with half-axes `[wide, deep]` from `size(t)`; `side(t)` is the wide direction. */
export function tube(path, size, { rows = 10, columns = 12, side = () => [1, 0, 0] } = {}) {
  return Part.grid(rows, columns, true, (v, u) => {
    const step = 1e-3;
    const ahead = norm(sub(path(Math.min(1, v + step)), path(Math.max(0, v - step))));
    const deep = norm(cross(ahead, side(v)));
    const wide = cross(deep, ahead);
    const [w, d] = size(v);
    const angle = u * 2 * PI;
    return add(path(v), add(scale(wide, w * cos(angle)), scale(deep, d * sin(angle))));
  }).outward();
}

export function ellipsoid(center, radii, rows = 12, columns = 16) {
  return Part.grid(rows, columns, true, (v, u) => {
    const [down, around] = [v * PI, u * 2 * PI];
    return add(center, [radii[0] * sin(down) * sin(around), radii[1] * cos(down), radii[2] * sin(down) * cos(around)]);
  });
}

/** Rings around the y axis: `at(y)` gives `[rx, rz, cz]`; from the top down. */
export function rings(top, bottom, rows, columns, at, wave = () => 1) {
  return Part.grid(rows, columns, true, (v, u) => {
    const y = lerp(top, bottom, v);
    const [rx, rz, cz = 0] = at(y);
    const angle = u * 2 * PI;
    const w = wave(y, angle);
    return [rx * w * sin(angle), y, cz + rz * w * cos(angle)];
  });
}
