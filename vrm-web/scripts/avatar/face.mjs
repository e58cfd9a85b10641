/**
 * The face: skin with openings for eyes and mouth, and everything in and on it. Each point knows its
 * place in every pose of `moods.mjs`; the difference to its place at rest is the morph.
 *
 * Skin is cut in a plane (angle around the head × distance from the chin) with rings of points around
 * the openings that follow their edges less and less, and is laid on the head's shape from there: a
 * lid that closes slides over the head's own curve and can't leave it.
 */
import { Mesh } from "./mesh.mjs";
import { add, arch, bell, clamp, cross, dot, lerp, norm, scale, smooth, sub } from "./math.mjs";
import { delaunay, inside } from "./delaunay.mjs";
import { angleOf, CHIN, CROWN, faceNormal, headNormal, heightAt, LENGTH, lengthAt, onFace, onHead, widthAt } from "./headshape.mjs";
import { EYE, eyeNormal, lid, onEye } from "./eyeshape.mjs";
import { MORPHS, poseOf } from "./moods.mjs";
import { HEAD, fromHead } from "./skeleton.mjs";

const { sin, cos, abs, hypot, PI, sign } = Math;

export const MORPH_NAMES = Object.keys(MORPHS);
const AT_REST = poseOf();
const POSES = MORPH_NAMES.map((name) => poseOf(name));
const sideOf = (side) => (side > 0 ? "left" : "right");
const onHeadBone = () => [["head", 1]];

// ---- poses of the skin ---------------------------------------------------------------------------

export const MOUTH = { x: 0, y: 0.0218 };

/** A point of the mouth's edge: s from her right (−1) to her left corner (1). */
function lips(which, s, m) {
  const bend = m.corner * (s * s - 0.3) + m.skew * s + m.wave * sin(s * 1.5 * PI);
  const opening = which === "upper" ? m.up * arch(s, 2 + 3 * m.flat, 0.6) : -m.down * arch(s, 2 + 3 * m.flat, 0.55 - 0.1 * m.flat);
  return [MOUTH.x + m.x + m.w * s, MOUTH.y + m.y + bend + opening];
}

/** What moves skin by its place alone: the chin falls with the jaw, cheeks rise with a smile, lips pout. */
function shifted([x, y, z], pose) {
  const { jaw, pout } = pose.mouth;
  const fall = jaw * smooth(0.026, 0.004, y) * bell(x / 0.07) * smooth(0.0, 0.04, z);
  const raise = pose.cheek * 0.0024 * bell(hypot((abs(x) - 0.05) / 0.02, (y - 0.045) / 0.014));
  const forward = pout * bell(hypot(x / 0.014, (y - MOUTH.y) / 0.011)) + raise * 0.7;
  return [x, y + raise - fall, z + forward];
}
const skin = (x, y, pose, off = 0) => shifted(onFace(x, y, off), pose);

const EYE_STEPS = 22;
/** The edge of an eye, counter-clockwise from the inner corner over the upper lid, of her left eye. */
const eyeEdge = Array.from({ length: EYE_STEPS * 2 }, (_, k) => ({
  which: k <= EYE_STEPS ? "upper" : "lower",
  s: -cos((k / EYE_STEPS) * PI),
}));
const eyePoint = ({ which, s }, side, pose) => [side * (EYE.x + EYE.w * s), EYE.y + lid(which, s, pose[sideOf(side)].lids)];

const MOUTH_STEPS = 16;
const mouthEdge = Array.from({ length: MOUTH_STEPS * 2 }, (_, k) => ({
  which: k <= MOUTH_STEPS ? "upper" : "lower",
  s: -cos((k / MOUTH_STEPS) * PI),
}));
const mouthPoint = ({ which, s }, pose) => lips(which, s, pose.mouth);
/** The closed mouth has no area, so skin is cut around an open one. */
const CUT = { mouth: { ...AT_REST.mouth, up: 0.003, down: 0.003 } };

