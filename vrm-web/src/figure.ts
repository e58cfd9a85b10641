/** The avatar on the page: loading it, the one function that makes a frame, and what people do to it. */
import { Avatar } from "./avatar";
import type { Spot } from "./gaze";
import { Latest } from "./latest";
import { Life, type Sense } from "./life";
import type { Frame } from "./pace";
import type { Random } from "./random";
import { KEY, settingsFrom, type SceneSettings } from "./settings";
import { Stage } from "./stage";
import type { Region } from "./touch";

export interface Host {
  /** What happens around her now. */
  sense(): Omit<Sense, "cursor">;
  progress(text: string): void;
  say(level: "info" | "warning" | "error", text: string, hint: string | null): void;
}

const LOAD_MS = 60_000;
/** A context that does not come back by itself in this time needs help, ms. */
const LOST_MS = 10_000;
/** A press that moves further than this, px, was not a touch. */
const TOUCH_MOVE_PX = 8;

const AVATAR_FILE = /\.vrm$/i;
const CLIP_FILE = /\.(vrma|fbx|glb|gltf)$/i;

/** Sent to the window when she was touched, with the part of her as `detail.region`. */
const TOUCHED = "alice:touch";

const reason = (error: unknown): string => (error instanceof Error ? error.message : String(error));

export class Figure {
  readonly life: Life;
  readonly stage: Stage;
  avatar: Avatar | null = null;
  model: "loading" | "ready" | "failed" = "loading";
  eyes: Spot = [0, 0];
  readonly #latest = new Latest<Avatar>((avatar) => avatar.dispose());
  readonly #less = matchMedia("(prefers-reduced-motion: reduce)");
  #cursor: Spot | null = null;

  /** Throws where the browser has no WebGL. */
  constructor(
    canvas: HTMLCanvasElement,
    random: Random,
    private readonly host: Host,
  ) {
    const settings = this.#settings();
    this.life = new Life(random, settings);
    this.stage = new Stage(canvas, (avatar, frame) => this.#make(avatar, frame), settings.fps, settings.pixels);
    this.#less.addEventListener("change", () => this.#settle());
    addEventListener("storage", (event) => {
      if (event.key === KEY) this.#settle();
    });
    this.#point(canvas);
    this.#drop();
    this.#watch(canvas);
  }

  #settings(): SceneSettings {
    let kept: string | null = null;
    try {
      kept = localStorage.getItem(KEY);
    } catch {
      // Some browsers keep nothing for some pages.
    }
    return settingsFrom(location.search, kept, this.#less.matches);
  }

  #settle(): void {
    const settings = this.#settings();
    this.life.settings = settings;
    this.stage.limit(settings.fps, settings.pixels);
  }

  /** One frame. The order matters: whatever moves the mouth comes before the lips, and all before physics. */
  #make(avatar: Avatar, { dtS, passedS, resumed }: Frame): void {
    avatar.puppet.update(dtS);
    const shown = this.life.step(dtS, { ...this.host.sense(), cursor: this.#cursor }, passedS);
    avatar.pose(shown.pose);
    this.stage.look(avatar, shown.eyes);
    avatar.express(shown.face);
    avatar.update(dtS);
    if (resumed) avatar.settle();
    this.eyes = shown.eyes;
  }

  /** Shows the server's avatar. */
  async open(url: string): Promise<void> {
    await this.#wear(
      async () => Avatar.parse(await download(url, (part) => this.host.progress(`Loading the avatar… ${Math.round(part * 100)} %`)), this.life.settings.textures),
      "Remove `avatar.vrm` from Alice's home to use her own, then reload the page.",
    );
  }

