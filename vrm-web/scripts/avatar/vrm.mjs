/** Writes glTF binary with the VRM 1.0 extensions. */
import { sub } from "./math.mjs";

const FLOAT = 5126;
const [UBYTE, USHORT, UINT] = [5121, 5123, 5125];
const SIZE = { SCALAR: 1, VEC2: 2, VEC3: 3, VEC4: 4, MAT4: 16 };
const ARRAY = { [FLOAT]: Float32Array, [UBYTE]: Uint8Array, [USHORT]: Uint16Array, [UINT]: Uint32Array };
/** Places are kept to 10 µm, so that the last bits of a sine do not change the file. */
const round = (x, unit = 1e5) => Math.round(x * unit) / unit + 0;
/** Morphs leave alone what they move by less. */
const STILL = 2e-5;

class Binary {
  chunks = [];
  length = 0;
  views = [];
  accessors = [];

  view(data, target) {
    const padded = Buffer.concat([data, Buffer.alloc((4 - (data.length % 4)) % 4)]);
    this.views.push({ buffer: 0, byteOffset: this.length, byteLength: data.length, ...(target ? { target } : {}) });
    this.chunks.push(padded);
    this.length += padded.length;
    return this.views.length - 1;
  }

  /** Puts numbers in and returns the accessor's index. */
  put(values, type, component, { target, bounds = false, normalized = false, unit } = {}) {
    const flat = values.flat();
    const data = Buffer.from(new ARRAY[component](component === FLOAT ? flat.map((x) => round(x, unit)) : flat).buffer);
    const accessor = { bufferView: this.view(data, target), componentType: component, count: flat.length / SIZE[type], type };
    if (normalized) accessor.normalized = true;
    if (bounds) Object.assign(accessor, extent(values, unit));
    this.accessors.push(accessor);
    return this.accessors.length - 1;
  }

  /** Like `put` for values that are mostly 0: only the others are kept. */
  sparse(values, { bounds = false, unit } = {}) {
    const kept = values.map((value, k) => [k, value]).filter(([, value]) => Math.hypot(...value) > STILL);
    const accessor = { componentType: FLOAT, count: values.length, type: "VEC3" };
    if (kept.length > 0) {
      const Index = values.length > 65535 ? UINT : USHORT;
      accessor.sparse = {
        count: kept.length,
        indices: { bufferView: this.view(Buffer.from(new ARRAY[Index](kept.map(([k]) => k)).buffer)), componentType: Index },
        values: { bufferView: this.view(Buffer.from(new Float32Array(kept.flatMap(([, value]) => value.map((x) => round(x, unit)))).buffer)) },
      };
    }
    if (bounds) Object.assign(accessor, extent([[0, 0, 0], ...kept.map(([, value]) => value)], unit));
    this.accessors.push(accessor);
    return this.accessors.length - 1;
  }
}

function extent(values, unit) {
  const list = values.map((value) => value.map((x) => Math.fround(round(x, unit))));
  const over = (pick) => [0, 1, 2].map((axis) => list.reduce((best, value) => pick(best, value[axis]), list[0][axis]));
  return { min: over(Math.min), max: over(Math.max) };
}

/**
 * `meshes` is a list of `{ name, parts }` (see `mesh.mjs`), `materials` a list of `{ name, gltf, uv }`
 * with the parts' material names it paints, `images` a map of PNG files.
 */
