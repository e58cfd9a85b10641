import { describe, expect, it } from "vitest";
import { choices, has } from "../src/sound/devices";
import { Framer } from "../src/sound/framer";
import { constraints, standsInTheWay, whyNoMicrophone } from "../src/sound/microphone";
import { soundPreferences } from "../src/sound/preferences";
import { WARM_UP_MS, WarmUp } from "../src/sound/warm-up";

describe("the microphone's frames", () => {
  it.each([8_000, 16_000, 44_100, 48_000])("are 20 ms long at %i Hz, whatever the blocks", (rate) => {
    const framer = new Framer(rate);
    const sent: number[] = [];
    for (let at = 0; at < rate; at += 128) {
      const block = Float32Array.from({ length: Math.min(128, rate - at) }, (_, i) => ((at + i) % 1_000) / 2_000);
      for (const frame of framer.push([block])) {
        expect(frame.byteLength).toBe((rate / 50) * 2);
        const view = new DataView(frame);
        for (let i = 0; i < frame.byteLength; i += 2) sent.push(view.getInt16(i, true));
      }
    }
    expect(sent).toHaveLength(rate);
    sent.forEach((sample, i) => expect(sample).toBe(Math.round(Math.fround((i % 1_000) / 2_000) * 32_767)));
  });

  it("are mixed, limited, and never broken by what a driver brings", () => {
    const framer = new Framer(100);
    expect(framer.push([])).toEqual([]);
    const frame = framer.push([Float32Array.of(1, 4), Float32Array.of(0, 4)])[0]!;
    expect([...new Int16Array(frame)]).toEqual([16_384, 32_767]);
    const odd = framer.push([Float32Array.of(NaN, -Infinity)])[0]!;
    expect([...new Int16Array(odd)]).toEqual([0, -32_767]);
  });
});

describe("the microphone", () => {
  it("is asked for with the canceller, without gain control, and by its id when one was chosen", () => {
    expect(constraints("")).toEqual({ audio: { echoCancellation: true, noiseSuppression: true, autoGainControl: false, channelCount: 1 } });
    expect(constraints("abc")).toMatchObject({ audio: { deviceId: { exact: "abc" } } });
  });

  it("is not there without HTTPS, and the line says what to do", () => {
    expect(standsInTheWay(true, true, "alice.example")).toBeNull();
    expect(standsInTheWay(false, false, "192.0.2.7")).toMatchObject({ text: expect.stringContaining("192.0.2.7"), hint: expect.stringContaining("HTTPS") });
    expect(standsInTheWay(true, false, "localhost")?.hint).toContain("Firefox");
  });

  it.each(["NotAllowedError", "NotFoundError", "NotReadableError", "OverconstrainedError"])("tells what %s means and what to do", (name) => {
    const { text, hint } = whyNoMicrophone(name);
    expect(text).toContain("only the loudspeaker");
    expect(hint).not.toBe("");
  });
});

describe("an echo canceller that was just started", () => {
  it("is given the first second of her voice to learn, and the user is heard before, between and after", () => {
    const warmUp = new WarmUp();
    const frame = Int16Array.of(1, 2).buffer;
    const heard = (sounds: boolean): boolean => warmUp.pass(frame, sounds) === frame;
    expect(heard(false)).toBe(true);
    const silence = warmUp.pass(frame, true);
    expect([...new Int16Array(silence)]).toEqual([0, 0]);
    for (let ms = 20; ms < WARM_UP_MS / 2; ms += 20) expect(heard(true)).toBe(false);
    expect(heard(false)).toBe(true);
    for (let ms = WARM_UP_MS / 2; ms < WARM_UP_MS; ms += 20) expect(heard(true)).toBe(false);
    expect(heard(true)).toBe(true);
  });
});

describe("devices", () => {
  it("begin with the browser's choice; twins and names that are not told are left out or numbered", () => {
    const found = choices([
      { kind: "audioinput", deviceId: "default", label: "Default - Desk" },
      { kind: "audioinput", deviceId: "a", label: "Desk" },
      { kind: "audioinput", deviceId: "a", label: "Desk" },
      { kind: "audioinput", deviceId: "b", label: "" },
      { kind: "videoinput", deviceId: "c", label: "Camera" },
      { kind: "audiooutput", deviceId: "d", label: "Headset" },
    ]);
    expect(found.inputs).toEqual([{ id: "", label: "Chosen by the browser" }, { id: "a", label: "Desk" }, { id: "b", label: "Microphone 2" }]);
    expect(found.outputs.map(({ id }) => id)).toEqual(["", "d"]);
    expect(has(found.outputs, "d") && !has(found.outputs, "gone")).toBe(true);
    // Before the permission there are no ids.
    expect(choices([{ kind: "audioinput", deviceId: "", label: "" }]).inputs).toHaveLength(1);
  });
});

describe("what the browser remembers", () => {
  it("is read with care", () => {
    const nothing = { input: "", output: "", offset_ms: 0 };
    for (const kept of [null, "", "null", "[]", "{", '{"input":7,"offset_ms":"late"}']) expect(soundPreferences(kept)).toEqual(nothing);
    expect(soundPreferences('{"input":"a","output":"b","offset_ms":180}')).toEqual({ input: "a", output: "b", offset_ms: 180 });
    expect(soundPreferences('{"offset_ms":9999}').offset_ms).toBe(1_000);
  });
});