function outwardOf(polygon, k) {
  const [before, after] = [polygon[(k + polygon.length - 1) % polygon.length], polygon[(k + 1) % polygon.length]];
  const [dx, dy] = sub(after, before);
  const n = norm([-dy, dx]);
  const center = polygon.reduce((sum, p) => add(sum, p), [0, 0]).map((x) => x / polygon.length);
  const away = sub(polygon[k], center);
  return n[0] * away[0] + n[1] * away[1] < 0 ? scale(n, -1) : n;
}

/** Rings around an opening: `[distance from its edge, how far it follows the edge]`. */
const EYE_RINGS = [[0, 1], [0.002, 0.94], [0.0046, 0.72], [0.0085, 0.36]];
const MOUTH_RINGS = [[0, 1], [0.002, 0.93], [0.0055, 0.75], [0.01, 0.45]];

function ringPoints(edge, rings, atRest, cut, inPose) {
  const restPolygon = edge.map((point) => atRest(point));
  const cutPolygon = edge.map((point) => cut(point));
  const points = [];
  for (const [off, follow] of rings) {
    edge.forEach((point, k) => {
      const out = scale(outwardOf(cutPolygon, k), off);
      const rest = add(restPolygon[k], out);
      const move = (pose) => add(rest, scale(sub(inPose(point, pose), restPolygon[k]), follow));
      points.push({ cut: add(cutPolygon[k], out), rest, move });
    });
  }
  return { points, cutPolygon };
}

/** Where skin is cut: the angle around the head in metres, and the distance from the chin. */
const ROUND = 0.1;
const plane = ([x, y]) => [angleOf(x, y) * ROUND, lengthAt(y)];

function headSkin() {
  const openings = [1, -1].map((side) => {
    const ring = ringPoints(eyeEdge, EYE_RINGS, (p) => eyePoint(p, side, AT_REST), (p) => eyePoint(p, side, AT_REST), (p, pose) => eyePoint(p, side, pose));
    return { ...ring, zone: ringZone(ring.cutPolygon, 0.0115) };
  });
  const mouth = ringPoints(mouthEdge, MOUTH_RINGS, (p) => mouthPoint(p, AT_REST), (p) => mouthPoint(p, CUT), mouthPoint);
  openings.push({ ...mouth, zone: ringZone(mouth.cutPolygon, 0.0135) });

  // Points in the plane, and what makes their place.
  const flat = [];
  const places = [];
  const bulk = (angle, length) => {
    const y = heightAt(length);
    const x = widthAt(y) * sin(angle);
    if (cos(angle) > 0 && openings.some(({ zone }) => inside([x, y], zone))) return;
    flat.push([angle * ROUND, length]);
    places.push({ rest: cos(angle) > 0 ? [x, y] : null, angle, y });
  };
  const rows = 40;
  for (let row = 0; row <= rows; row++) {
    const length = (row / rows) * LENGTH;
    const y = heightAt(length);
    const fine = y > -0.011 && y < 0.12;
    const columns = fine ? 76 : 44;
    for (let column = 0; column <= columns; column++) {
      const u = (column + (row % 2 && column < columns && column > 0 ? 0.5 : 0)) / columns;
      const angle = (Math.min(u, 1) * 2 - 1) * PI;
      // Under hair fewer will do.
      const seen = abs(angle) < 1.5 && y < 0.2;
      if (!seen && column < columns && column > 0 && (column % (fine ? 4 : 3) || row % 2) && row > 0 && row < rows) continue;
      bulk(angle, length);
    }
  }
  // The nose is small and needs more.
  for (let j = 0; j < 14; j++) {
    for (let i = -3; i <= 3; i++) {
      const y = 0.0365 + j * 0.003;
      bulk(angleOf((i + (j % 2) * 0.5) * 0.0031, y), lengthAt(y) + 1e-5);
    }
  }
  for (const { points } of openings) {
    for (const { cut, rest, move } of points) {
      flat.push(plane(cut));
      places.push({ rest, move });
    }
  }
  // A breath of disorder keeps the grid from having four points on one circle.
  const shaken = flat.map(([x, y], k) => [x + 1e-7 * sin(k * 12.9), y + 1e-7 * sin(k * 78.2)]);
  const holes = openings.map(({ cutPolygon }) => cutPolygon.map(plane));

  const mesh = new Mesh();
  const at = (place, pose) => {
    if (!place.rest) return onHead(place.angle, place.y);
    const [x, y] = place.move ? place.move(pose) : place.rest;
    return skin(x, y, pose);
  };
  const facing = (place, pose) => {
    if (!place.rest) return headNormal(place.angle, place.y);
    const [x, y] = place.move ? place.move(pose) : place.rest;
    return place.angle !== undefined ? headNormal(place.angle, place.y) : faceNormal(x, y);
  };
  mesh.positions = places.map((place) => at(place, AT_REST));
  mesh.normals = places.map((place) => facing(place, AT_REST));
  mesh.uvs = places.map((place) => faceUv(place.rest ?? [sign(place.angle) * 0.118, place.y]));
  for (const [a, b, c] of delaunay(shaken)) {
    const center = scale(add(add(flat[a], flat[b]), flat[c]), 1 / 3);
    if (holes.some((hole) => inside(center, hole))) continue;
    mesh.triangle(a, b, c);
  }
  mesh.morphs = POSES.map((pose) => places.map((place, k) => sub(at(place, pose), mesh.positions[k])));
  mesh.morphNormals = POSES.map((pose) => places.map((place, k) => (place.move ? sub(facing(place, pose), mesh.normals[k]) : [0, 0, 0])));
  return mesh.with("face", onHeadBone);
}

