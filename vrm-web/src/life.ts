/**
 * What she does from moment to moment: body, gaze and face in one. Pure: time, chance and what
 * happens go in; a pose and weights come out. The renderer only shows them.
 */
import type { ActionName } from "./actions";
import { clamp } from "./curves";
import { ExpressionDriver, type Traits, type Weights } from "./expression";
import { Gaze, type Spot } from "./gaze";
import { Motion } from "./motion";
import { Performer } from "./performer";
import type { Pose } from "./pose";
import type { FaceState, Feeling, Mouth } from "./protocol";
import { between, pick, type Random } from "./random";
import type { SceneSettings } from "./settings";
import { Touch, type Reaction, type Region } from "./touch";

/** What happens around her. */
export interface Sense {
  state: FaceState;
  feeling: Feeling;
  mouth: Mouth;
  /** Her voice sounds. */
  speaking: boolean;
  /** Someone speaks to her right now, which is more than that she listens. */
  userSpeaks: boolean;
  /** Where the pointer is in the picture, if it is anywhere. */
  cursor: Spot | null;
}

export interface Shown {
  pose: Pose;
  eyes: Spot;
  face: Weights;
}

/** Gestures that go with a feeling when it comes. */
const GESTURES: Record<string, readonly [ActionName, ...ActionName[]]> = {
  happy: ["laugh", "nod", "sway"],
  sad: ["bow", "shake"],
  angry: ["shake", "point"],
  relaxed: ["sway"],
  thinking: ["think"],
  shy: ["lookAway", "sway"],
  fearful: ["shake"],
  disgusted: ["lookAway", "shake"],
  excited: ["cheer"],
  confused: ["shrug", "think"],
  loving: ["sway", "bow"],
};
/** Weaker feelings stay on the face, and not every strong one moves the hands. */
const GESTURE_FROM = 0.45;
const GESTURE_CHANCE = 0.75;
const GESTURE_EACH_S = 4;

/** Thought that takes longer than this brings the hand to the chin, s. */
const PONDER_S = 2.2;
/** A listener nods now and then while the other one speaks, s. */
const NOD_EACH_S = [3.5, 8] as const;
/** After so long without anything, s, she looks each time again whether she feels like moving. */
const FIDGET_AFTER_S = 15;
const FIDGET_EACH_S = 8;
const FIDGET_CHANCE = 0.55;
const FIDGETS = ["sway", "lookAway", "stretch"] as const;

/** How long a touch shows on the face and draws the eyes, s. */
const TOUCH_S = 3;
const TOUCH_FADE_S = 1;
const TOUCH_LOOK_S = 1.6;

const CAMERA: Spot = [0, 0];

export class Life {
  readonly expressions: ExpressionDriver;
  readonly performer = new Performer();
  readonly #gaze: Gaze;
  readonly #motion: Motion;
  readonly #touch = new Touch();
  #time = 0;
  #state: FaceState = "idle";
  #stateS = 0;
  #emotion = "neutral";
  #gestureAt = -Infinity;
  #nodIn = 0;
  #fidgetIn = FIDGET_AFTER_S;
  #touched: { reaction: Reaction; at: number } | null = null;

  constructor(
    private readonly random: Random,
    public settings: SceneSettings,
  ) {
    this.expressions = new ExpressionDriver(random);
    this.#gaze = new Gaze(random);
    this.#motion = new Motion(random);
  }

  wear(traits: Traits): void {
    this.expressions.wear(traits);
  }

  /** Says hello to whoever opened the page. */
  greet(): void {
    if (!this.settings.calm) this.performer.play(pick(this.random, ["wave", "wave", "bow"]));
  }

  /** She was cut off: lips shut, hands go down. */
  interrupted(): void {
    this.expressions.shut();
    this.performer.stop();
  }

  /** True when she felt it; a part that was just touched feels nothing for a while. */
  touch(region: Region): boolean {
    const reaction = this.#touch.at(region, this.#time);
    if (!reaction) return false;
    this.#touched = { reaction, at: this.#time };
    this.#fidgetIn = FIDGET_AFTER_S;
    if (reaction.action && !this.settings.calm) this.performer.play(reaction.action, true);
    return true;
  }

