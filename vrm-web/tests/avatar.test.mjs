/** The avatar's builder: mesh tools, and what the file must hold. */
import { readFileSync } from "node:fs";
import { inflateSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { avatar, expressions, META, parts } from "../scripts/avatar/avatar.mjs";
import { delaunay, inside } from "../scripts/avatar/delaunay.mjs";
import { EYE, lid, onEye } from "../scripts/avatar/eyeshape.mjs";
import { faceDepth } from "../scripts/avatar/headshape.mjs";
import { MORPH_NAMES } from "../scripts/avatar/face.mjs";
import { curve, dot } from "../scripts/avatar/math.mjs";
import { ellipsoid, Mesh, tube } from "../scripts/avatar/mesh.mjs";
import { poseOf } from "../scripts/avatar/moods.mjs";
import { picture, zlib } from "../scripts/avatar/png.mjs";
import { bones, CHAINS } from "../scripts/avatar/skeleton.mjs";
import { shares } from "../scripts/avatar/vrm.mjs";

const meshes = parts();
const all = meshes.flatMap(({ parts: list }) => list);
const file = avatar(meshes);
const json = JSON.parse(file.subarray(20, 20 + file.readUInt32LE(12)).toString());
const vrm = json.extensions.VRMC_vrm;

describe("mesh tools", () => {
  it("make closed surfaces that face outward", () => {
    const ball = ellipsoid([0.3, 0, 0], [1, 2, 1], 16, 24);
    expect(ball.openEdges()).toBe(0);
    expect(ball.volume()).toBeGreaterThan(0.95 * ((8 / 3) * Math.PI));
    expect(ball.volume()).toBeLessThan((8 / 3) * Math.PI);
    const bone = tube((t) => [0, t, 0], (t) => [Math.sin(t * Math.PI) * 0.2, Math.sin(t * Math.PI) * 0.2]);
    expect(bone.openEdges()).toBe(0);
    expect(bone.volume()).toBeGreaterThan(0);
    expect(bone.mirror().volume()).toBeCloseTo(bone.volume());
    expect(Mesh.grid(3, 3, false, (v, u) => [u, -v, 0]).openEdges()).toBe(12);
  });

  it("give smooth normals of length 1 along the surface's own", () => {
    const ball = ellipsoid([0, 0, 0], [1, 1, 1], 16, 24).finish();
    ball.normals.forEach((normal, k) => {
      expect(Math.hypot(...normal)).toBeCloseTo(1);
      expect(dot(normal, ball.positions[k])).toBeGreaterThan(0.98);
    });
  });

  it("back a sheet without pulling its normals together", () => {
    const sheet = Mesh.grid(2, 2, false, (v, u) => [u, -v, 0]).backed(0.01).finish();
    expect(sheet.normals.slice(0, 9).every(([, , z]) => z > 0.99)).toBe(true);
    expect(sheet.normals.slice(9).every(([, , z]) => z < -0.99)).toBe(true);
  });

  it("join points so that no circle holds another point", () => {
    const points = Array.from({ length: 40 }, (_, k) => [Math.sin(k * 12.9898), Math.sin(k * 78.233)]);
    const triangles = delaunay(points);
    for (const corners of triangles) {
      const [a, b, c] = corners.map((k) => points[k]);
      const area = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]);
      expect(area).toBeGreaterThan(0);
      for (const p of points) {
        const [m, n, o] = [a, b, c].map(([x, y]) => [x - p[0], y - p[1], (x - p[0]) ** 2 + (y - p[1]) ** 2]);
        const within = m[0] * (n[1] * o[2] - n[2] * o[1]) - m[1] * (n[0] * o[2] - n[2] * o[0]) + m[2] * (n[0] * o[1] - n[1] * o[0]);
        expect(within).toBeLessThan(1e-9);
      }
    }
    expect(inside([0.5, 0.5], [[0, 0], [1, 0], [1, 1], [0, 1]])).toBe(true);
    expect(inside([1.5, 0.5], [[0, 0], [1, 0], [1, 1], [0, 1]])).toBe(false);
  });

  it("draw curves through their points that do not swing over them", () => {
    const line = curve([[0, 0], [1, 1], [2, 1], [3, 0]]);
    for (const [x, y] of [[0, 0], [1, 1], [2, 1], [3, 0]]) expect(line(x)).toBeCloseTo(y);
    for (let x = 0; x <= 3; x += 0.05) expect(line(x)).toBeLessThanOrEqual(1 + 1e-12);
  });
});

describe("pictures", () => {
  it("come out of zlib as they went in", () => {
    const data = Buffer.from(Array.from({ length: 70_000 }, (_, k) => (k % 977 < 400 ? 7 : (k * k) >> 5) & 255));
    expect(inflateSync(zlib(data)).equals(data)).toBe(true);
    const png = picture(5, 4, (u, v) => [u * 255, v * 255, 9]);
    expect(png.subarray(1, 4).toString()).toBe("PNG");
    const rows = inflateSync(png.subarray(41, png.length - 16));
    expect([...rows.subarray(0, 4)]).toEqual([2, 26, 32, 9]);
  });
});

