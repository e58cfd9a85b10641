/** The opening of an eye and the ball behind it. Her left eye; the right one is its mirror. */
import { add, arch, distance, lerp, norm, scale } from "./math.mjs";
import { faceNormal, onFace } from "./headshape.mjs";

const { sqrt } = Math;

export const EYE = { x: 0.0448, y: 0.0825, w: 0.0292 };
/** Large, so that the ball is nearly as flat as the face and the iris slides rather than rolls. */
const RADIUS = 0.075;
const CLEARANCE = 0.0017;

/** The line from the inner (s = −1) to the outer corner (s = 1). */
const corners = (s) => lerp(-0.005, -0.0002, (s + 1) / 2);
const UPPER = (s) => corners(s) + 0.0252 * arch(s, 2.9, 0.6);
const LOWER = (s) => corners(s) - 0.0202 * arch(s, 2.4, 0.74);

/** How high a lid is at s, from the middle of the eye. */
export function lid(which, s, { top, bottom, arc, slant, wide, smile }) {
  const closed = corners(s) + arc * (1 - s * s) - 0.0015;
  if (which === "upper") return lerp(UPPER(s), closed, top) + slant * s * (1 - s ** 4) + wide * arch(s, 2, 0.7);
  return lerp(LOWER(s), closed, bottom) + smile * arch(s, 2, 0.8);
}

const middle = onFace(EYE.x, EYE.y - 0.001);
const inward = scale(faceNormal(EYE.x, EYE.y - 0.001), -1);

/** The middle of the ball: as near to the skin as the whole opening allows. */
export const PIVOT = (() => {
  let depth = RADIUS;
  for (let k = 0; k < 60; k++) {
    const center = add(middle, scale(inward, depth));
    let nearest = Infinity;
    for (let i = -12; i <= 12; i++) {
      for (let j = -12; j <= 12; j++) {
        const [x, y] = [EYE.x + (i / 12) * (EYE.w + 0.002), EYE.y + (j / 12) * 0.027];
        if ((i / 12) ** 2 + (j / 12) ** 2 <= 1.05) nearest = Math.min(nearest, distance(onFace(x, y), center) - RADIUS);
      }
    }
    if (nearest >= CLEARANCE) return center;
    depth += Math.max(CLEARANCE - nearest, 1e-5);
  }
  throw new Error("no place for the eyeball behind this face");
})();

/** The ball in front at (x, y) of the face, `off` outside it. */
export function onEye(x, y, off = 0) {
  const [dx, dy] = [x - PIVOT[0], y - PIVOT[1]];
  return [x, y, PIVOT[2] + sqrt(Math.max(0, (RADIUS + off) ** 2 - dx * dx - dy * dy))];
}
export const eyeNormal = ([x, y, z]) => norm([x - PIVOT[0], y - PIVOT[1], z - PIVOT[2]]);
