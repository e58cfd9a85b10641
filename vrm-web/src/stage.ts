/** The renderer, the camera and the loop. One renderer for the life of the page. */
import {
  AmbientLight,
  Color,
  DirectionalLight,
  PerspectiveCamera,
  Raycaster,
  Scene,
  SRGBColorSpace,
  Vector2,
  Vector3,
  WebGLRenderer,
} from "three";
import type { Avatar } from "./avatar";
import type { Spot } from "./gaze";
import { Pacer, type Frame } from "./pace";
import { capsulesOf, touched, type Region } from "./touch";

/** How far the eyes go for a spot at the edge of the picture; more than there is, as people see from the side. */
const GAZE_REACH = 1.5;
/** Frames whose cost is remembered. */
const COSTS = 300;

export interface Cost {
  /** Everything of ours in a frame, ms. */
  script: number;
  /** What three.js and the driver take to draw it, ms. */
  draw: number;
}

export class Stage {
  frames = 0;
  readonly costs: Cost[] = [];
  readonly pacer: Pacer;
  readonly #scene = new Scene();
  readonly #camera = new PerspectiveCamera(24, 1, 0.05, 30);
  readonly #renderer: WebGLRenderer;
  readonly #raycaster = new Raycaster();
  #avatar: Avatar | null = null;
  #distance = 1;
  #headHeight = 0.2;
  #lost = false;

  /** `step` is called for each frame that will be drawn, to pose the avatar. */
  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly step: (avatar: Avatar, frame: Frame) => void,
    fps: number,
    private pixels: number,
  ) {
    this.pacer = new Pacer(fps);
    this.#renderer = new WebGLRenderer({ canvas, antialias: true, alpha: true, powerPreference: "low-power" });
    this.#renderer.outputColorSpace = SRGBColorSpace;
    this.#renderer.setClearColor(new Color(0xffffff), 0);
    const key = new DirectionalLight(0xffffff, 2.2);
    key.position.set(0.6, 1.6, 2);
    this.#scene.add(key, new AmbientLight(0xffffff, 1.1));
    new ResizeObserver(() => this.#frame()).observe(canvas);
    document.addEventListener("visibilitychange", () => this.pacer.pause());
    // three.js asks for the context back by itself and sends everything to it again.
    canvas.addEventListener("webglcontextlost", () => {
      this.#lost = true;
    });
    canvas.addEventListener("webglcontextrestored", () => {
      this.#lost = false;
      this.pacer.pause();
    });
  }

  /** Whether the GPU has taken its context away, and not given it back yet. */
  get lost(): boolean {
    return this.#lost;
  }

  /** How many things the GPU holds. */
  get held(): { geometries: number; textures: number; programs: number } {
    const { memory, programs } = this.#renderer.info;
    return { geometries: memory.geometries, textures: memory.textures, programs: programs?.length ?? 0 };
  }

  limit(fps: number, pixels: number): void {
    this.pacer.fps = fps;
    this.pixels = pixels;
    this.#frame();
  }

  /** Shows an avatar in the place of the one before. It has its pose before it is in the picture. */
  show(avatar: Avatar): void {
    const before = this.#avatar;
    this.#avatar = avatar;
    this.#frame();
    this.step(avatar, { dtS: 0, passedS: 0, resumed: true });
    avatar.addTo(this.#scene);
    before?.dispose();
  }

  start(): void {
    // The browser itself stops this for hidden pages.
    this.#renderer.setAnimationLoop((now) => this.#tick(now));
  }

  #tick(now: number): void {
    const avatar = this.#avatar;
    if (!avatar || this.#lost || document.hidden) return;
    const frame = this.pacer.next(now);
    if (!frame) return;
    const begun = performance.now();
    this.step(avatar, frame);
    const posed = performance.now();
    this.#renderer.render(this.#scene, this.#camera);
    this.frames++;
    this.costs.push({ script: posed - begun, draw: performance.now() - posed });
    if (this.costs.length > COSTS) this.costs.shift();
  }

  /** Puts head and chest in the picture, whatever the model's height and the window's shape. */
  #frame(): void {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (width === 0 || height === 0) return;
    this.#renderer.setPixelRatio(Math.min(devicePixelRatio, this.pixels));
    this.#renderer.setSize(width, height, false);
    this.#camera.aspect = width / height;
    if (this.#avatar) {
      const { head, top } = this.#avatar.measure();
      const headHeight = Math.max(top - head.y, 0.1);
      const middle = new Vector3(head.x, head.y + headHeight * 0.1, head.z);
      const tall = headHeight * 3.1;
      const wide = headHeight * 2.3;
      const half = Math.tan((this.#camera.fov * Math.PI) / 360);
      const distance = Math.max(tall / 2 / half, wide / 2 / half / this.#camera.aspect);
      this.#camera.position.set(middle.x, middle.y + headHeight * 0.1, middle.z + distance);
      this.#camera.lookAt(middle.x, middle.y - headHeight * 0.12, middle.z);
      this.#distance = distance;
      this.#headHeight = headHeight;
    }
    this.#camera.updateProjectionMatrix();
  }

  /** A place on the page as a spot for the gaze: in halves of the picture's height, from her face. */
  spot(clientX: number, clientY: number): Spot {
    const { left, top, width, height } = this.canvas.getBoundingClientRect();
    const half = Math.max(height, 1) / 2;
    return [(clientX - left - width / 2) / half, (top + height / 2 - clientY) / half];
  }

  /** Lets an avatar look at a spot; 0, 0 is the camera. */
  look(avatar: Avatar, [x, y]: Spot): void {
    const reach = Math.tan((this.#camera.fov * Math.PI) / 360) * this.#distance * GAZE_REACH;
    const { position } = this.#camera;
    avatar.gaze.position.set(position.x + x * reach, position.y + y * reach, position.z);
    avatar.gaze.updateMatrixWorld();
  }

  /** The part of her that is under a place on the page. */
  under(clientX: number, clientY: number): Region | null {
    if (!this.#avatar) return null;
    const { left, top, width, height } = this.canvas.getBoundingClientRect();
    const place = new Vector2(((clientX - left) / width) * 2 - 1, 1 - ((clientY - top) / height) * 2);
    this.#raycaster.setFromCamera(place, this.#camera);
    const { origin, direction } = this.#raycaster.ray;
    return touched(origin, direction, capsulesOf(this.#avatar.joints(this.#headHeight), this.#headHeight));
  }
}
