/** From the thirteen emotions to the expressions that a model has. */
import type { Feeling } from "./protocol";

export const EMOTIONS = [
  "neutral",
  "happy",
  "sad",
  "angry",
  "surprised",
  "relaxed",
  "thinking",
  "shy",
  "fearful",
  "disgusted",
  "excited",
  "confused",
  "loving",
] as const;
export type Emotion = (typeof EMOTIONS)[number];

/** Expressions by the name that the model gives them, with weights. */
export type Blend = Record<string, number>;

/** What an emotion is mixed from where a model has no expression of its own for it. */
const MIX: Record<Exclude<Emotion, "neutral">, Partial<Record<Emotion, number>>> = {
  // VRM's presets come last in a chain: what is left is a hint of the nearest one.
  happy: { relaxed: 0.6 },
  sad: { relaxed: 0.3 },
  angry: { sad: 0.4 },
  surprised: { relaxed: 0.3 },
  relaxed: { happy: 0.4 },
  thinking: { relaxed: 0.25 },
  shy: { happy: 0.35, relaxed: 0.35 },
  fearful: { surprised: 0.5, sad: 0.5 },
  disgusted: { angry: 0.6, sad: 0.35 },
  excited: { happy: 0.9, surprised: 0.25 },
  confused: { surprised: 0.3, sad: 0.3 },
  loving: { happy: 0.6, relaxed: 0.5 },
};

/** Names that makers of models give to expressions beyond the presets. */
const ALSO: Partial<Record<Emotion, readonly string[]>> = {
  happy: ["joy", "smile", "fun"],
  sad: ["sorrow"],
  angry: ["anger"],
  surprised: ["surprise", "shock"],
  thinking: ["think", "ponder"],
  shy: ["embarrassed", "awkward", "blush"],
  fearful: ["fear", "scared", "afraid"],
  disgusted: ["disgust"],
  excited: ["excite"],
  confused: ["question", "puzzled"],
  loving: ["love", "heart"],
};

/** What each emotion is on one model; worked out once, when it is loaded. */
export class Palette {
  readonly #blends = new Map<string, Blend>();

  /** `names` are the model's expressions. */
  constructor(names: Iterable<string>) {
    const known = new Map<string, string>();
    for (const name of names) known.set(name.toLowerCase(), name);
    const own = (emotion: Emotion): string | undefined => {
      for (const name of [emotion, ...(ALSO[emotion] ?? [])]) {
        const found = known.get(name);
        if (found !== undefined) return found;
      }
      return undefined;
    };
    const add = (blend: Blend, emotion: Emotion, weight: number, above: readonly Emotion[]): void => {
      const name = own(emotion);
      if (name !== undefined) blend[name] = Math.min(1, (blend[name] ?? 0) + weight);
      else if (emotion !== "neutral") {
        for (const [part, share] of Object.entries(MIX[emotion]) as [Emotion, number][]) {
          if (!above.includes(part)) add(blend, part, weight * share, [...above, emotion]);
        }
      }
    };
    for (const emotion of EMOTIONS) {
      const blend: Blend = {};
      if (emotion !== "neutral") add(blend, emotion, 1, []);
      this.#blends.set(emotion, blend);
    }
  }

  /** An emotion that nobody knows is neutral. */
  of(feeling: Feeling): Blend {
    const weight = Math.min(Math.max(feeling.intensity, 0), 1);
    const blend: Blend = {};
    for (const [name, share] of Object.entries(this.#blends.get(feeling.emotion) ?? {})) blend[name] = share * weight;
    return blend;
  }
}
