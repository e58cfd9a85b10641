/** Writes glTF binary with the VRM 1.0 extensions. */
import { BONES, CHAINS } from "./figure.mjs";
import { MORPHS } from "./head.mjs";

const FLOAT = 5126;
const [UBYTE, USHORT] = [5121, 5123];
const SIZE = { SCALAR: 1, VEC3: 3, VEC4: 4, MAT4: 16 };
/** Places are kept to 10 µm, so that the last bits of a sine do not change the file. */
const round = (x) => Math.round(x * 1e5) / 1e5 + 0;

class Buffer_ {
  chunks = [];
  length = 0;
  views = [];
  accessors = [];

  /** Puts numbers in and returns the accessor's index. */
  put(values, type, component, { target, bounds = false, normalized = false } = {}) {
    const flat = values.flat();
    const Kind = { [FLOAT]: Float32Array, [UBYTE]: Uint8Array, [USHORT]: Uint16Array }[component];
    const data = Buffer.from(new Kind(component === FLOAT ? flat.map(round) : flat).buffer);
    const padded = Buffer.concat([data, Buffer.alloc((4 - (data.length % 4)) % 4)]);
    this.views.push({ buffer: 0, byteOffset: this.length, byteLength: data.length, ...(target ? { target } : {}) });
    this.chunks.push(padded);
    this.length += padded.length;
    const accessor = { bufferView: this.views.length - 1, componentType: component, count: flat.length / SIZE[type], type };
    if (normalized) accessor.normalized = true;
    if (bounds) {
      const list = values.map((value) => value.map((x) => Math.fround(round(x))));
      accessor.min = [0, 1, 2].map((axis) => Math.min(...list.map((value) => value[axis])));
      accessor.max = [0, 1, 2].map((axis) => Math.max(...list.map((value) => value[axis])));
    }
    this.accessors.push(accessor);
    return this.accessors.length - 1;
  }
}