const ringZone = (polygon, off) => polygon.map((point, k) => add(point, scale(outwardOf(polygon, k), off)));
export const faceUv = ([x, y]) => [0.5 + x / 0.24, (0.245 - y) / 0.265];

// ---- what moves on and in it ---------------------------------------------------------------------

/** A grid whose points are `place(u, v, pose)`; u runs to her left, v downwards, seen from in front. */
function moving(material, columns, rows, place, { facing = null, bones = onHeadBone } = {}) {
  const mesh = new Mesh();
  const points = [];
  for (let j = 0; j <= rows; j++) for (let i = 0; i <= columns; i++) points.push([i / columns, j / rows]);
  mesh.positions = points.map(([u, v]) => place(u, v, AT_REST));
  mesh.uvs = points.map(([u, v]) => [u, v]);
  for (let j = 0; j < rows; j++) {
    for (let i = 0; i < columns; i++) {
      const a = j * (columns + 1) + i;
      const [b, c, d] = [a + 1, a + columns + 1, a + columns + 2];
      // Some have no area at rest, so no triangle is left out here.
      mesh.indices.push(a, c, b, b, c, d);
    }
  }
  mesh.normals = mesh.positions.map((p, k) => (facing ? facing(p, points[k]) : faceNormal(p[0], clamp(p[1], CHIN, CROWN))));
  mesh.morphs = POSES.map((pose) => points.map(([u, v], k) => sub(place(u, v, pose), mesh.positions[k])));
  return faceOut(mesh).with(material, bones);
}

/** Turns the triangles to the side to which the normals point, at rest and in the poses together. */
function faceOut(mesh) {
  let sum = 0;
  for (const deltas of [null, ...mesh.morphs]) {
    for (let i = 0; i < mesh.indices.length; i += 3) {
      const corners = [0, 1, 2].map((k) => mesh.indices[i + k]);
      const [a, b, c] = corners.map((k) => (deltas ? add(mesh.positions[k], deltas[k]) : mesh.positions[k]));
      sum += dot(cross(sub(b, a), sub(c, a)), mesh.normals[corners[0]]);
    }
  }
  if (sum < 0) for (let i = 0; i < mesh.indices.length; i += 3) [mesh.indices[i], mesh.indices[i + 1]] = [mesh.indices[i + 1], mesh.indices[i]];
  return mesh;
}