describe("face", () => {
  it("keeps the eyeball behind the lids wherever they are", () => {
    for (const name of [undefined, ...MORPH_NAMES]) {
      const { lids } = poseOf(name).left;
      for (let s = -1; s <= 1.001; s += 0.1) {
        for (const which of ["upper", "lower"]) {
          const [x, y] = [EYE.x + EYE.w * s, EYE.y + lid(which, s, lids)];
          expect(faceDepth(x, y) - onEye(x, y)[2]).toBeGreaterThan(0.001);
        }
      }
    }
  });

  it("closes both lids on one line in a blink", () => {
    const { lids } = poseOf("blinkLeft").left;
    for (let s = -1; s <= 1; s += 0.25) expect(lid("upper", s, lids)).toBeCloseTo(lid("lower", s, lids), 6);
    expect(poseOf("blinkLeft").right.lids.top).toBe(0);
  });

  it("moves something in every morph and leaves the back of the head alone", () => {
    const skin = all.find((part) => part.material === "face" && part.morphs);
    MORPH_NAMES.forEach((name, k) => {
      const moved = Math.max(...skin.morphs[k].map((delta) => Math.hypot(...delta)));
      expect(moved, name).toBeGreaterThan(0.002);
      expect(moved, name).toBeLessThan(0.05);
      skin.positions.forEach(([, , z], at) => {
        if (z < -0.02) expect(Math.hypot(...skin.morphs[k][at])).toBeLessThan(1e-6);
      });
    });
  });
});

describe("alice.vrm", () => {
  it("is what the script makes, the same each time", () => {
    expect(avatar().equals(file)).toBe(true);
    expect(readFileSync(new URL("../../assets/alice.vrm", import.meta.url)).equals(file)).toBe(true);
  });

  it("stays within 4 MB and 40,000 triangles", () => {
    expect(file.length).toBeLessThanOrEqual(4 * 1024 * 1024);
    const triangles = json.meshes.flatMap(({ primitives }) => primitives).reduce((sum, { indices }) => sum + json.accessors[indices].count / 3, 0);
    expect(triangles).toBeLessThanOrEqual(40_000);
    expect(triangles).toBe(all.reduce((sum, part) => sum + part.indices.length / 3, 0));
  });

  it("has finite places, normals of length 1 and weights that sum to 1 over bones it has", () => {
    const names = new Set(bones().list.map(([name]) => name));
    for (const part of all) {
      part.finish();
      part.positions.forEach((position, k) => {
        expect(position.every(Number.isFinite)).toBe(true);
        expect(Math.abs(Math.hypot(...part.normals[k]) - 1)).toBeLessThan(1e-6);
        const four = shares(part.bones(position));
        expect(four.reduce((sum, [, weight]) => sum + weight, 0)).toBe(255);
        for (const [name, weight] of four) {
          expect(names.has(name), `${name} of ${part.material}`).toBe(true);
          expect(weight).toBeGreaterThanOrEqual(0);
        }
      });
    }
  });

  it("has every humanoid bone but the jaw, each above its parent", () => {
    const digits = ["Thumb", "Index", "Middle", "Ring", "Little"].flatMap((digit) => (digit === "Thumb" ? ["Metacarpal", "Proximal", "Distal"] : ["Proximal", "Intermediate", "Distal"]).map((part) => digit + part));
    const sided = ["Eye", "Shoulder", "UpperArm", "LowerArm", "Hand", "UpperLeg", "LowerLeg", "Foot", "Toes", ...digits];
    const wanted = ["hips", "spine", "chest", "upperChest", "neck", "head", ...["left", "right"].flatMap((side) => sided.map((bone) => side + bone))];
    expect(Object.keys(vrm.humanoid.humanBones).sort()).toEqual(wanted.sort());
    const parents = new Map(json.nodes.flatMap((node, k) => (node.children ?? []).map((child) => [child, k])));
    for (const { node } of Object.values(vrm.humanoid.humanBones)) {
      let root = node;
      while (parents.has(root)) root = parents.get(root);
      expect(json.nodes[root].name).toBe("hips");
    }
  });

  it("can show every emotion, every vowel and both eyes", () => {
    const { preset, custom } = expressions();
    expect(Object.keys(preset).sort()).toEqual(["aa", "angry", "blink", "blinkLeft", "blinkRight", "ee", "happy", "ih", "neutral", "oh", "ou", "relaxed", "sad", "surprised"]);
    expect(Object.keys(custom).sort()).toEqual(["confused", "disgusted", "excited", "fearful", "loving", "shy", "thinking"]);
    for (const list of [vrm.expressions.preset, vrm.expressions.custom]) {
      for (const { morphTargetBinds } of Object.values(list)) for (const { index } of morphTargetBinds) expect(MORPH_NAMES[index]).toBeDefined();
    }
  });

  it("carries springs, colliders, outlines and its whole licence", () => {
    const { springs, colliders, colliderGroups } = json.extensions.VRMC_springBone;
    expect(springs.length).toBe(CHAINS.length);
    for (const { joints, colliderGroups: used } of springs) {
      expect(joints.length).toBeGreaterThanOrEqual(3);
      for (const group of used) expect(colliderGroups[group]).toBeDefined();
    }
    expect(colliders.length).toBeGreaterThanOrEqual(9);
    const outlined = json.materials.filter(({ extensions }) => extensions.VRMC_materials_mtoon.outlineWidthFactor > 0);
    expect(outlined.map(({ name }) => name)).toEqual(["Face", "Skin", "Hair", "Cloth"]);
    expect(vrm.meta).toEqual(META);
    expect(META.licenseUrl).toBe("https://vrm.dev/licenses/1.0/");
  });
});
