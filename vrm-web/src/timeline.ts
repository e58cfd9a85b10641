/**
 * What the avatar shows when. The same rules as `src/face.rs`, tested against the same table
 * (`tests/timeline.json`): the clock is the playback clock of the segment that sounds.
 */
import { CLOSED, mouthAt, subtitleAt } from "./line";
import {
  sameSegment,
  type AliceEvent,
  type FaceState,
  type Feeling,
  type ListenState,
  type MicStatus,
  type Mouth,
  type Playing,
  type SceneMessage,
  type Segment,
  type SegmentId,
  type Subtitle,
  type Turn,
} from "./protocol";

/** How long a position is extrapolated without a report, ms. */
const STALL_MS = 500;
/** How long a feeling stays after its segment, ms. */
const HOLD_MS = 800;
/** How long a feeling that belongs to no segment stays, ms. */
const MOMENT_MS = 4_000;
/** How long a feeling takes to fade, ms. */
const FADE_MS = 1_200;
/** How long the last line stays after its sound, ms. */
const LINGER_MS = 2_500;

export interface Scene {
  state: FaceState;
  turn: Turn | null;
  queue: number;
  playing: Playing | null;
  subtitle: Subtitle;
  feeling: Feeling;
  mouth: Mouth;
}

const NEUTRAL: Feeling = { emotion: "neutral", intensity: 0 };
const NO_LINE: Subtitle = { text: "", said: "" };

export class Timeline {
  listen: ListenState = "idle";
  mic: MicStatus = { state: "off", device: null, reason: null };
  #turn: Turn | null = null;
  #done = true;
  #speaking: number | null = null;
  #stopped = 0;
  #segments: Segment[] = [];
  #bound: { segment: SegmentId; feeling: Feeling }[] = [];
  #playing: { segment: Segment; playedMs: number; atMs: number } | null = null;
  #line: { subtitle: Subtitle; untilMs: number } | null = null;
  #feeling: Feeling = NEUTRAL;
  #holdUntil: number | null = null;

  /** Begins anew from the scene of a snapshot. */
  restore(scene: SceneMessage, atMs: number): void {
    this.listen = scene.listen;
    this.mic = scene.mic;
    this.#turn = scene.turn;
    this.#done = scene.turn === null;
    this.#segments = [...scene.segments];
    this.#bound = [];
    this.#stopped = 0;
    this.#line = scene.subtitle.text ? { subtitle: scene.subtitle, untilMs: atMs + LINGER_MS } : null;
    this.#feeling = scene.feeling;
    this.#playing = null;
    this.#holdUntil = atMs + HOLD_MS;
    const playing = scene.playing;
    const segment = playing && scene.segments.find((it) => sameSegment(it.id, playing.segment));
    if (playing && segment) {
      this.#playing = { segment, playedMs: playing.played_ms, atMs };
      this.#holdUntil = null;
    }
    this.#speaking = scene.state === "speaking" ? (segment?.id.turn ?? scene.turn?.turn ?? null) : null;
  }

  /** The line to the server is gone: what sounds can't be followed any more. */
  lose(atMs: number): void {
    this.#stop(Number.POSITIVE_INFINITY, atMs);
    this.#stopped = 0;
  }

