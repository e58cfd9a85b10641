/** From feelings, mouth shapes and time to expression weights. No renderer in here. */
import { VOWELS, type Feeling, type Mouth, type Vowel } from "./protocol";

export const MOODS = ["happy", "angry", "sad", "relaxed", "surprised"] as const;
export type Mood = (typeof MOODS)[number];
export type Moods = Record<Mood, number>;

/** Models have five moods; the other feelings are mixed from them. */
const MIX: Record<string, Partial<Moods>> = {
  happy: { happy: 1 },
  angry: { angry: 1 },
  sad: { sad: 1 },
  relaxed: { relaxed: 1 },
  surprised: { surprised: 1 },
  thinking: { relaxed: 0.25 },
  shy: { happy: 0.35, relaxed: 0.35 },
  fearful: { surprised: 0.5, sad: 0.5 },
  disgusted: { angry: 0.6, sad: 0.35 },
  excited: { happy: 0.9, surprised: 0.25 },
  confused: { surprised: 0.3, sad: 0.3 },
  loving: { happy: 0.6, relaxed: 0.5 },
};

export function moodsOf(feeling: Feeling): Moods {
  const mix = MIX[feeling.emotion] ?? {};
  const weight = Math.min(Math.max(feeling.intensity, 0), 1);
  const of = (mood: Mood): number => (mix[mood] ?? 0) * weight;
  return { happy: of("happy"), angry: of("angry"), sad: of("sad"), relaxed: of("relaxed"), surprised: of("surprised") };
}

/** The two strongest vowels, together at most 1; more of them at once look like mush. */
export function strongest(mouth: Mouth): Mouth {
  const order = [...VOWELS].sort((a, b) => mouth[b] - mouth[a]);
  const [first, second] = order as [Vowel, Vowel];
  const sum = mouth[first] + mouth[second];
  const scale = sum > 1 ? 1 / sum : 1;
  const kept: Mouth = { aa: 0, ih: 0, ou: 0, ee: 0, oh: 0 };
  kept[first] = Math.max(0, mouth[first] * scale);
  kept[second] = Math.max(0, mouth[second] * scale);
  return kept;
}

/** Time constants of the approach to a target, ms. */
const LIP_MS = 35;
const MOOD_MS = 220;
/** Below this a lip weight is closed. */
const CLOSED_BELOW = 0.02;
/** A mood at full strength pulls at the mouth; while she speaks it leaves the lips some room. */
const SPEAKING_MOOD = 0.7;
const BLINK_MS = 160;

export interface Weights {
  moods: Moods;
  mouth: Mouth;
  blink: number;
}

export class ExpressionDriver {
  readonly weights: Weights = {
    moods: { happy: 0, angry: 0, sad: 0, relaxed: 0, surprised: 0 },
    mouth: { aa: 0, ih: 0, ou: 0, ee: 0, oh: 0 },
    blink: 0,
  };
  #blinkIn: number;

  constructor(private readonly random: () => number = Math.random) {
    this.#blinkIn = 1_500 + this.random() * 2_500;
  }

  /** Closes the mouth at once, as on an interrupt. */
  shut(): void {
    for (const vowel of VOWELS) this.weights.mouth[vowel] = 0;
  }

  step(dtMs: number, feeling: Feeling, mouth: Mouth, speaking: boolean): Weights {
    const { weights } = this;
    const target = moodsOf(feeling);
    const room = speaking ? SPEAKING_MOOD : 1;
    for (const mood of MOODS) {
      weights.moods[mood] = approach(weights.moods[mood], target[mood] * room, dtMs, MOOD_MS, 0.005);
    }
    const lips = strongest(mouth);
    for (const vowel of VOWELS) {
      weights.mouth[vowel] = approach(weights.mouth[vowel], lips[vowel], dtMs, LIP_MS, CLOSED_BELOW);
    }
    weights.blink = this.#blink(dtMs);
    return weights;
  }

  #blink(dtMs: number): number {
    this.#blinkIn -= dtMs;
    if (this.#blinkIn > 0) return 0;
    const into = -this.#blinkIn / BLINK_MS;
    if (into >= 1) {
      // Sometimes twice in a row, as people do.
      this.#blinkIn = this.random() < 0.15 ? 120 : 2_000 + this.random() * 4_000;
      return 0;
    }
    // Eyes that are narrowed by a mood close less far; the lids must not go through the cheek.
    const { happy, relaxed, angry } = this.weights.moods;
    return Math.sin(into * Math.PI) * (1 - Math.min(1, Math.max(happy, relaxed, angry * 0.5)));
  }
}

function approach(from: number, to: number, dtMs: number, constantMs: number, snap: number): number {
  const value = to + (from - to) * Math.exp(-dtMs / constantMs);
  return to === 0 && value < snap ? 0 : value;
}
