/** The renderer, the camera and the loop. One renderer for the life of the page. */
import {
  AmbientLight,
  Color,
  DirectionalLight,
  PerspectiveCamera,
  Scene,
  SRGBColorSpace,
  Vector3,
  WebGLRenderer,
} from "three";
import type { Avatar } from "./avatar";

const FRAMES_PER_SECOND = 40;
const PIXEL_RATIO = 1.5;

export class Stage {
  frames = 0;
  readonly #scene = new Scene();
  readonly #camera = new PerspectiveCamera(24, 1, 0.05, 30);
  readonly #renderer: WebGLRenderer;
  #avatar: Avatar | null = null;
  #last = 0;

  /** `step` is called before each drawn frame with seconds since the last one. */
  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly step: (avatar: Avatar, dtS: number) => void,
  ) {
    this.#renderer = new WebGLRenderer({ canvas, antialias: true, alpha: true, powerPreference: "low-power" });
    this.#renderer.outputColorSpace = SRGBColorSpace;
    this.#renderer.setClearColor(new Color(0xffffff), 0);
    this.#renderer.setPixelRatio(Math.min(devicePixelRatio, PIXEL_RATIO));
    const key = new DirectionalLight(0xffffff, 2.2);
    key.position.set(0.6, 1.6, 2);
    this.#scene.add(key, new AmbientLight(0xffffff, 1.1));
    new ResizeObserver(() => this.#frame()).observe(canvas);
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) return;
      this.#last = 0;
      this.#avatar?.settle();
    });
  }

  /** Shows an avatar in the place of the one before. It must have its pose already. */
  show(avatar: Avatar): void {
    this.#avatar?.dispose();
    this.#avatar = avatar;
    avatar.addTo(this.#scene);
    this.#frame();
    this.step(avatar, 0);
    avatar.update(0);
    avatar.settle();
  }

  start(): void {
    // The browser itself stops this for hidden pages.
    this.#renderer.setAnimationLoop((now) => this.#tick(now));
  }

  #tick(now: number): void {
    const avatar = this.#avatar;
    if (!avatar || document.hidden) return;
    const since = now - this.#last;
    if (since < 1000 / FRAMES_PER_SECOND - 4) return;
    const dtS = this.#last === 0 ? 0 : since / 1000;
    this.#last = now;
    this.step(avatar, dtS);
    avatar.update(dtS);
    this.#renderer.render(this.#scene, this.#camera);
    this.frames++;
  }

  /** Puts head and chest in the picture, whatever the model's height and the window's shape. */
  #frame(): void {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (width === 0 || height === 0) return;
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
      this.gazeFrom(this.#avatar, [0, 0]);
    }
    this.#camera.updateProjectionMatrix();
  }

  /** Lets an avatar look so far beside the camera. */
  gazeFrom(avatar: Avatar, [x, y]: [number, number]): void {
    avatar.gaze.position.set(this.#camera.position.x + x, this.#camera.position.y + y, this.#camera.position.z);
  }
}
