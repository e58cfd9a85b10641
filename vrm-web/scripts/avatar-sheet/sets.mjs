/** What is drawn: sets of cells. `turn` and `rise` are degrees around and above the figure. */

const MOODS = ["neutral", "happy", "sad", "angry", "surprised", "relaxed", "thinking", "shy", "fearful", "disgusted", "excited", "confused", "loving"];
const VOWELS = ["aa", "ih", "ou", "ee", "oh"];
const face = (name, more = {}) => ({ label: name, frame: "face", face: { [name]: 1 }, ...more });

const views = [0, 40, 90, 180].map((turn) => ({ turn }));
const moods = MOODS.map((name) => face(name));
const lids = [face("blink"), face("blinkLeft"), face("blinkRight")];
const vowels = VOWELS.map((name) => face(name));
const looks = [["left", [1.2, 0]], ["right", [-1.2, 0]], ["up", [0, 0.9]], ["down", [0, -0.9]]].map(([label, gaze]) => ({ label: `look ${label}`, frame: "face", gaze }));

export const SETS = {
  views: { columns: 4, size: [480, 560], cells: views },
  moods: { columns: 5, size: [380, 380], cells: [...moods, ...lids.slice(0, 2)] },
  vowels: { columns: 5, size: [380, 380], cells: [...vowels, ...vowels.map((cell) => ({ ...cell, face: { ...cell.face, happy: 0.7 } })), ...looks, face("blinkRight")] },
  close: { columns: 3, size: [640, 640], cells: [0, 35, 80].map((turn) => ({ frame: "face", turn })) },
  body: { columns: 4, size: [420, 860], cells: [...[0, 40, 180].map((turn) => ({ frame: "body", turn })), { frame: "body", rest: true }] },
  detail: { columns: 3, size: [560, 560], cells: [{ frame: "torso" }, { frame: "torso", turn: 40 }, { frame: "hand", turn: 80 }, { frame: "feet", turn: 40 }, { frame: "torso", turn: 150 }, { frame: "hand", turn: -80 }] },
  bent: {
    columns: 4,
    size: [420, 620],
    cells: [
      { turn: 15, bones: { head: [0, 0.6, 0.15], neck: [0, 0.3, 0] } },
      { turn: 30, bones: { spine: [0.3, 0, 0], chest: [0.25, 0, 0], head: [0.2, 0, 0] } },
      { turn: 10, bones: { rightUpperArm: [0, 0, -0.9], rightLowerArm: [0, 0.2, -1.5], leftUpperArm: [0, -0.6, -1.1], leftLowerArm: [0, -2, 0] } },
      { frame: "body", turn: 40, bones: { leftUpperLeg: [-1.2, 0, 0], leftLowerLeg: [1.3, 0, 0], rightUpperLeg: [0.3, 0, 0], rightLowerLeg: [0.5, 0, 0] } },
    ],
  },
  mixed: {
    columns: 5,
    size: [380, 380],
    cells: [
      ...["sad", "angry", "happy", "surprised", "shy"].map((name) => ({ label: `${name} + blink`, frame: "face", face: { [name]: 1, blink: 1 } })),
      ...["sad", "relaxed", "excited", "fearful", "loving"].map((name) => ({ label: `${name} 0.5`, frame: "face", face: { [name]: 0.5 } })),
      ...["sad", "angry", "surprised", "relaxed", "loving"].map((name) => ({ label: `${name} 0.7 + aa`, frame: "face", turn: 30, face: { [name]: 0.7, aa: 0.8 } })),
    ],
  },
  sheet: {
    columns: 6,
    size: [300, 300],
    quality: 0.85,
    cells: [
      ...[0, 40, 90, 180].map((turn) => ({ frame: "body", turn })),
      { label: "page", frame: "page" },
      { frame: "page", turn: 35 },
      ...moods,
      ...lids,
      ...vowels,
      ...looks.slice(0, 3),
    ],
  },
};
