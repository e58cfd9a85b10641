/** MToon materials. Few, because each is drawn on its own, and twice where it has an outline. */
import { CLOTH, HAIR, LINES, OVERLAY, placed } from "./paint.mjs";
import { PALETTE } from "./palette.mjs";

const linear = (rgb) => rgb.map((x) => {
  const value = x / 255;
  return Math.round((value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4) * 1e5) / 1e5;
});
const WHITE = [255, 255, 255];

function mtoon(name, texture, { shadeTexture = texture, shade = WHITE, outline = 0, ink = [110, 90, 100], toony = 0.88, shift = -0.06, rim = [0, 0, 0], alpha = false } = {}) {
  return (index) => ({
    name,
    ...(alpha ? { alphaMode: "BLEND" } : {}),
    pbrMetallicRoughness: { baseColorTexture: index(texture), baseColorFactor: [1, 1, 1, 1], metallicFactor: 0, roughnessFactor: 0.9 },
    extensions: {
      KHR_materials_unlit: {},
      VRMC_materials_mtoon: {
        specVersion: "1.0",
        transparentWithZWrite: false,
        shadeColorFactor: linear(shade),
        shadeMultiplyTexture: index(shadeTexture),
        shadingToonyFactor: toony,
        shadingShiftFactor: shift,
        giEqualizationFactor: 0.9,
        parametricRimColorFactor: linear(rim),
        parametricRimFresnelPowerFactor: 4.5,
        parametricRimLiftFactor: 0,
        rimLightingMixFactor: 1,
        // Ink is the surface's own colour, darker.
        ...(outline > 0
          ? { outlineWidthMode: "worldCoordinates", outlineWidthFactor: outline, outlineColorFactor: linear(ink), outlineLightingMixFactor: 1 }
          : {}),
      },
    },
  });
}

/** What skin gets in shade, as a tint of its lit colour. */
const skinShade = PALETTE.skin.lit.map((x, k) => (PALETTE.skin.shade[k] / x) * 255);
const plain = (_, uv) => uv;
const celled = (atlas) => (name, uv) => placed(atlas, name, uv);
const LINE = 0.0013;

export const MATERIALS = [
  { name: "Face", paints: ["face"], uv: plain, gltf: mtoon("Face", "face", { shade: skinShade, outline: LINE, ink: [184, 108, 100], toony: 0.9, shift: -0.12 }) },
  { name: "Skin", paints: ["skin"], uv: plain, gltf: mtoon("Skin", "skin", { shade: skinShade, outline: LINE, ink: [184, 108, 100], toony: 0.85 }) },
  { name: "Lines", paints: Object.keys(LINES.cells), uv: celled(LINES), gltf: mtoon("Lines", "lines") },
  { name: "Hair", paints: ["hair", "hairInside"], uv: celled(HAIR), gltf: mtoon("Hair", "hair", { shadeTexture: "hairShade", outline: LINE, ink: [190, 138, 108], toony: 0.86, shift: -0.02, rim: [60, 46, 30] }) },
  { name: "Cloth", paints: Object.keys(CLOTH.cells), uv: celled(CLOTH), gltf: mtoon("Cloth", "cloth", { shadeTexture: "clothShade", outline: LINE, ink: [128, 118, 150], toony: 0.86, shift: -0.02, rim: [24, 26, 34] }) },
  { name: "Overlay", paints: ["blush", "gloom"], uv: celled(OVERLAY), gltf: mtoon("Overlay", "overlay", { alpha: true }) },
];