/** A line on the skin: `line(u, pose)` gives `[x, y, half thickness]`, raised by `off` and in its middle by `ridge`. */
function stroke(material, columns, side, line, off = 0.0008, ridge = 0.0004) {
  return moving(material, columns, 2, (u, v, pose) => {
    const [x, y, thick] = line(u, pose);
    return skin(side * x, y + lerp(thick, -thick, v), pose, off + (v === 0.5 ? ridge : 0));
  });
}

function eye(side) {
  const name = sideOf(side);
  const mirrorX = ([x, y, z]) => [side * x, y, z];
  const ball = (p) => mirrorX(eyeNormal(mirrorX(p)));
  const lidsOf = (pose) => pose[name].lids;
  /** A disc on the ball: `spot(pose)` gives middle and radii, `outline` the radius around. */
  const disc = (material, off, rings, columns, spot, { bones, outline = () => 1 } = {}) =>
    moving(material, columns, rings, (u, v, pose) => {
      const { x, y, rx, ry, sunk = 0 } = spot(pose);
      // u around, v from the rim to the middle; counter-clockwise from above seen from in front.
      const angle = -u * 2 * PI * side;
      const r = (1 - v) * outline(angle);
      return mirrorX(onEye(EYE.x + x + side * rx * r * sin(angle) * -1, EYE.y + y + ry * r * cos(angle), off - sunk));
    }, { facing: ball, bones }).uv(([u, v]) => {
      const angle = -u * 2 * PI * side;
      return [0.5 - 0.5 * (1 - v) * sin(angle), 0.5 - 0.5 * (1 - v) * cos(angle)];
    });
  const turning = () => [[`${name}Eye`, 1]];
  const glint = () => [[`${name}Eye`, 0.6], ["head", 0.4]];
  const iris = (pose) => {
    const { dx, dy, size } = pose[name].iris;
    return { x: -0.0014 + side * dx, y: 0.0012 + dy, size };
  };
  // Lights lie on the same side of both eyes.
  const light = (lx, ly, r, more = () => ({})) => (pose) => {
    const spot = iris(pose);
    return { x: spot.x + side * lx, y: spot.y + ly, rx: r[0], ry: r[1], ...more(pose) };
  };
  const upper = (s, pose) => EYE.y + lid("upper", s, lidsOf(pose));
  const lower = (s, pose) => EYE.y + lid("lower", s, lidsOf(pose));
  const browOf = (pose) => pose[name].brow;
  return [
    moving("eyeWhite", 12, 8, (u, v) => {
      const [s, t] = [lerp(-1, 1, u), lerp(1, -1, v)];
      // A square bent to a disc, larger than the opening.
      const [x, y] = [s * Math.sqrt(1 - (t * t) / 2), t * Math.sqrt(1 - (s * s) / 2)];
      return mirrorX(onEye(EYE.x + side * (EYE.w + 0.0055) * x, EYE.y + 0.002 + 0.031 * y));
    }, { facing: ball }),
    disc("iris", 0.0004, 4, 26, (pose) => {
      const { x, y, size } = iris(pose);
      return { x, y, rx: 0.0222 * size, ry: 0.0264 * size };
    }, { bones: turning }),
    disc("glint", 0.0009, 1, 16, light(-0.0068, 0.0098, [0.0064, 0.0076]), { bones: glint }),
    disc("glint", 0.0009, 1, 12, light(0.0072, -0.0098, [0.0031, 0.0036]), { bones: glint }),
    disc("glint", 0.0009, 1, 10, light(-0.0094, -0.0012, [0.0015, 0.0018]), { bones: glint }),
    disc("glint", 0.0012, 1, 32, light(0.0058, 0.0068, [0.0086, 0.0102], (pose) => (pose.spark > 0 ? {} : { rx: 0.0001, ry: 0.0001, sunk: 0.0016 })), {
      bones: glint,
      outline: (angle) => 0.22 + 0.78 * abs(cos(2 * angle)) ** 5,
    }),
    // The edge of the lids, turned inwards.
    ...["upper", "lower"].map((which) =>
      moving("rim", EYE_STEPS, 1, (u, v, pose) => {
        const s = -cos(u * PI);
        const y = EYE.y + lid(which, s, lidsOf(pose));
        const [x, , z] = skin(side * (EYE.x + EYE.w * s), y, pose);
        if (v === 0) return [x, y, z];
        // Back to the ball, so that nothing is seen between.
        const [px, py] = [side * (EYE.x + (EYE.w + 0.002) * s), y + (which === "upper" ? 0.0012 : -0.0012)];
        return [px, py, onEye(abs(px), py)[2] - 0.0006];
      }, { facing: () => [0, which === "upper" ? -1 : 1, 0] }),
    ),
    // The upper lash: a dark shelf that swings out beyond the outer corner.
    moving("lash", 26, 3, (u, v, pose) => {
      const s = lerp(-0.94, 1.22, u);
      const on = Math.min(s, 1);
      const beyond = Math.max(0, s - 1) / 0.22;
      const points = 0.0013 * bell((s - 0.72) / 0.045) + 0.0019 * bell((s - 0.95) / 0.05);
      const thick = (lerp(0.0005, 0.007, smooth(-1, 0.2, s)) + points) * (1 - beyond ** 1.4);
      const open = 1 - clamp(lidsOf(pose).top);
      const y = upper(on, pose) + beyond * lerp(-0.0012, 0.0042, open) - 0.0005;
      const x = EYE.x + EYE.w * on + beyond * 0.0058;
      const off = [0.0002, 0.0024, 0.0022, 0.0004][Math.round(v * 3)];
      return skin(side * x, y + thick * (1 - v), pose, off * (1 - 0.6 * beyond) * lerp(0.25, 1, smooth(-1, 0, s)));
    }),
    stroke("lashSoft", 14, side, (u, pose) => {
      const s = lerp(0.05, 1.02, u);
      return [EYE.x + EYE.w * Math.min(s, 1) + Math.max(0, s - 1) * 0.05, lower(Math.min(s, 1), pose) - 0.0002, 0.0007 * sin(u * PI) ** 0.6];
    }),
    stroke("crease", 16, side, (u, pose) => {
      const s = lerp(-0.62, 0.92, u);
      const rest = EYE.y + lid("upper", s, AT_REST[name].lids);
      return [EYE.x + EYE.w * s, rest + 0.0086 + 0.55 * (upper(s, pose) - rest), 0.0006 * sin(u * PI) ** 0.7];
    }, 0.0004, 0.0002),
    stroke("brow", 16, side, (u, pose) => {
      const { y, tilt, bend, near } = browOf(pose);
      const inner = 1 - u;
      const x = EYE.x + lerp(-0.0222, 0.0235, u) - near * inner;
      const rest = 0.0345 + 0.0052 * sin(PI * (u * 0.85 + 0.06)) - 0.0022 * u;
      return [x, EYE.y + rest + y + tilt * (inner - 0.42) + bend * sin(PI * u), 0.0031 * (0.45 + 0.55 * smooth(0, 0.2, u)) * (1 - u ** 3.2) + 0.0002];
    }, 0.0016, 0.0006),
    decal("blush", side, [0.061, 0.045], [0.023, 0.014], (pose) => pose.blush),
  ];
}

