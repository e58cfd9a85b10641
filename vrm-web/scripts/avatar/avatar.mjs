/** Puts Alice together: parts, bones, expressions, springs, and her licence. */
import { body } from "./body.mjs";
import { ears, face, MORPH_NAMES } from "./face.mjs";
import { hair } from "./hair.mjs";
import { MATERIALS } from "./materials.mjs";
import { OVERRIDES } from "./moods.mjs";
import { outfit } from "./outfit.mjs";
import { textures } from "./paint.mjs";
import { PIVOT } from "./eyeshape.mjs";
import { bones, CHAINS, COLLIDERS, HEAD } from "./skeleton.mjs";
import { write } from "./vrm.mjs";

export const META = {
  name: "Alice",
  version: "2",
  authors: ["The Alice project"],
  copyrightInformation: "MIT OR Apache-2.0, as the rest of the Alice project",
  licenseUrl: "https://vrm.dev/licenses/1.0/",
  thirdPartyLicenses: "none: everything in this file is made by the project's own code",
  avatarPermission: "everyone",
  allowExcessivelyViolentUsage: false,
  allowExcessivelySexualUsage: false,
  commercialUsage: "corporation",
  allowPoliticalOrReligiousUsage: false,
  allowAntisocialOrHateUsage: false,
  creditNotation: "unnecessary",
  allowRedistribution: true,
  modification: "allowModificationRedistribution",
};

const PRESETS = ["aa", "ih", "ou", "ee", "oh", "happy", "angry", "sad", "relaxed", "surprised", "blinkLeft", "blinkRight"];

export function expressions() {
  const one = (name) => [name, { binds: [name], ...OVERRIDES[name] }];
  return {
    preset: { neutral: { binds: [] }, blink: { binds: ["blinkLeft", "blinkRight"] }, ...Object.fromEntries(PRESETS.map(one)) },
    custom: Object.fromEntries(MORPH_NAMES.filter((name) => !PRESETS.includes(name)).map(one)),
  };
}

/** Degrees of gaze at which the eyes are turned as far as they go, and how far that is. */
const range = (inputMaxValue, outputScale) => ({ inputMaxValue, outputScale });
const LOOK = {
  offsetFromHeadBone: [0, PIVOT[1] * HEAD.size, 0.07],
  type: "bone",
  rangeMapHorizontalInner: range(35, 6.5),
  rangeMapHorizontalOuter: range(35, 7),
  rangeMapVerticalDown: range(30, 5),
  rangeMapVerticalUp: range(30, 5.5),
};

/** The parts of the figure: what morphs move, and the rest. */
export const parts = () => [
  { name: "Face", parts: face() },
  { name: "Body", parts: [...ears(), ...body(), ...outfit()] },
  { name: "Hair", parts: hair() },
];

export function avatar(meshes = parts()) {
  const { list, humanoid } = bones();
  return write({
    meshes,
    materials: MATERIALS,
    images: textures(),
    bones: list,
    humanoid,
    morphs: MORPH_NAMES,
    expressions: expressions(),
    springs: CHAINS,
    colliders: COLLIDERS,
    lookAt: LOOK,
    meta: META,
  });
}
