/** From feelings, mouth shapes and time to expression weights. No renderer in here. */
import { Blink } from "./blink";
import { approach, smooth } from "./curves";
import { Palette, type Blend } from "./emotion";
import { VOWELS, type Feeling, type Mouth, type Vowel } from "./protocol";
import { between, pick, type Random } from "./random";

/** What VRM 1.0 says of an expression and another group of them: they add up, exclude or weaken each other. */
export type Override = "none" | "block" | "blend";

/** What a model says of its face. */
export interface Traits {
  /** Its expressions, by the names that it gives them. */
  names: readonly string[];
  /** Expressions that say how they get on with the lips; the others add to them. */
  mouth: Readonly<Record<string, Override>>;
  /** The model says which expressions close the eyes; VRM 0.x never does, and few files have it. */
  lids: boolean;
}

export const PRESETS: Traits = {
  names: ["happy", "angry", "sad", "relaxed", "surprised"],
  mouth: {},
  lids: false,
};

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
/** Lips without a sound are shut after this, ms, however few the frames are. */
const SILENT_MS = 100;
/** Below these a weight is nothing. */
const CLOSED_BELOW = 0.02;
const NEUTRAL_BELOW = 0.005;
/**
 * What is left of a mood while she speaks. One at full strength pulls at the mouth, and one that
 * blocks the mouth would leave her talking with closed lips.
 */
const SPEAKING_MOOD: Record<Override, number> = { none: 0.7, blend: 0.4, block: 0 };

/** Small expressions of a face that has nothing to express: how often, how long, how strong. */
const HINT_EACH_S = [8, 24] as const;
const HINT_S = [1.4, 3] as const;
const HINT_STRENGTH = [0.08, 0.22] as const;
const HINTS = ["happy", "relaxed", "surprised"] as const;

export interface Weights {
  /** The feeling, by the model's names. */
  moods: Blend;
  /** What flits over a face at rest. */
  hint: Blend;
  mouth: Mouth;
  blink: number;
}

export class ExpressionDriver {
  readonly weights: Weights = { moods: {}, hint: {}, mouth: { aa: 0, ih: 0, ou: 0, ee: 0, oh: 0 }, blink: 0 };
  readonly #blink: Blink;
  #traits = PRESETS;
  #palette = new Palette(PRESETS.names);
  #hint: { feeling: Feeling; age: number; seconds: number } | null = null;
  #hintIn: number;
  #silentMs = 0;

  constructor(private readonly random: Random) {
    this.#blink = new Blink(random);
    this.#hintIn = between(random, ...HINT_EACH_S);
  }

  /** Another model: nothing of the last one's face stays. */
  wear(traits: Traits): void {
    this.#traits = traits;
    this.#palette = new Palette(traits.names);
    this.weights.moods = {};
    this.weights.hint = {};
  }

  /** Closes the mouth at once, as on an interrupt. */
  shut(): void {
    for (const vowel of VOWELS) this.weights.mouth[vowel] = 0;
  }

  /** Closes the eyes for a moment, as on a wide glance. */
  blink(): void {
    this.#blink.now();
  }

  step(dtMs: number, feeling: Feeling, mouth: Mouth, speaking: boolean, calm: boolean): Weights {
    const { weights } = this;
    const target = this.#palette.of(feeling);
    for (const name of new Set([...Object.keys(weights.moods), ...Object.keys(target)])) {
      const room = speaking ? SPEAKING_MOOD[this.#traits.mouth[name] ?? "none"] : 1;
      const wanted = (target[name] ?? 0) * room;
      const weight = approach(weights.moods[name] ?? 0, wanted, dtMs, MOOD_MS);
      weights.moods[name] = wanted === 0 && weight < NEUTRAL_BELOW ? 0 : weight;
    }
    weights.hint = this.#hinted(dtMs / 1000, calm || speaking || feeling.emotion !== "neutral");
    const lips = strongest(mouth);
    this.#silentMs = speaking ? 0 : this.#silentMs + dtMs;
    for (const vowel of VOWELS) {
      const weight = approach(weights.mouth[vowel], lips[vowel], dtMs, LIP_MS);
      weights.mouth[vowel] = lips[vowel] === 0 && weight < CLOSED_BELOW ? 0 : weight;
    }
    if (this.#silentMs >= SILENT_MS) this.shut();
    weights.blink = this.#blink.step(dtMs / 1000) * (this.#traits.lids ? 1 : this.#lidsOpen());
    return weights;
  }

  /** Lids that a mood has closed already must not go through the cheek. */
  #lidsOpen(): number {
    const { moods } = this.weights;
    const closed = Math.max(moods["happy"] ?? 0, moods["relaxed"] ?? 0, (moods["angry"] ?? 0) * 0.5);
    return 1 - Math.min(1, closed);
  }

  #hinted(dtS: number, busy: boolean): Blend {
    this.#hintIn -= dtS;
    if (this.#hintIn <= 0) {
      this.#hintIn = between(this.random, ...HINT_EACH_S);
      const feeling = { emotion: pick(this.random, HINTS), intensity: between(this.random, ...HINT_STRENGTH) };
      this.#hint = busy ? null : { feeling, age: 0, seconds: between(this.random, ...HINT_S) };
    }
    const hint = this.#hint;
    if (!hint) return {};
    // A feeling that comes meanwhile takes over.
    hint.age += busy ? dtS * 4 : dtS;
    const part = hint.age / hint.seconds;
    if (part >= 1) {
      this.#hint = null;
      return {};
    }
    const strength = smooth(Math.min(part, 1 - part) * 3);
    return this.#palette.of({ emotion: hint.feeling.emotion, intensity: hint.feeling.intensity * strength });
  }
}