/** A patch that lies close under the skin until an expression lifts it out, soon enough to be whole at half of it. */
function decal(material, side, [cx, cy], [rx, ry], amount) {
  return moving(material, 8, 6, (u, v, pose) => {
    const shown = amount(pose);
    const [x, y] = [side * cx + rx * lerp(-1, 1, u), cy + ry * lerp(1, -1, v)];
    return skin(x, y, pose, shown > 0 ? 0.0004 + 0.001 * shown : -0.0006);
  });
}

function mouthParts() {
  const inner = (depth, spread) => (s, which, pose) => {
    const m = pose.mouth;
    const [x, y] = lips(which, s, m);
    const [cx, cy] = lips("upper", 0, m);
    const middle = cy - (m.up + m.down) / 2;
    const [px, py] = [cx + (x - cx) * spread, middle + (y - middle) * spread];
    const [sx, sy, sz] = skin(x, y, pose);
    return [px + (sx - x), py + (sy - y), sz - depth];
  };
  const levels = [[0, 1], [0.0025, 1.03], [0.008, 1.1], [0.018, 0.95], [0.022, 0]];
  const bag = moving("mouth", MOUTH_STEPS * 2, levels.length - 1, (u, v, pose) => {
    const turn = u * 2;
    const which = turn <= 1 ? "upper" : "lower";
    const [depth, spread] = levels[Math.round(v * (levels.length - 1))];
    return inner(depth, spread)(-cos(turn * PI), which, pose);
  }, { facing: (p, [u]) => norm([0, u <= 0.5 ? -1 : 1, 0.3]) });
  const teeth = moving("tooth", 12, 2, (u, v, pose) => {
    const m = pose.mouth;
    const s = lerp(-0.8, 0.8, u);
    const [x, y] = lips("upper", s, m);
    const [, sy, sz] = skin(x, y, pose);
    return [x, sy + 0.0012 - v * (0.0012 + m.teeth), sz - 0.0034];
  }, { facing: () => [0, 0, 1] });
  const tongue = moving("tongue", 12, 6, (u, v, pose) => {
    const m = pose.mouth;
    const [cx, cy] = lips("lower", 0, m);
    const [, sy, sz] = skin(cx, cy, pose);
    const wide = m.w * 0.66;
    const high = 0.0008 + m.down * (0.42 + 0.25 * m.tongue);
    const s = lerp(-1, 1, u);
    const dome = arch(s, 2.2, 0.5);
    const t = lerp(0, 1, v);
    // From behind over the top to the front edge.
    return [cx + wide * s, sy + 0.0006 + high * dome * sin((0.25 + 0.75 * t) * PI) - 0.001, sz - 0.014 + 0.0095 * t];
  }, { facing: () => norm([0, 0.6, 0.8]) });
  const line = (which, material, thick, from, to) =>
    stroke(material, 24, 1, (u, pose) => {
      const s = -cos(lerp(from, to, u) * PI);
      const [x, y] = lips(which, s, pose.mouth);
      return [x, y, thick * (0.42 + 0.58 * arch(s, 2, 0.5)) * arch(lerp(-1, 1, u), 8, 0.5)];
    }, 0.0006, 0.0003);
  return [bag, teeth, tongue, line("lower", "lipSoft", 0.0006, 0, 1), line("upper", "lip", 0.0008, 0, 1)];
}

function ear() {
  return Mesh.grid(10, 14, true, (v, u) => {
    const [down, around] = [v * PI, u * 2 * PI];
    const [x, y, z] = [sin(down) * sin(around), cos(down), sin(down) * cos(around)];
    const dent = x > 0 ? 1 - 0.55 * bell(hypot(y / 0.6, z / 0.55)) : 1;
    const lobe = 1 - 0.28 * smooth(0.2, -1, y);
    return [0.1 + 0.0085 * x * dent + 0.004 * z * -1, 0.07 + 0.0265 * y + 0.004 * -z, -0.006 + 0.0165 * z * lobe];
  }).uv(() => [0.02, 0.55]).with("face", onHeadBone);
}

/** Parts that morphs move, in the figure's places. */
export function face() {
  return [headSkin(), ...mouthParts(), ...eye(1), ...eye(-1), decal("gloom", 1, [0, 0.148], [0.082, 0.046], (pose) => pose.gloom)].map((mesh) => {
    mesh.morphs = mesh.morphs.map((deltas) => deltas.map((delta) => scale(delta, HEAD.size)));
    return mesh.map(fromHead);
  });
}
export function ears() {
  const left = ear();
  return [left, left.mirror()].map((mesh) => mesh.map(fromHead));
}
