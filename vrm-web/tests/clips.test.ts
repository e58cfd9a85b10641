import { Quaternion, Vector3 } from "three";
import type { VRM } from "@pixiv/three-vrm";
import { describe, expect, it } from "vitest";
import { readClip } from "../src/clips";

const SECOND = 46_186_158_000;

/** An FBX file as text, with Mixamo's names and one turn of an arm. */
function fbx(arm: string): ArrayBuffer {
  const curve = (id: number, values: [number, number]): string =>
    `\tAnimationCurve: ${id}, "AnimCurve::", "" {\n\t\tDefault: 0\n\t\tKeyVer: 4008\n\t\tKeyTime: *2 {\n\t\t\ta: 0,${SECOND}\n\t\t}\n\t\tKeyValueFloat: *2 {\n\t\t\ta: ${values.join(",")}\n\t\t}\n\t}\n`;
  const limb = (id: number, name: string, place: string): string =>
    `\tModel: ${id}, "Model::${name}", "LimbNode" {\n\t\tVersion: 232\n\t\tProperties70:  {\n\t\t\tP: "Lcl Translation", "Lcl Translation", "", "A",${place}\n\t\t}\n\t}\n`;
  const node = (id: number, name: string): string =>
    `\tAnimationCurveNode: ${id}, "AnimCurveNode::${name}", "" {\n\t\tProperties70:  {\n\t\t\tP: "d|X", "Number", "", "A",0\n\t\t}\n\t}\n`;
  const text = `; FBX 7.4.0 project file
FBXHeaderExtension:  {
	FBXHeaderVersion: 1003
	FBXVersion: 7400
}
GlobalSettings:  {
	Version: 1000
	Properties70:  {
		P: "UnitScaleFactor", "double", "Number", "",1
	}
}
Objects:  {
${limb(1, "mixamorig:Hips", "0,100,0")}${limb(2, arm, "15,40,0")}\tAnimationStack: 10, "AnimStack::mixamo.com", "" {
		Properties70:  {
			P: "LocalStop", "KTime", "Time", "",${SECOND}
		}
	}
	AnimationLayer: 11, "AnimLayer::BaseLayer", "" {
	}
${node(12, "R")}${curve(13, [0, 0])}${curve(14, [0, 0])}${curve(15, [0, 60])}}
Connections:  {
	C: "OO",1,0
	C: "OO",2,1
	C: "OO",11,10
	C: "OO",12,11
	C: "OP",12,2, "Lcl Rotation"
	C: "OP",13,12, "d|X"
	C: "OP",14,12, "d|Y"
	C: "OP",15,12, "d|Z"
}
`;
  return new TextEncoder().encode(text).buffer as ArrayBuffer;
}

/** As much of an avatar as a clip needs. */
const vrm = (metaVersion: "0" | "1"): VRM =>
  ({ humanoid: { normalizedRestPose: { hips: { position: [0, 0.9, 0] } } }, meta: { metaVersion } }) as unknown as VRM;

describe("an FBX clip", () => {
  it("turns the avatar's arm as Mixamo's, mirrored for VRM 0.x", async () => {
    const turned = async (version: "0" | "1"): Promise<Quaternion> => {
      const clip = await readClip("up.fbx", fbx("mixamorig:LeftArm"), vrm(version), []);
      expect(clip.name).toBe("up.fbx");
      expect(clip.duration).toBeCloseTo(1, 1);
      const track = clip.tracks.find((it) => it.name === "leftUpperArm.quaternion");
      return new Quaternion().fromArray(Array.from(track?.values ?? []).slice(-4));
    };
    const up = new Quaternion().setFromAxisAngle(new Vector3(0, 0, 1), Math.PI / 3);
    expect((await turned("1")).angleTo(up)).toBeCloseTo(0, 2);
    expect((await turned("0")).angleTo(up.clone().invert())).toBeCloseTo(0, 2);
  });

  it("without a bone that an avatar has is refused with a reason", async () => {
    await expect(readClip("tail.fbx", fbx("Tail"), vrm("1"), [])).rejects.toThrow("moves no bone");
    await expect(readClip("no.fbx", new TextEncoder().encode("nothing").buffer as ArrayBuffer, vrm("1"), [])).rejects.toThrow();
  });
});