  apply(event: AliceEvent): void {
    const at = event.at_ms;
    switch (event.type) {
      case "mic":
        this.mic = { state: event.state, device: event.device, reason: event.reason };
        break;
      case "listen":
        this.listen = event.state;
        break;
      case "turn_started":
        this.#done = false;
        this.#turn = { turn: event.turn, source: event.source, user_text: event.user_text, said: "" };
        break;
      case "turn_completed":
      case "turn_failed":
        if (this.#turn?.turn === event.turn) this.#done = true;
        break;
      case "turn_discarded":
      case "speaking_ended":
        this.#stop(event.turn, at);
        break;
      case "interrupted":
        this.#stop(event.turn ?? this.#newest() ?? this.#stopped, at);
        break;
      case "speaking_started":
        if (event.turn > this.#stopped) this.#speaking = event.turn;
        break;
      case "segment_ready":
        if (event.id.turn > this.#stopped) this.#segments.push(event);
        break;
      case "segment_started":
        this.#play(event.segment, 0, at);
        break;
      case "segment_progress":
        this.#play(event.segment, event.played_ms, at);
        break;
      case "segment_finished":
        this.#finish(event.segment, at);
        break;
      case "segment_skipped":
        this.#segments = this.#segments.filter((it) => !sameSegment(it.id, event.segment));
        if (this.#turn?.turn === event.segment.turn) this.#said(event.display);
        break;
      case "feeling":
        if (event.segment === null) {
          this.#feeling = event.feeling;
          this.#holdUntil = at + MOMENT_MS;
        } else if (event.segment.turn > this.#stopped) {
          this.#bound.push({ segment: event.segment, feeling: event.feeling });
        }
        break;
      default:
        break;
    }
  }

  scene(atMs: number): Scene {
    const play = this.#playing;
    const position = play ? this.#position(atMs) : 0;
    const stalled = play !== null && atMs - play.atMs > STALL_MS;
    const lingers = this.#line !== null && atMs <= this.#line.untilMs;
    return {
      state: this.#state(),
      turn: this.#done ? null : this.#turn,
      queue: this.#segments.length,
      playing: play && { segment: play.segment.id, played_ms: position },
      subtitle: play ? subtitleAt(play.segment, position) : lingers && this.#line ? this.#line.subtitle : NO_LINE,
      feeling: this.#feelingAt(atMs),
      mouth: play && !stalled ? mouthAt(play.segment.visemes, position) : { ...CLOSED },
    };
  }

  #position(atMs: number): number {
    const play = this.#playing;
    if (!play) return 0;
    const since = Math.min(Math.max(atMs - play.atMs, 0), STALL_MS);
    return Math.min(Math.max(play.playedMs + since, 0), Math.max(play.segment.duration_ms, 0));
  }

  #newest(): number | null {
    const turns = [
      this.#segments.at(-1)?.id.turn,
      this.#playing?.segment.id.turn,
      this.#done ? undefined : this.#turn?.turn,
      this.#speaking ?? undefined,
    ].filter((turn) => turn !== undefined);
    return turns.length > 0 ? Math.max(...turns) : null;
  }

  #said(text: string): void {
    if (!this.#turn) return;
    this.#turn.said = [this.#turn.said, text.trim()].filter((part) => part !== "").join(" ");
  }

  #play(id: SegmentId, playedMs: number, atMs: number): void {
    if (id.turn <= this.#stopped) return;
    if (this.#playing && sameSegment(this.#playing.segment.id, id)) {
      this.#playing.playedMs = playedMs;
      this.#playing.atMs = atMs;
      return;
    }
    const place = this.#segments.findIndex((it) => sameSegment(it.id, id));
    const segment = this.#segments[place];
    if (!segment) return;
    this.#segments.splice(0, place);
    this.#feeling = this.#bound.findLast((it) => sameSegment(it.segment, id))?.feeling ?? segment.feeling;
    this.#bound = this.#bound.filter(
      ({ segment: it }) => it.turn > id.turn || (it.turn === id.turn && it.index > id.index),
    );
    this.#holdUntil = null;
    this.#speaking = id.turn;
    this.#playing = { segment, playedMs, atMs };
  }

  #finish(id: SegmentId, atMs: number): void {
    this.#segments = this.#segments.filter((it) => !sameSegment(it.id, id));
    if (!this.#playing || !sameSegment(this.#playing.segment.id, id)) return;
    const text = this.#playing.segment.display.trim();
    this.#playing = null;
    if (this.#turn?.turn === id.turn) this.#said(text);
    this.#linger({ text, said: text }, atMs);
  }

  #stop(through: number, atMs: number): void {
    this.#stopped = Math.max(this.#stopped, through);
    this.#segments = this.#segments.filter((it) => it.id.turn > through);
    this.#bound = this.#bound.filter((it) => it.segment.turn > through);
    if (this.#speaking !== null && this.#speaking <= through) this.#speaking = null;
    if (this.#playing && this.#playing.segment.id.turn <= through) {
      this.#linger(subtitleAt(this.#playing.segment, this.#position(atMs)), atMs);
      this.#playing = null;
    }
    if (this.#turn && this.#turn.turn <= through) this.#done = true;
  }

  #linger(subtitle: Subtitle, atMs: number): void {
    this.#line = { subtitle, untilMs: atMs + LINGER_MS };
    this.#holdUntil = atMs + HOLD_MS;
  }

  #feelingAt(atMs: number): Feeling {
    const over = this.#holdUntil === null ? 0 : (atMs - this.#holdUntil) / FADE_MS;
    const left = 1 - Math.min(Math.max(over, 0), 1);
    if (left <= 0 || this.#feeling.emotion === "neutral") return NEUTRAL;
    return { emotion: this.#feeling.emotion, intensity: this.#feeling.intensity * left };
  }

  #state(): FaceState {
    if (this.#playing || this.#speaking !== null) return "speaking";
    if (this.listen === "user_speaking") return "listening";
    if (!this.#done || this.listen === "thinking") return "thinking";
    return this.listen === "idle" ? "idle" : "listening";
  }
}
