/** What this browser remembers of its sound. */
import { clamp } from "../curves";

export interface SoundPreferences {
  /** `deviceId` of the microphone and the loudspeaker; empty: what the browser takes by itself. */
  input: string;
  output: string;
  /** What the loudspeaker lags behind what the browser knows of, ms: Bluetooth, a television. */
  offset_ms: number;
}

export const SOUND_KEY = "alice.sound";
export const OFFSET_MS = { min: -200, max: 1_000 } as const;

/** Reads what was kept; what can't be read counts as not said. */
export function soundPreferences(kept: string | null): SoundPreferences {
  const preferences: SoundPreferences = { input: "", output: "", offset_ms: 0 };
  try {
    const said = JSON.parse(kept ?? "{}") as Record<string, unknown> | null;
    for (const end of ["input", "output"] as const) {
      const id = said?.[end];
      if (typeof id === "string") preferences[end] = id;
    }
    const offset = said?.["offset_ms"];
    if (typeof offset === "number" && Number.isFinite(offset)) preferences.offset_ms = clamp(offset, OFFSET_MS.min, OFFSET_MS.max);
  } catch {
    // Nothing that can be used was kept.
  }
  return preferences;
}
