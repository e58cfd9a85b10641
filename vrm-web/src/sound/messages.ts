/** What goes over `GET /audio`, as `docs/remote-audio.md` describes it. */
import type { SegmentId } from "../protocol";

export interface Hello {
  name: string;
  /** Hz; 0: no microphone. */
  input_rate: number;
  output_rate: number;
  echo_cancelled: boolean;
  acknowledges: true;
  sets_volume: true;
}

/** Text messages from Alice. */
export type Mark =
  | { type: "ready" }
  | { type: "start"; turn: number; index: number; duration_ms: number }
  | { type: "end"; turn: number; index: number }
  | { type: "flush" }
  | { type: "duck"; on: boolean }
  | { type: "volume"; volume: number };

/** Text messages to Alice, beside the hello. */
export type Ack =
  | ({ type: "played"; ms: number } & SegmentId)
  | ({ type: "finished" } & SegmentId)
  | ({ type: "waiting" } & SegmentId);

/** Reads a text message; `null` for what this page does not know, so that Alice may learn more. */
export function readMark(text: string): Mark | null {
  let said: unknown;
  try {
    said = JSON.parse(text);
  } catch {
    return null;
  }
  if (typeof said !== "object" || said === null) return null;
  const { type, turn, index, duration_ms, on, volume } = said as Record<string, unknown>;
  const named = typeof turn === "number" && typeof index === "number";
  if (type === "ready" || type === "flush") return { type };
  if (type === "start" && named) return { type, turn, index, duration_ms: Number(duration_ms) || 0 };
  if (type === "end" && named) return { type, turn, index };
  if (type === "duck") return { type, on: on === true };
  if (type === "volume" && typeof volume === "number") return { type, volume };
  return null;
}