export function write({ meshes, materials, images, bones, humanoid, morphs, expressions, springs, colliders, lookAt, meta }) {
  const binary = new Binary();
  const boneIndex = new Map(bones.map(([name], k) => [name, k]));
  const place = new Map(bones.map(([name, , point]) => [name, point]));

  const skinned = (parts) => {
    const joints = [];
    const weights = [];
    for (const part of parts) {
      for (const position of part.positions) {
        const four = shares(part.bones(position));
        joints.push(four.map(([name, weight]) => (weight > 0 ? boneIndex.get(name) : 0)));
        weights.push(four.map(([, weight]) => weight));
      }
    }
    return { joints, weights };
  };

  const primitive = (parts, material) => {
    const base = { positions: [], normals: [], uvs: [], indices: [] };
    const moved = parts.some((part) => part.morphs);
    const deltas = morphs.map(() => []);
    const turned = morphs.map(() => []);
    for (const part of parts) {
      part.finish();
      const first = base.positions.length;
      base.positions.push(...part.positions);
      base.normals.push(...part.normals);
      base.uvs.push(...part.uvs.map((uv) => material.uv(part.material, uv)));
      base.indices.push(...part.indices.map((index) => index + first));
      if (moved) {
        const none = part.positions.map(() => [0, 0, 0]);
        morphs.forEach((_, k) => {
          deltas[k].push(...(part.morphs?.[k] ?? none));
          turned[k].push(...(part.morphNormals?.[k] ?? none));
        });
      }
    }
    const { joints, weights } = skinned(parts);
    const target = 34962;
    return {
      attributes: {
        POSITION: binary.put(base.positions, "VEC3", FLOAT, { target, bounds: true }),
        NORMAL: binary.put(base.normals, "VEC3", FLOAT, { target, unit: 1e3 }),
        TEXCOORD_0: binary.put(base.uvs, "VEC2", FLOAT, { target }),
        JOINTS_0: binary.put(joints, "VEC4", UBYTE, { target }),
        WEIGHTS_0: binary.put(weights, "VEC4", UBYTE, { target, normalized: true }),
      },
      indices: binary.put(base.indices, "SCALAR", base.positions.length > 65535 ? UINT : USHORT, { target: 34963 }),
      material: materials.indexOf(material),
      ...(moved
        ? { targets: morphs.map((_, k) => ({ POSITION: binary.sparse(deltas[k], { bounds: true }), NORMAL: binary.sparse(turned[k], { unit: 1e3 }) })) }
        : {}),
    };
  };

  const nodes = bones.map(([name, parent, point]) => {
    const from = parent ? place.get(parent) : [0, 0, 0];
    const children = bones.filter(([, above]) => above === name).map(([child]) => boneIndex.get(child));
    return { name, translation: sub(point, from).map((x) => round(x)), ...(children.length > 0 ? { children } : {}) };
  });
  const meshNodes = meshes.map(({ name }, k) => {
    nodes.push({ name, mesh: k, skin: 0 });
    return nodes.length - 1;
  });
  const built = meshes.map(({ name, parts }) => {
    const primitives = materials.map((material) => [parts.filter((part) => material.paints.includes(part.material)), material]).filter(([list]) => list.length > 0);
    const has = parts.some((part) => part.morphs);
    return {
      name,
      primitives: primitives.map(([list, material]) => primitive(list, material)),
      ...(has ? { weights: morphs.map(() => 0), extras: { targetNames: morphs } } : {}),
    };
  });
  const faceNode = meshNodes[meshes.findIndex(({ parts }) => parts.some((part) => part.morphs))];

  const inverse = bones.map(([, , [x, y, z]]) => [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, -x, -y, -z, 1]);
  const skin = { joints: bones.map((_, k) => k), skeleton: 0, inverseBindMatrices: binary.put(inverse, "MAT4", FLOAT) };

  const expression = ({ binds, ...more }) => ({
    morphTargetBinds: binds.map((name) => ({ node: faceNode, index: morphs.indexOf(name), weight: 1 })),
    isBinary: false,
    overrideBlink: "none",
    overrideLookAt: "none",
    overrideMouth: "none",
    ...more,
  });
  const made = (list) => Object.fromEntries(Object.entries(list).map(([name, value]) => [name, expression(value)]));

  const imageNames = Object.keys(images);
  const textureIndex = (name) => ({ index: imageNames.indexOf(name) });
  const imageList = imageNames.map((name) => ({ name, mimeType: "image/png", bufferView: binary.view(images[name]) }));

  const groups = Object.keys(colliders);
  const flatColliders = groups.flatMap((group) => colliders[group].map((collider) => ({ group, ...collider })));
  const humanBones = Object.fromEntries(bones.slice(0, humanoid).map(([name]) => [name, { node: boneIndex.get(name) }]));

  const json = {
    asset: { version: "2.0", generator: "Alice, vrm-web/scripts/make-avatar.mjs" },
    extensionsUsed: ["VRMC_vrm", "VRMC_materials_mtoon", "VRMC_springBone", "KHR_materials_unlit"],
    scene: 0,
    scenes: [{ nodes: [0, ...meshNodes] }],
    nodes,
    meshes: built,
    skins: [skin],
    samplers: [
      // No smaller versions of the pictures: their cells would run together, and drawing in software is faster.
      { magFilter: 9729, minFilter: 9729, wrapS: 33071, wrapT: 33071 },
    ],
    images: imageList,
    textures: imageNames.map((name, k) => ({ name, source: k, sampler: 0 })),
    materials: materials.map(({ gltf }) => gltf(textureIndex)),
    accessors: binary.accessors,
    bufferViews: binary.views,
    buffers: [{ byteLength: binary.length }],
    extensions: {
      VRMC_vrm: {
        specVersion: "1.0",
        meta,
        humanoid: { humanBones },
        firstPerson: { meshAnnotations: meshNodes.map((node) => ({ node, type: "auto" })) },
        lookAt,
        expressions: { preset: made(expressions.preset), custom: made(expressions.custom) },
      },
      VRMC_springBone: {
        specVersion: "1.0",
        colliders: flatColliders.map(({ bone, at, radius, to }) => {
          const local = (point) => sub(point, place.get(bone)).map((x) => round(x));
          const node = boneIndex.get(bone);
          return { node, shape: to ? { capsule: { offset: local(at), radius, tail: local(to) } } : { sphere: { offset: local(at), radius } } };
        }),
        colliderGroups: groups.map((name) => ({ name, colliders: flatColliders.flatMap(({ group }, k) => (group === name ? [k] : [])) })),
        springs: springs.map(({ name, points, spring }) => ({
          name: name.replace(/_$/, ""),
          colliderGroups: spring.colliders.map((group) => groups.indexOf(group)),
          joints: points.map((_, k) => ({
            node: boneIndex.get(`${name}${k + 1}`),
            hitRadius: spring.radius,
            stiffness: spring.stiffness,
            gravityPower: spring.gravity,
            gravityDir: [0, -1, 0],
            dragForce: spring.drag,
          })),
        })),
      },
    },
  };
  return glb(json, Buffer.concat(binary.chunks));
}

/** The four greatest weights as bytes that sum to 255. */
export function shares(list) {
  const four = [...list].sort((a, b) => b[1] - a[1]).slice(0, 4);
  const sum = four.reduce((total, [, weight]) => total + weight, 0);
  const bytes = four.map(([name, weight]) => [name, Math.round((weight / sum) * 255)]);
  bytes[0][1] += 255 - bytes.reduce((total, [, byte]) => total + byte, 0);
  while (bytes.length < 4) bytes.push([bytes[0][0], 0]);
  return bytes;
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