  /** True when the new avatar shows; else the one before stays. */
  async #wear(load: () => Promise<Avatar>, hint: string): Promise<boolean> {
    try {
      const avatar = await this.#latest.run(load, LOAD_MS);
      if (!avatar) return false;
      const first = this.avatar === null;
      this.avatar = avatar;
      this.life.wear(avatar.traits);
      this.stage.show(avatar);
      if (first) {
        this.stage.start();
        // A page that is opened in the middle of a talk is not greeted.
        if (this.host.sense().state !== "speaking") this.life.greet();
      }
      this.model = "ready";
      this.host.progress("");
      return true;
    } catch (error) {
      if (!this.avatar) this.model = "failed";
      this.host.progress("");
      this.host.say("error", `The avatar can't be loaded: ${reason(error)}`, hint);
      return false;
    }
  }

  async #take(file: File): Promise<void> {
    if (AVATAR_FILE.test(file.name)) {
      const worn = await this.#wear(async () => Avatar.parse(await file.arrayBuffer(), this.life.settings.textures), "Drop a VRM file, 1.0 or 0.x.");
      if (!worn || !this.avatar) return;
      const { name, authors, licence } = this.avatar.licence;
      this.host.say("info", `${name || file.name}${authors ? ` by ${authors}` : ""}`, licence ? `Licence: ${licence}` : null);
    } else if (CLIP_FILE.test(file.name)) {
      await this.#perform(file);
    } else {
      this.host.say("warning", `\`${file.name}\` is nothing that she can use.`, "Drop a VRM avatar, or a clip: VRMA, FBX or GLB.");
    }
  }

  async #perform(file: File): Promise<void> {
    const { avatar } = this;
    if (!avatar) return;
    try {
      const [{ readClip }, data] = await Promise.all([import("./clips"), file.arrayBuffer()]);
      const clip = await readClip(file.name, data, avatar.vrm, avatar.dials);
      if (avatar !== this.avatar) return;
      this.life.performer.stop();
      avatar.puppet.play(clip);
    } catch (error) {
      this.host.say("error", `\`${file.name}\` can't be played: ${reason(error)}`, "Drop a VRMA, or an FBX or GLB with a skeleton as Mixamo's.");
    }
  }

  /** She was cut off: lips, gestures and clips end. */
  interrupted(): void {
    this.life.interrupted();
    this.avatar?.puppet.stop();
  }

  #point(canvas: HTMLCanvasElement): void {
    addEventListener("pointermove", (event) => {
      this.#cursor = this.stage.spot(event.clientX, event.clientY);
    });
    document.documentElement.addEventListener("pointerleave", () => {
      this.#cursor = null;
    });
    let press: [number, number] | null = null;
    canvas.addEventListener("pointerdown", (event) => {
      press = [event.clientX, event.clientY];
    });
    canvas.addEventListener("pointerup", (event) => {
      if (!press || Math.hypot(event.clientX - press[0], event.clientY - press[1]) > TOUCH_MOVE_PX) return;
      const region = this.stage.under(event.clientX, event.clientY);
      if (!region || !this.life.touch(region)) return;
      this.#cursor = this.stage.spot(event.clientX, event.clientY);
      dispatchEvent(new CustomEvent<{ region: Region }>(TOUCHED, { detail: { region } }));
    });
  }

  #drop(): void {
    addEventListener("dragover", (event) => {
      if (event.dataTransfer?.types.includes("Files")) event.preventDefault();
    });
    addEventListener("drop", (event) => {
      const file = event.dataTransfer?.files[0];
      if (!file) return;
      event.preventDefault();
      void this.#take(file);
    });
  }

  #watch(canvas: HTMLCanvasElement): void {
    let timer: ReturnType<typeof setTimeout> | undefined;
    canvas.addEventListener("webglcontextlost", () => {
      timer = setTimeout(() => {
        this.host.say("error", "The graphics driver took the picture away.", "Talking and writing work all the same. Reload the page to see her again.");
      }, LOST_MS);
    });
    canvas.addEventListener("webglcontextrestored", () => clearTimeout(timer));
  }
}

async function download(url: string, progress: (part: number) => void): Promise<ArrayBuffer> {
  const response = await fetch(url, { signal: AbortSignal.timeout(LOAD_MS) });
  if (!response.ok) {
    const answer = (await response.json().catch(() => null)) as { error?: { message?: string } } | null;
    throw new Error(answer?.error?.message ?? `the server answered ${response.status}`);
  }
  // A packed answer's length is not that of what comes out.
  const total = response.headers.has("content-encoding") ? 0 : Number(response.headers.get("content-length"));
  if (!response.body || !total) return response.arrayBuffer();
  const reader = response.body.getReader();
  const parts: Uint8Array<ArrayBuffer>[] = [];
  let loaded = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    parts.push(value);
    loaded += value.length;
    progress(Math.min(1, loaded / total));
  }
  return new Blob(parts).arrayBuffer();
}
