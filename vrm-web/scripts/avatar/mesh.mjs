/** Surfaces: points with texture places, triangles, the bones that move them and the morphs. */
import { add, cross, norm, scale, sub } from "./math.mjs";

const { sin, cos, hypot, PI } = Math;

export class Mesh {
  material = "";
  positions = [];
  uvs = [];
  indices = [];
  /** Filled by `finish`, unless a part knows its own better. */
  normals = null;
  /** Point to `[[bone, weight], …]`. */
  bones = null;
  /** Per morph a list of `[dx, dy, dz]` for each point; none for parts that no morph moves. */
  morphs = null;
  morphNormals = null;

  /**
   * `rows` × `columns` quads of points from `at(v, u)`, both from 0 to 1. `closed` joins the last
   * column to the first. Seen from outside, u runs to the right and v downwards.
   */
  static grid(rows, columns, closed, at) {
    const mesh = new Mesh();
    const wide = columns + 1;
    for (let row = 0; row <= rows; row++) {
      for (let column = 0; column <= columns; column++) {
        const [v, u] = [row / rows, column / columns];
        mesh.positions.push(at(v, closed && column === columns ? 0 : u));
        mesh.uvs.push([u, v]);
      }
    }
    for (let row = 0; row < rows; row++) {
      for (let column = 0; column < columns; column++) {
        const a = row * wide + column;
        mesh.triangle(a, a + wide, a + 1);
        mesh.triangle(a + 1, a + wide, a + wide + 1);
      }
    }
    return mesh;
  }

  /** A triangle without area is left out. */
  triangle(a, b, c) {
    const [p, q, r] = [this.positions[a], this.positions[b], this.positions[c]];
    if (hypot(...cross(sub(q, p), sub(r, p))) > 1e-10) this.indices.push(a, b, c);
  }

  /** Turns the surface inside out. */
  flip() {
    for (let i = 0; i < this.indices.length; i += 3) {
      [this.indices[i + 1], this.indices[i + 2]] = [this.indices[i + 2], this.indices[i + 1]];
    }
    if (this.normals) this.normals = this.normals.map((n) => scale(n, -1));
    return this;
  }

  /** The volume inside, below zero when a closed surface faces inward. */
  volume() {
    let sum = 0;
    for (let i = 0; i < this.indices.length; i += 3) {
      const [a, b, c] = [0, 1, 2].map((k) => this.positions[this.indices[i + k]]);
      const n = cross(b, c);
      sum += a[0] * n[0] + a[1] * n[1] + a[2] * n[2];
    }
    return sum / 6;
  }

  outward() {
    return this.volume() < 0 ? this.flip() : this;
  }

  /** The number of edges that belong to one triangle only, points at the same place taken as one. */
  openEdges() {
    const ids = new Map();
    const id = this.positions.map((p) => {
      const key = place(p);
      if (!ids.has(key)) ids.set(key, ids.size);
      return ids.get(key);
    });
    const edges = new Map();
    for (let i = 0; i < this.indices.length; i += 3) {
      for (let k = 0; k < 3; k++) {
        const [a, b] = [id[this.indices[i + k]], id[this.indices[i + ((k + 1) % 3)]]];
        if (a === b) continue;
        const key = a < b ? `${a}-${b}` : `${b}-${a}`;
        edges.set(key, (edges.get(key) ?? 0) + 1);
      }
    }
    return [...edges.values()].filter((count) => count === 1).length;
  }

  /** A sheet gets a back of its own, `thick` behind it, so that its material need not be drawn on both sides. */
  backed(thick = 0.0006) {
    this.finish();
    const back = new Mesh();
    back.positions = this.positions.map((p, k) => add(p, scale(this.normals[k], -thick)));
    back.uvs = this.uvs.map((uv) => [...uv]);
    back.indices = [...this.indices];
    back.flip();
    this.normals = null;
    return Mesh.join(this, back);
  }

