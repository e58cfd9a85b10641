/** How lively the figure is and how much it may cost: the address, then what was kept, then the system. */
import { clamp } from "./curves";

export interface SceneSettings {
  /** How much the body moves, 0–1.5; 1 is as designed. */
  motion: number;
  /** No gestures and small expressions that nothing asked for. */
  calm: boolean;
  look: "camera" | "cursor";
  /** Most frames a second. */
  fps: number;
  /** Most pixels for each of the page's, along one side. */
  pixels: number;
  /** Longest side of a texture; larger ones are made smaller. */
  textures: number;
}

export const DEFAULTS: Readonly<SceneSettings> = Object.freeze({
  motion: 1,
  calm: false,
  look: "camera",
  fps: 40,
  pixels: 1.5,
  textures: 2048,
});

/** What is left of movement for people who asked their system for less. */
const REDUCED = { motion: 0.3, calm: true };

const BOUNDS = { motion: [0, 1.5], fps: [5, 120], pixels: [0.5, 3], textures: [128, 8192] } as const;

export const KEY = "alice.scene";

/**
 * `query` is the address's (`?motion=0.5&calm=1&look=cursor`), `kept` the JSON of an earlier visit. What
 * can't be read counts as not said.
 */
export function settingsFrom(query: string, kept: string | null, reduced: boolean): SceneSettings {
  const settings: SceneSettings = { ...DEFAULTS, ...(reduced ? REDUCED : {}) };
  const take = (said: Record<string, unknown>): void => {
    for (const name of ["motion", "fps", "pixels", "textures"] as const) {
      const value = said[name];
      const number = typeof value === "string" && value.trim() === "" ? NaN : Number(value ?? NaN);
      if (Number.isFinite(number)) settings[name] = clamp(number, BOUNDS[name][0], BOUNDS[name][1]);
    }
    if (said["calm"] !== undefined) settings.calm = ["1", "true", ""].includes(String(said["calm"]));
    if (said["look"] === "camera" || said["look"] === "cursor") settings.look = said["look"];
  };
  try {
    const earlier: unknown = JSON.parse(kept ?? "{}");
    if (typeof earlier === "object" && earlier !== null) take(earlier as Record<string, unknown>);
  } catch {
    // Nothing that can be used was kept.
  }
  take(Object.fromEntries(new URLSearchParams(query)));
  return settings;
}
