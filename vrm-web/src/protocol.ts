/** The events of `GET /events`, as far as the page uses them. `docs/http-api.md` describes all. */

export interface SegmentId {
  turn: number;
  index: number;
}

export interface VisemeFrame {
  at_ms: number;
  aa: number;
  ih: number;
  ou: number;
  ee: number;
  oh: number;
}

export const VOWELS = ["aa", "ih", "ou", "ee", "oh"] as const;
export type Vowel = (typeof VOWELS)[number];
export type Mouth = Record<Vowel, number>;

export interface Feeling {
  emotion: string;
  intensity: number;
}

export interface Segment {
  id: SegmentId;
  display: string;
  spoken: string;
  feeling: Feeling;
  visemes: VisemeFrame[];
  duration_ms: number;
  media: string;
  /** Byte offset in `spoken` (UTF-8) and ms. */
  words: [number, number][];
}

export type FaceState = "idle" | "listening" | "thinking" | "speaking";
export type ListenState =
  | "idle"
  | "listening"
  | "user_speaking"
  | "deciding"
  | "thinking"
  | "speaking"
  | "interrupted";

export interface MicStatus {
  state: "off" | "opening" | "live" | "muted" | "lost";
  device: string | null;
  reason: string | null;
}

export interface Playing {
  segment: SegmentId;
  played_ms: number;
}

export interface Subtitle {
  text: string;
  said: string;
}

export interface Turn {
  turn: number;
  source: "voice" | "page" | "terminal";
  user_text: string;
  said: string;
}

export interface HistoryEntry {
  turn: number;
  from_user: boolean;
  text: string;
  interrupted: boolean;
}

export interface SceneMessage {
  state: FaceState;
  listen: ListenState;
  mic: MicStatus;
  turn: Turn | null;
  segments: Segment[];
  playing: Playing | null;
  subtitle: Subtitle;
  feeling: Feeling;
}

interface Stamped {
  at_ms: number;
  /** Sent again to a viewer that was away; what it is about is over. */
  replayed?: boolean;
}

/** Something the person should know. */
export type Notice = { level: "info" | "warning" | "error"; code: string; text: string; hint: string | null };

export type Snapshot = Stamped & {
  type: "snapshot";
  epoch: string;
  name: string;
  volume: number;
  mode: "open" | "half-duplex" | "push-to-talk";
  history: HistoryEntry[];
  /** Faults that still stand. */
  notices: Notice[];
  scene: SceneMessage;
};

export type AliceEvent = Stamped &
  (
    | ({ type: "mic" } & MicStatus)
    | { type: "listen"; state: ListenState }
    | { type: "transcript"; turn: number | null; text: string; is_final: boolean }
    | { type: "turn_started"; turn: number; source: Turn["source"]; user_text: string; draft: boolean }
    | { type: "turn_discarded"; turn: number }
    | { type: "turn_completed"; turn: number; content: string; interrupted: boolean }
    | { type: "turn_failed"; turn: number; error: string }
    | ({ type: "segment_ready" } & Segment)
    | { type: "segment_started"; segment: SegmentId }
    | { type: "segment_progress"; segment: SegmentId; played_ms: number }
    | { type: "segment_finished"; segment: SegmentId }
    | { type: "segment_skipped"; segment: SegmentId; display: string; reason: string }
    | { type: "speaking_started"; turn: number }
    | { type: "speaking_ended"; turn: number }
    | { type: "interrupted"; turn: number | null; cause: string }
    | { type: "feeling"; segment: SegmentId | null; feeling: Feeling }
    | ({ type: "notice" } & Notice)
    | { type: "volume"; volume: number }
  );

/** Event names that the page listens to, beside `snapshot`. */
export const EVENT_TYPES: AliceEvent["type"][] = [
  "mic",
  "listen",
  "transcript",
  "turn_started",
  "turn_discarded",
  "turn_completed",
  "turn_failed",
  "segment_ready",
  "segment_started",
  "segment_progress",
  "segment_finished",
  "segment_skipped",
  "speaking_started",
  "speaking_ended",
  "interrupted",
  "feeling",
  "notice",
  "volume",
];

export function sameSegment(a: SegmentId, b: SegmentId): boolean {
  return a.turn === b.turn && a.index === b.index;
}