  map(change) {
    this.positions = this.positions.map(change);
    return this;
  }

  uv(change) {
    this.uvs = this.uvs.map((uv, k) => change(uv, this.positions[k]));
    return this;
  }

  with(material, bones) {
    this.material = material;
    this.bones = bones;
    return this;
  }

  /** The other side's twin: `name` of bones goes from left to right. */
  mirror() {
    const twin = new Mesh();
    const flipX = ([x, y, z]) => [-x, y, z];
    twin.material = this.material;
    twin.positions = this.positions.map(flipX);
    twin.uvs = this.uvs.map((uv) => [...uv]);
    twin.indices = [...this.indices];
    twin.flip();
    twin.normals = this.normals?.map(flipX) ?? null;
    const { bones } = this;
    if (bones) twin.bones = (p) => bones(flipX(p)).map(([name, weight]) => [otherSide(name), weight]);
    return twin;
  }

  /** Joins parts of one material and one way of hanging on bones. */
  static join(...parts) {
    const all = new Mesh();
    all.material = parts[0].material;
    all.bones = parts[0].bones;
    for (const part of parts) {
      const base = all.positions.length;
      all.positions.push(...part.positions);
      all.uvs.push(...part.uvs);
      all.indices.push(...part.indices.map((index) => index + base));
    }
    return all;
  }

  /** Normals from the faces around each point, by angle; points at the same place share theirs. */
  finish() {
    if (this.normals) return this;
    const sums = new Map();
    for (let i = 0; i < this.indices.length; i += 3) {
      const corner = [0, 1, 2].map((k) => this.positions[this.indices[i + k]]);
      const face = norm(cross(sub(corner[1], corner[0]), sub(corner[2], corner[0])));
      for (let k = 0; k < 3; k++) {
        const [p, q, r] = [corner[k], corner[(k + 1) % 3], corner[(k + 2) % 3]];
        const [e, f] = [norm(sub(q, p)), norm(sub(r, p))];
        const angle = Math.acos(Math.min(1, Math.max(-1, e[0] * f[0] + e[1] * f[1] + e[2] * f[2])));
        const key = place(p);
        sums.set(key, add(sums.get(key) ?? [0, 0, 0], scale(face, angle)));
      }
    }
    this.normals = this.positions.map((p) => norm(sums.get(place(p)) ?? [0, 0, 1]));
    return this;
  }
}

const place = (p) => p.map((x) => Math.round(x * 2e5)).join();

const otherSide = (name) =>
  name.startsWith("left") ? `right${name.slice(4)}` : name.startsWith("right") ? `left${name.slice(5)}` : name.replace(/(Left|Right)/, (side) => (side === "Left" ? "Right" : "Left"));

/**
 * A tube along `way(t)`. `size(t)` gives half-axes `[wide, deep]`, `side(t)` the wide direction,
 * `shape(angle)` scales the outline. Ends are closed where the size is 0 there.
 */
export function tube(way, size, { rows = 10, columns = 12, side = () => [1, 0, 0], outline = null } = {}) {
  const step = 1e-3;
  return Mesh.grid(rows, columns, true, (v, u) => {
    const ahead = norm(sub(way(Math.min(1, v + step)), way(Math.max(0, v - step))));
    const deep = norm(cross(ahead, side(v)));
    const wide = cross(deep, ahead);
    const [w, d] = size(v);
    const angle = u * 2 * PI;
    const [x, y] = outline ? outline(angle, v) : [cos(angle), sin(angle)];
    return add(way(v), add(scale(wide, w * x), scale(deep, d * y)));
  }).outward();
}

export function ellipsoid(center, radii, rows = 12, columns = 16) {
  return Mesh.grid(rows, columns, true, (v, u) => {
    const [down, around] = [v * PI, u * 2 * PI];
    return add(center, [radii[0] * sin(down) * sin(around), radii[1] * cos(down), radii[2] * sin(down) * cos(around)]);
  });
}
