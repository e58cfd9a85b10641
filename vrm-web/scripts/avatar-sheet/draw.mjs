/** Runs in the browser: loads models and draws a set of cells into one picture. */
import * as THREE from "three";
import { GLTFLoader } from "three/examples/jsm/loaders/GLTFLoader.js";
import { VRMLoaderPlugin, VRMUtils } from "@pixiv/three-vrm";

/** The standing pose of the page (`src/motion.ts`). */
const STANDING = {
  spine: [0.015, 0, 0],
  leftUpperArm: [0.1, 0.06, -1.27],
  rightUpperArm: [0.1, -0.06, 1.27],
  leftLowerArm: [0, -0.28, -0.06],
  rightLowerArm: [0, 0.28, 0.06],
  leftHand: [0.08, 0, 0.05],
  rightHand: [0.08, 0, -0.05],
};
/** Seconds for which hair and cloth settle before a picture is taken. */
const SETTLE_S = 1.5;

async function load(url) {
  const loader = new GLTFLoader();
  loader.register((parser) => new VRMLoaderPlugin(parser));
  const gltf = await loader.loadAsync(url);
  const vrm = gltf.userData.vrm;
  VRMUtils.rotateVRM0(vrm);
  VRMUtils.removeUnnecessaryVertices(gltf.scene);
  VRMUtils.combineSkeletons(gltf.scene);
  vrm.scene.traverse((object) => {
    object.frustumCulled = false;
  });
  vrm.lookAt.target = new THREE.Object3D();
  return vrm;
}

const FRAME = {
  /** As the page frames it. */
  page: (head, tall) => ({ target: [0, head.y - tall * 0.02, 0], from: head.y + tall * 0.2, high: 3.1 * tall }),
  face: (head, tall) => ({ target: [0, head.y + tall * 0.42, 0], from: head.y + tall * 0.44, high: 1.4 * tall }),
  body: (head, tall, top) => ({ target: [0, top / 2, 0], from: top * 0.55, high: top * 1.08 }),
  torso: (head, tall) => ({ target: [0, head.y - tall * 0.55, 0], from: head.y - tall * 0.3, high: 1.5 * tall }),
  hand: (head, tall, top) => ({ target: [0, top * 0.45, 0.03], from: top * 0.47, high: top * 0.2 }),
  hands: (head, tall, top) => ({ target: [0, top * 0.52, 0], from: top * 0.55, high: top * 0.3 }),
  feet: (head, tall, top) => ({ target: [0, top * 0.16, 0], from: top * 0.3, high: top * 0.36 }),
};

function place(camera, vrm, cell, aspect) {
  const head = new THREE.Vector3();
  vrm.humanoid.getRawBoneNode("head").getWorldPosition(head);
  const { top } = vrm.userData ?? {};
  const tall = top - head.y;
  const { target, from, high } = FRAME[cell.frame ?? "page"](head, tall, top);
  const distance = (high / 2 / Math.tan((camera.fov * Math.PI) / 360)) * Math.max(1, 0.74 / aspect);
  const turn = ((cell.turn ?? 0) * Math.PI) / 180;
  const rise = ((cell.rise ?? 0) * Math.PI) / 180;
  camera.position.set(distance * Math.sin(turn) * Math.cos(rise), from + distance * Math.sin(rise), distance * Math.cos(turn) * Math.cos(rise));
  camera.lookAt(...target);
  camera.updateMatrixWorld();
  const gaze = cell.gaze ?? [0, 0];
  vrm.lookAt.target.position.set(gaze[0], head.y + tall * 0.35 + gaze[1], 2);
  vrm.lookAt.target.updateMatrixWorld();
}

function pose(vrm, bones) {
  const sign = vrm.meta.metaVersion === "0" ? -1 : 1;
  vrm.humanoid.resetNormalizedPose();
  for (const [name, [x, y, z]] of Object.entries(bones)) vrm.humanoid.getNormalizedBoneNode(name)?.rotation.set(x * sign, y, z * sign);
}

window.draw = async ({ cells, columns, size: [width, height], models, quality = 0.9, type, background = "#eef1f6" }) => {
  const canvas = document.createElement("canvas");
  const renderer = new THREE.WebGLRenderer({ canvas, antialias: true, alpha: true, preserveDrawingBuffer: true });
  renderer.setSize(width, height, false);
  const camera = new THREE.PerspectiveCamera(24, width / height, 0.05, 30);
  const sheet = document.createElement("canvas");
  const rows = Math.ceil(cells.length / columns);
  sheet.width = width * columns;
  sheet.height = height * rows * models;
  const pen = sheet.getContext("2d");
  pen.fillStyle = background;
  pen.fillRect(0, 0, sheet.width, sheet.height);
  for (let model = 0; model < models; model++) {
    const scene = new THREE.Scene();
    const key = new THREE.DirectionalLight(0xffffff, 2.2);
    key.position.set(0.6, 1.6, 2);
    scene.add(key, new THREE.AmbientLight(0xffffff, 1.1));
    const vrm = await load(`/model/${model}`);
    scene.add(vrm.scene, vrm.lookAt.target);
    vrm.scene.updateMatrixWorld(true);
    vrm.userData = { top: new THREE.Box3().setFromObject(vrm.scene).max.y };
    let triangles = 0;
    vrm.scene.traverse((object) => {
      if (object.isMesh) triangles += (object.geometry.index?.count ?? 0) / 3;
    });
    console.log(`model ${model}: ${triangles} triangles, expressions: ${vrm.expressionManager.expressions.map((e) => e.expressionName).join(" ")}`);
    let last = null;
    for (const [k, cell] of cells.entries()) {
      const bones = cell.rest ? {} : { ...STANDING, ...cell.bones };
      pose(vrm, bones);
      for (const expression of vrm.expressionManager.expressions) vrm.expressionManager.setValue(expression.expressionName, 0);
      for (const [name, weight] of Object.entries(cell.face ?? {})) vrm.expressionManager.setValue(name, weight);
      place(camera, vrm, cell, width / height);
      const now = JSON.stringify(bones);
      const steps = now === last ? 1 : SETTLE_S * 60;
      if (now !== last) {
        vrm.update(0);
        vrm.springBoneManager?.reset();
      }
      last = now;
      for (let step = 0; step < steps; step++) vrm.update(1 / 60);
      vrm.scene.traverse((object) => {
        const on = cell.only === undefined || !object.isMesh || object.material.name?.match(cell.only) || [object.material].flat().some((m) => m.name?.match(cell.only));
        if (object.isMesh) object.visible = Boolean(on);
      });
      renderer.render(scene, camera);
      const [x, y] = [(k % columns) * width, (model * rows + Math.floor(k / columns)) * height];
      pen.drawImage(canvas, x, y);
      if (cell.label) {
        pen.font = "600 15px sans-serif";
        pen.fillStyle = "#4a5468";
        pen.fillText(cell.label, x + 10, y + height - 10);
      }
    }
    scene.remove(vrm.scene);
  }
  return sheet.toDataURL(type, quality);
};
