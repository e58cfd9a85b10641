import { AnimationClip, Bone, Object3D, Quaternion, QuaternionKeyframeTrack, Vector3, VectorKeyframeTrack } from "three";
import { describe, expect, it } from "vitest";
import { Latest } from "../src/latest";
import { Pacer, substeps } from "../src/pace";
import { Puppet } from "../src/puppet";
import { boneOf, retarget } from "../src/retarget";
import { DEFAULTS, settingsFrom } from "../src/settings";
import { fitted } from "../src/textures";
import { capsulesOf, COOL_DOWN_S, Touch, touched, type Joints } from "../src/touch";

describe("frames", () => {
  const drawn = (fps: number, screen: number): number => {
    const pacer = new Pacer(fps);
    let count = 0;
    for (let i = 0; i < screen * 10; i++) if (pacer.next((i * 1000) / screen)) count++;
    return count / 10;
  };

  it("are no more than the cap, on screens of any rate", () => {
    expect(drawn(40, 60)).toBeGreaterThan(29);
    expect(drawn(40, 60)).toBeLessThan(41.5);
    expect(drawn(30, 144)).toBeGreaterThan(28);
    expect(drawn(30, 144)).toBeLessThan(32);
    expect(drawn(40, 8)).toBeCloseTo(8, 0);
  });

  it("stand for the time that passed, never for a pause", () => {
    const pacer = new Pacer(40);
    expect(pacer.next(0)).toEqual({ dtS: 0, passedS: 1, resumed: true });
    expect(pacer.next(10)).toBeNull();
    expect(pacer.next(40)).toEqual({ dtS: 0.04, passedS: 0.04, resumed: false });
    const hitch = pacer.next(440);
    expect(hitch?.dtS).toBeCloseTo(0.1);
    expect(hitch?.passedS).toBeCloseTo(0.4);
    expect(pacer.next(60_000)).toEqual({ dtS: 0, passedS: 1, resumed: true });
    pacer.pause();
    expect(pacer.next(60_040)).toEqual({ dtS: 0, passedS: 1, resumed: true });
  });

  it("step physics at about 60 Hz, however long they are", () => {
    expect(substeps(0)).toEqual({ count: 0, stepS: 0 });
    for (const dtS of [1 / 120, 1 / 60, 1 / 40, 1 / 30, 1 / 20, 1 / 8, 3]) {
      const { count, stepS } = substeps(dtS);
      expect(stepS).toBeLessThanOrEqual(1 / 39);
      expect(count * stepS).toBeLessThanOrEqual(Math.min(dtS, 4 / 60) + 1e-9);
    }
    expect(substeps(1 / 20).count).toBe(3);
  });
});

describe("settings", () => {
  it("come from the address, then what was kept, then the system", () => {
    expect(settingsFrom("", null, false)).toEqual(DEFAULTS);
    expect(settingsFrom("", null, true)).toMatchObject({ motion: 0.3, calm: true });
    expect(settingsFrom("", '{"motion":0.8,"look":"cursor"}', true)).toMatchObject({ motion: 0.8, calm: true, look: "cursor" });
    expect(settingsFrom("?motion=0.5&calm=0", '{"motion":0.8,"calm":true}', true)).toMatchObject({ motion: 0.5, calm: false });
    expect(settingsFrom("?calm", null, false).calm).toBe(true);
  });

  it("ignores what can't be read, and keeps to bounds", () => {
    expect(settingsFrom("?motion=fast&fps=&look=wall", "{", false)).toEqual(DEFAULTS);
    expect(settingsFrom("?motion=99&fps=0&textures=1", "[1]", false)).toMatchObject({ motion: 1.5, fps: 5, textures: 128 });
    expect(fitted(4096, 1024, 2048)).toEqual([2048, 512]);
    expect(fitted(64, 64, 2048)).toEqual([64, 64]);
    expect(fitted(4096, 1, 128)).toEqual([128, 1]);
  });
});

describe("jobs that overlap", () => {
  it("count only if they are the latest, whatever order they end in", async () => {
    const thrown: string[] = [];
    const latest = new Latest<string>((made) => thrown.push(made));
    let end = (_: string): void => undefined;
    const slow = latest.run(() => new Promise<string>((done) => (end = done)), 1_000);
    expect(await latest.run(async () => "second", 1_000)).toBe("second");
    end("first");
    expect(await slow).toBeNull();
    expect(thrown).toEqual(["first"]);
  });

  it("fail with their reason, quietly when stale, and never hang", async () => {
    const thrown: string[] = [];
    const latest = new Latest<string>((made) => thrown.push(made));
    await expect(latest.run(() => Promise.reject(new Error("broken")), 1_000)).rejects.toThrow("broken");
    const stale = latest.run(() => new Promise<string>((_, fail) => setTimeout(() => fail(new Error("late")), 5)), 1_000);
    await latest.run(async () => "newer", 1_000);
    expect(await stale).toBeNull();
    let end = (_: string): void => undefined;
    await expect(latest.run(() => new Promise<string>((done) => (end = done)), 1)).rejects.toThrow("did not load");
    end("too late");
    await Promise.resolve();
    await Promise.resolve();
    expect(thrown).toEqual(["too late"]);
  });
});