  /** The face goes by the time that `passedS`, which may be more than bodies can follow in one frame. */
  step(dtS: number, sense: Sense, passedS = dtS): Shown {
    this.#time += dtS;
    const { calm, motion: amount } = this.settings;
    if (sense.state !== this.#state) this.#enter(sense.state);
    this.#stateS += dtS;
    const feeling = this.#felt(sense.feeling);
    if (!calm) this.#gesture(sense.feeling);
    if (!calm) this.#fidget(dtS, sense);
    this.#listen(dtS, sense);

    const gaze = this.#gaze.step(dtS, sense.state, this.#focus(sense.cursor), amount);
    if (gaze.wide) this.expressions.blink();
    const { aa, ih, ou, ee, oh } = sense.mouth;
    const pose = this.#motion.step(dtS, sense.state, Math.max(aa, ih, ou, ee, oh), gaze.head, amount);
    this.performer.step(dtS, pose, clamp(amount, 0.3, 1.2));
    const face = this.expressions.step(passedS * 1000, feeling, sense.mouth, sense.speaking, calm);
    return { pose, eyes: gaze.eyes, face };
  }

  #enter(state: FaceState): void {
    if (this.#state === "thinking") this.performer.stop("think");
    this.#state = state;
    this.#stateS = 0;
    this.#fidgetIn = FIDGET_AFTER_S;
    this.#nodIn = between(this.random, ...NOD_EACH_S);
  }

  /** What shows: a touch for a moment, if nothing that is said is stronger. */
  #felt(said: Feeling): Feeling {
    if (!this.#touched) return said;
    const age = this.#time - this.#touched.at;
    if (age > TOUCH_S) {
      this.#touched = null;
      return said;
    }
    const { emotion, intensity } = this.#touched.reaction.feeling;
    const left = intensity * Math.min(1, (TOUCH_S - age) / TOUCH_FADE_S);
    return said.emotion !== "neutral" && said.intensity > left ? said : { emotion, intensity: left };
  }

  #focus(cursor: Spot | null): Spot {
    const felt = this.#touched !== null && this.#time - this.#touched.at < TOUCH_LOOK_S;
    return cursor && (felt || this.settings.look === "cursor") ? cursor : CAMERA;
  }

  #gesture({ emotion, intensity }: Feeling): void {
    if (emotion === this.#emotion) return;
    this.#emotion = emotion;
    const gestures = GESTURES[emotion];
    if (!gestures || intensity < GESTURE_FROM || this.#time - this.#gestureAt < GESTURE_EACH_S) return;
    if (this.random() >= GESTURE_CHANCE) return;
    this.#gestureAt = this.#time;
    this.performer.play(pick(this.random, gestures));
  }

  #listen(dtS: number, { state, userSpeaks }: Sense): void {
    if (state === "thinking") {
      if (!this.settings.calm && this.#stateS - dtS < PONDER_S && this.#stateS >= PONDER_S) this.performer.play("think");
    } else if (state === "listening" && userSpeaks) {
      this.#nodIn -= dtS;
      if (this.#nodIn > 0) return;
      this.#nodIn = between(this.random, ...NOD_EACH_S);
      this.performer.play("nod");
    }
  }

  #fidget(dtS: number, { state, feeling, userSpeaks }: Sense): void {
    const quiet = (state === "idle" || state === "listening") && !userSpeaks && feeling.emotion === "neutral";
    if (!quiet) {
      this.#fidgetIn = FIDGET_AFTER_S;
      return;
    }
    this.#fidgetIn -= dtS;
    if (this.#fidgetIn > 0) return;
    this.#fidgetIn = FIDGET_EACH_S;
    if (this.performer.idle && this.random() < FIDGET_CHANCE) this.performer.play(pick(this.random, FIDGETS));
  }
}
