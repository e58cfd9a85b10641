/** What a position in a segment's sound means for the mouth and the line (`src/face/line.rs`). */
import type { Mouth, Segment, Subtitle, VisemeFrame } from "./protocol";

export const CLOSED: Readonly<Mouth> = Object.freeze({ aa: 0, ih: 0, ou: 0, ee: 0, oh: 0 });

/** Linear between the frames around `position` ms; closed before the first and after the last. */
export function mouthAt(track: readonly VisemeFrame[], position: number): Mouth {
  const next = track.findIndex((frame) => frame.at_ms > position);
  const before = track[next - 1];
  const after = track[next];
  if (!before || !after) return { ...CLOSED };
  const span = after.at_ms - before.at_ms;
  const part = span > 0 ? (position - before.at_ms) / span : 1;
  const mix = (from: number, to: number): number => from + (to - from) * part;
  return {
    aa: mix(before.aa, after.aa),
    ih: mix(before.ih, after.ih),
    ou: mix(before.ou, after.ou),
    ee: mix(before.ee, after.ee),
    oh: mix(before.oh, after.oh),
  };
}

const BREAK = /[\s\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]/u;

/** The line of a segment and what of it was said, cut at the nearest end of a word. */
export function subtitleAt(segment: Segment, position: number): Subtitle {
  const letters = [...segment.display.trim()];
  const text = letters.join("");
  const share = spokenShare(segment, position);
  const wanted = letters.length * share;
  let best = share <= 0 ? 0 : letters.length;
  if (share > 0) {
    for (let count = letters.length - 1; count > 0; count--) {
      const letter = letters[count];
      if (letter !== undefined && BREAK.test(letter) && Math.abs(count - wanted) <= Math.abs(best - wanted)) {
        best = count;
      }
    }
  }
  return { text, said: letters.slice(0, best).join("") };
}

function spokenShare(segment: Segment, position: number): number {
  if (segment.words.length === 0) {
    return segment.duration_ms > 0 ? position / segment.duration_ms : 1;
  }
  const begun = segment.words.filter(([, atMs]) => atMs <= position).length;
  if (begun === 0) return 0;
  const next = segment.words[begun];
  if (!next) return 1;
  const bytes = new TextEncoder().encode(segment.spoken);
  const spoken = new TextDecoder().decode(bytes.subarray(0, next[0])).trimEnd();
  return [...spoken].length / Math.max(1, [...segment.spoken].length);
}
