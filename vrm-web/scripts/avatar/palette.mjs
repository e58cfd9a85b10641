/** Her colours. Change them here and run `npm run avatar`. */

const rgb = (hex) => [(hex >> 16) & 255, (hex >> 8) & 255, hex & 255];

/** Lit and in shade. */
const tone = (lit, shade) => ({ lit: rgb(lit), shade: rgb(shade) });

export const PALETTE = {
  skin: tone(0xffeadd, 0xf4b7a3),
  blush: rgb(0xff8f8a),
  lips: rgb(0xe58f86),
  hairRoot: rgb(0xf3cf8c),
  hair: rgb(0xffe7b0),
  hairTip: rgb(0xf9b7a6),
  hairShine: rgb(0xfffbec),
  hairShade: rgb(0xeaaa86),
  hairInside: tone(0xd3a074, 0xb27a58),
  dress: tone(0x7fbdee, 0x5389cf),
  skirt: tone(0x78b6ea, 0x4c80c8),
  lining: tone(0x4a76b4, 0x3b5f98),
  white: tone(0xffffff, 0xc3d0ea),
  navy: tone(0x3a4f8c, 0x27356a),
  trim: tone(0x4f7fc6, 0x3b62a6),
  gold: tone(0xffd66e, 0xd9963d),
  shoe: tone(0x33426f, 0x222c52),
  sole: tone(0xf5ede2, 0xc9bcb4),
  sock: tone(0xffffff, 0xc6d2ec),
  irisDark: rgb(0x1c3f86),
  iris: rgb(0x2f86d6),
  irisLight: rgb(0x8fe6f6),
  pupil: rgb(0x14244f),
  eyeWhite: rgb(0xffffff),
  eyeShadow: rgb(0xb9c3e2),
  lash: rgb(0x3b2733),
  lashSoft: rgb(0xb0736a),
  crease: rgb(0xd99783),
  rim: rgb(0xe9a894),
  brow: rgb(0xa8713a),
  lip: rgb(0x9c4246),
  lipSoft: rgb(0xd98680),
  mouth: rgb(0xc04a52),
  mouthDeep: rgb(0x6b1f2c),
  tongue: rgb(0xf08d8a),
  tooth: rgb(0xfffaf5),
  glint: rgb(0xffffff),
  gloom: rgb(0x6f86b8),
};