const linear = (hex) =>
  [16, 8, 0].map((shift) => {
    const value = ((hex >> shift) & 255) / 255;
    return round(value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
  });

function material(name, { color, shade = color, outline = 0, ink = 0x5a3a33, rim = 0, doubleSided = false }) {
  return {
    name,
    doubleSided,
    pbrMetallicRoughness: { baseColorFactor: [...linear(color), 1], metallicFactor: 0, roughnessFactor: 0.9 },
    extensions: {
      KHR_materials_unlit: {},
      VRMC_materials_mtoon: {
        specVersion: "1.0",
        shadeColorFactor: linear(shade),
        shadingToonyFactor: 0.82,
        shadingShiftFactor: -0.08,
        giEqualizationFactor: 0.9,
        parametricRimColorFactor: [rim, rim, rim],
        parametricRimFresnelPowerFactor: 5,
        rimLightingMixFactor: 1,
        ...(outline > 0
          ? { outlineWidthMode: "worldCoordinates", outlineWidthFactor: outline, outlineColorFactor: linear(ink), outlineLightingMixFactor: 0 }
          : {}),
      },
    },
  };
}

export function write({ parts, painted, materials, meta }) {
  const buffer = new Buffer_();
  const boneIndex = new Map(BONES.map(([name], k) => [name, k]));
  const names = Object.keys(materials);

  const skinned = (part) => {
    const joints = [];
    const weights = [];
    for (const position of part.positions) {
      const four = part.bones(position).sort((a, b) => b[1] - a[1]).slice(0, 4);
      const sum = four.reduce((total, [, weight]) => total + weight, 0);
      while (four.length < 4) four.push([four[0][0], 0]);
      joints.push(four.map(([name, weight]) => (weight > 0 ? boneIndex.get(name) : 0)));
      const bytes = four.map(([, weight]) => Math.round((weight / sum) * 255));
      bytes[0] += 255 - bytes.reduce((total, byte) => total + byte, 0);
      weights.push(bytes);
    }
    return { joints, weights };
  };

  const primitive = (group, morphs) => {
    const base = { positions: [], normals: [], joints: [], weights: [], indices: [], morphs: MORPHS.map(() => []) };
    for (const part of group) {
      const first = base.positions.length;
      base.positions.push(...part.positions);
      base.normals.push(...(part.normals ?? part.smoothNormals()));
      base.indices.push(...part.indices.map((index) => index + first));
      const { joints, weights } = skinned(part);
      base.joints.push(...joints);
      base.weights.push(...weights);
      if (morphs) part.morphs.forEach((deltas, k) => base.morphs[k].push(...deltas));
    }
    const attributes = {
      POSITION: buffer.put(base.positions, "VEC3", FLOAT, { target: 34962, bounds: true }),
      NORMAL: buffer.put(base.normals.map((n) => n.map((x) => Math.round(x * 1e3) / 1e3)), "VEC3", FLOAT, { target: 34962 }),
      JOINTS_0: buffer.put(base.joints, "VEC4", UBYTE, { target: 34962 }),
      WEIGHTS_0: buffer.put(base.weights, "VEC4", UBYTE, { target: 34962, normalized: true }),
    };
    return {
      attributes,
      indices: buffer.put(base.indices, "SCALAR", USHORT, { target: 34963 }),
      material: names.indexOf(group[0].material),
      ...(morphs ? { targets: base.morphs.map((deltas) => ({ POSITION: buffer.put(deltas, "VEC3", FLOAT, { target: 34962, bounds: true }) })) } : {}),
    };
  };
  const byMaterial = (all) => names.map((name) => all.filter((part) => part.material === name)).filter((group) => group.length > 0);

  const meshes = [
    { name: "Body", primitives: byMaterial(parts).map((group) => primitive(group, false)) },
    { name: "Face", primitives: byMaterial(painted).map((group) => primitive(group, true)), weights: MORPHS.map(() => 0), extras: { targetNames: MORPHS } },
  ];

  const place = new Map(BONES.map(([name, , point]) => [name, point]));
  const nodes = BONES.map(([name, parent, point]) => {
    const from = parent ? place.get(parent) : [0, 0, 0];
    const children = BONES.filter(([, above]) => above === name).map(([child]) => boneIndex.get(child));
    return { name, translation: point.map((x, k) => round(x - from[k])), ...(children.length > 0 ? { children } : {}) };
  });
  const inverse = BONES.map(([, , [x, y, z]]) => [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, -x, -y, -z, 1]);
  const skin = { joints: BONES.map((_, k) => k), skeleton: 0, inverseBindMatrices: buffer.put(inverse, "MAT4", FLOAT) };
  const faceNode = nodes.length + 1;
  nodes.push({ name: "Body", mesh: 0, skin: 0 }, { name: "Face", mesh: 1, skin: 0 });

  const binds = (list) => list.map((name) => ({ node: faceNode, index: MORPHS.indexOf(name), weight: 1 }));
  const expression = (list, more = {}) => ({ morphTargetBinds: binds(list), isBinary: false, overrideBlink: "none", overrideLookAt: "none", overrideMouth: "none", ...more });
  const preset = Object.fromEntries(MORPHS.map((name) => [name, expression([name])]));
  preset.blink = expression(["blinkLeft", "blinkRight"], { overrideLookAt: "none" });
  preset.neutral = expression([]);

  const humanBones = Object.fromEntries(BONES.filter(([name]) => !name.startsWith("hair")).map(([name]) => [name, { node: boneIndex.get(name) }]));
  const range = (inputMaxValue) => ({ inputMaxValue, outputScale: 1 });
  const json = {
    asset: { version: "2.0", generator: "vrm-web/scripts/make-avatar.mjs" },
    extensionsUsed: ["VRMC_vrm", "VRMC_materials_mtoon", "VRMC_springBone", "KHR_materials_unlit"],
    scene: 0,
    scenes: [{ nodes: [0, nodes.length - 2, nodes.length - 1] }],
    nodes,
    meshes,
    skins: [skin],
    materials: names.map((name) => material(name, materials[name])),
    accessors: buffer.accessors,
    bufferViews: buffer.views,
    buffers: [{ byteLength: buffer.length }],
    extensions: {
      VRMC_vrm: {
        specVersion: "1.0",
        meta,
        humanoid: { humanBones },
        firstPerson: { meshAnnotations: [{ node: faceNode, type: "auto" }] },
        lookAt: {
          offsetFromHeadBone: [0, 0.1, 0.08],
          type: "expression",
          rangeMapHorizontalInner: range(35),
          rangeMapHorizontalOuter: range(35),
          rangeMapVerticalDown: range(30),
          rangeMapVerticalUp: range(30),
        },
        expressions: { preset },
      },
      VRMC_springBone: {
        specVersion: "1.0",
        colliders: [
          { node: boneIndex.get("head"), shape: { sphere: { offset: [0, 0.13, 0], radius: 0.135 } } },
          { node: boneIndex.get("chest"), shape: { sphere: { offset: [0, 0.06, 0], radius: 0.1 } } },
        ],
        colliderGroups: [{ name: "body", colliders: [0, 1] }],
        springs: CHAINS.map(([name, points]) => ({
          name,
          colliderGroups: [0],
          joints: points.map((_, k) => ({ node: boneIndex.get(`${name}${k + 1}`), hitRadius: 0.012, stiffness: 1.4, gravityPower: 0.15, gravityDir: [0, -1, 0], dragForce: 0.5 })),
        })),
      },
    },
  };
  return glb(json, Buffer.concat(buffer.chunks));
}

function glb(json, binary) {
  const text = Buffer.from(JSON.stringify(json));
  const padded = Buffer.concat([text, Buffer.alloc((4 - (text.length % 4)) % 4, 0x20)]);
  const chunk = (type, data) => {
    const head = Buffer.alloc(8);
    head.writeUInt32LE(data.length, 0);
    head.writeUInt32LE(type, 4);
    return Buffer.concat([head, data]);
  };
  const body = Buffer.concat([chunk(0x4e4f534a, padded), chunk(0x004e4942, binary)]);
  const head = Buffer.alloc(12);
  head.writeUInt32LE(0x46546c67, 0);
  head.writeUInt32LE(2, 4);
  head.writeUInt32LE(12 + body.length, 8);
  return Buffer.concat([head, body]);
}
