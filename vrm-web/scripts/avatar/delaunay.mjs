/** Joins scattered points of a plane to triangles (Bowyer and Watson's way). */

/** Triples of indices, counter-clockwise. The order of points does not change what is joined. */
export function delaunay(points) {
  const xs = points.map(([x]) => x);
  const ys = points.map(([, y]) => y);
  const middle = [(Math.min(...xs) + Math.max(...xs)) / 2, (Math.min(...ys) + Math.max(...ys)) / 2];
  const span = Math.max(Math.max(...xs) - Math.min(...xs), Math.max(...ys) - Math.min(...ys)) * 20;
  const all = [...points, [middle[0] - span, middle[1] - span], [middle[0] + span, middle[1] - span], [middle[0], middle[1] + span]];
  const n = points.length;
  let triangles = [circled(all, n, n + 1, n + 2)];
  for (let k = 0; k < n; k++) {
    const [x, y] = all[k];
    const edges = new Map();
    const kept = [];
    for (const triangle of triangles) {
      if ((x - triangle.x) ** 2 + (y - triangle.y) ** 2 >= triangle.r2) {
        kept.push(triangle);
        continue;
      }
      const [a, b, c] = triangle.corners;
      for (const [from, to] of [[a, b], [b, c], [c, a]]) {
        const back = `${to}-${from}`;
        if (!edges.delete(back)) edges.set(`${from}-${to}`, [from, to]);
      }
    }
    for (const [from, to] of edges.values()) kept.push(circled(all, from, to, k));
    triangles = kept;
  }
  return triangles.map(({ corners }) => corners).filter((corners) => corners.every((corner) => corner < n));
}

function circled(all, a, b, c) {
  const [[ax, ay], [bx, by], [cx, cy]] = [all[a], all[b], all[c]];
  const area = (bx - ax) * (cy - ay) - (by - ay) * (cx - ax);
  const corners = area < 0 ? [a, c, b] : [a, b, c];
  const d = 2 * area || 1e-30;
  const [b2, c2] = [(bx - ax) ** 2 + (by - ay) ** 2, (cx - ax) ** 2 + (cy - ay) ** 2];
  const ux = ((cy - ay) * b2 - (by - ay) * c2) / d;
  const uy = ((bx - ax) * c2 - (cx - ax) * b2) / d;
  return { corners, x: ax + ux, y: ay + uy, r2: ux * ux + uy * uy };
}

/** Whether a point lies in a polygon. */
export function inside([x, y], polygon) {
  let is = false;
  for (let k = 0, before = polygon.length - 1; k < polygon.length; before = k++) {
    const [[ax, ay], [bx, by]] = [polygon[k], polygon[before]];
    if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) is = !is;
  }
  return is;
}