describe("touches", () => {
  const joints: Joints = {
    head: { x: 0, y: 1.5, z: 0 },
    crown: { x: 0, y: 1.55, z: 0 },
    leftCheek: { x: 0.05, y: 1.46, z: 0.08 },
    leftUpperArm: { x: 0.15, y: 1.3, z: 0 },
    leftLowerArm: { x: 0.2, y: 1.05, z: 0 },
    leftHand: { x: 0.22, y: 0.85, z: 0.05 },
    leftFingers: { x: 0.22, y: 0.77, z: 0.05 },
  };
  const at = (x: number, y: number): string | null => touched({ x, y, z: 3 }, { x: 0, y: 0, z: -1 }, capsulesOf(joints, 0.2));

  it("meet the part that is nearest under the pointer", () => {
    expect(at(0, 1.58)).toBe("head");
    expect(at(0.06, 1.45)).toBe("cheek");
    expect(at(0.15, 1.32)).toBe("shoulder");
    expect(at(0.19, 1.12)).toBe("arm");
    expect(at(0.22, 0.77)).toBe("hand");
    expect(at(0.6, 1.3)).toBeNull();
    expect(at(0, 1.1)).toBeNull();
    expect(touched({ x: 0, y: 1.5, z: 3 }, { x: 0, y: 0, z: 1 }, capsulesOf(joints, 0.2)), "behind").toBeNull();
  });

  it("are answered, with more each time, after a pause each", () => {
    const touch = new Touch();
    const first = touch.at("head", 0);
    expect(touch.at("head", COOL_DOWN_S - 0.1)).toBeNull();
    const second = touch.at("head", COOL_DOWN_S + 0.1);
    expect(second).not.toEqual(first);
    expect(touch.at("head", 100)).toEqual(first);
  });
});

describe("clips of other skeletons", () => {
  it("know Mixamo's names with any prefix, and VRM's own", () => {
    const names: [string, string | null][] = [
      ["mixamorigHips", "hips"],
      ["mixamorig:Spine1", "chest"],
      ["mixamorig9LeftForeArm", "leftLowerArm"],
      ["Armature|RightUpLeg", "rightUpperLeg"],
      ["mixamorigLeftHandThumb1", "leftThumbMetacarpal"],
      ["mixamorigRightHandPinky3", "rightLittleDistal"],
      ["leftThumbProximal", "leftThumbProximal"],
      ["rightUpperArm", "rightUpperArm"],
      ["mixamorigHeadTop_End", null],
      ["Camera", null],
    ];
    for (const [name, bone] of names) expect(boneOf(name), name).toBe(bone);
  });

  /** Hips and an arm whose rest is turned, in centimetres under a parent that scales them, as exporters do. */
  function skeleton(): { root: Object3D; arm: Bone } {
    const root = new Object3D();
    root.scale.setScalar(0.01);
    const hips = new Bone();
    hips.name = "mixamorigHips";
    hips.position.set(0, 200, 0);
    const arm = new Bone();
    arm.name = "mixamorigLeftArm";
    arm.quaternion.setFromAxisAngle(new Vector3(0, 0, 1), -Math.PI / 2);
    root.add(hips);
    hips.add(arm);
    return { root, arm };
  }

  it("turn as they did, whatever the rest of the bone was, and scale with the hips", () => {
    const { root, arm } = skeleton();
    const down = new Quaternion().setFromAxisAngle(new Vector3(0, 0, 1), -1);
    const clip = new AnimationClip("c", 1, [
      new QuaternionKeyframeTrack("mixamorigLeftArm.quaternion", [0, 1], [...arm.quaternion.toArray(), ...down.clone().multiply(arm.quaternion).toArray()]),
      new VectorKeyframeTrack("mixamorigHips.position", [0, 1], [0, 200, 0, 20, 180, 0]),
      new QuaternionKeyframeTrack("mixamorigHeadTop_End.quaternion", [0], [0, 0, 0, 1]),
    ]);
    const made = retarget(root, clip, 1, false);
    expect(made?.tracks.map((it) => it.name)).toEqual(["leftUpperArm.quaternion", "hips.position"]);
    const [turn, place] = made?.tracks ?? [];
    const last = new Quaternion().fromArray(Array.from(turn?.values ?? []), 4);
    expect(new Quaternion().fromArray(Array.from(turn?.values ?? [])).angleTo(new Quaternion())).toBeCloseTo(0, 2);
    expect(last.angleTo(down)).toBeCloseTo(0, 2);
    expect(Array.from(place?.values ?? []).map((it) => Math.round(it * 1000) / 1000)).toEqual([0, 1, 0, 0.1, 0.9, 0]);
    const zero = retarget(root, clip, 1, true);
    expect(zero?.tracks[0]?.values[6]).toBeCloseTo(-(turn?.values[6] ?? 0));
    expect(zero?.tracks[1]?.values[3]).toBeCloseTo(-0.1);
    expect(retarget(new Object3D(), clip, 1, false)).toBeNull();
  });

  it("move the puppet, fade in and out, and leave what they do not move", () => {
    const puppet = new Puppet(["hips", "head"], 2);
    const turned = new Quaternion().setFromAxisAngle(new Vector3(0, 1, 0), 1);
    puppet.play(new AnimationClip("nod.vrma", 2, [new QuaternionKeyframeTrack("head.quaternion", [0, 2], [...turned.toArray(), ...turned.toArray()])]));
    expect(puppet.playing).toBe("nod.vrma");
    puppet.update(0.1);
    expect(puppet.weight).toBeGreaterThan(0);
    expect(puppet.weight).toBeLessThan(0.5);
    puppet.update(0.9);
    expect(puppet.weight).toBe(1);
    expect(puppet.turn("head")?.angleTo(turned)).toBeCloseTo(0, 2);
    expect(puppet.turn("hips")).toBeNull();
    expect(puppet.place("hips")).toBeNull();
    for (let t = 0; t < 2; t += 0.1) puppet.update(0.1);
    expect(puppet.weight).toBe(0);
    expect(puppet.playing).toBeNull();
  });
});
