/** Puts the page together: events to the timeline, the timeline to the face, people to the server. */
import "./style.css";
import { api, ApiError } from "./api";
import { Avatar } from "./avatar";
import { ServerClock } from "./clock";
import { Connection } from "./connection";
import { ExpressionDriver } from "./expression";
import { Motion } from "./motion";
import type { AliceEvent, SegmentId } from "./protocol";
import { Stage } from "./stage";
import { Timeline } from "./timeline";
import { Transcript } from "./transcript";
import { View } from "./view";

const timeline = new Timeline();
const transcript = new Transcript();
const clock = new ServerClock();
const expressions = new ExpressionDriver();
const motion = new Motion();

const view = new View({
  send: (text) => tell(api.chat(text)),
  stop: () => tell(api.interrupt()),
  talk: async (pressed) => {
    const request = api.pushToTalk(pressed);
    tell(request);
    await request;
  },
  mute: (muted) => tell(api.mute(muted)),
  volume: (volume) => tell(api.volume(volume)),
});

function tell(request: Promise<unknown>): void {
  request.catch((error: unknown) => {
    if (error instanceof ApiError) view.toast("error", error.message, error.hint);
    else throw error;
  });
}

const now = (): number => clock.at(performance.now());

const connection = new Connection({
  snapshot(snapshot, newEpoch) {
    if (newEpoch) clock.reset();
    clock.observe(snapshot.at_ms, performance.now());
    timeline.restore(snapshot.scene, snapshot.at_ms);
    transcript.restore(snapshot.history);
    view.connected(true);
    view.name(snapshot.name);
    view.volume(snapshot.volume);
    view.mode(snapshot.mode);
    view.mic(timeline.mic);
    view.transcript(transcript.lines);
    // A page that only reconnects has shown them.
    if (newEpoch) for (const notice of snapshot.notices) view.toast(notice.level, notice.text, notice.hint);
    draw();
  },
  event(event) {
    // Replayed state is in the snapshot already; messages for the person are not.
    if (!event.replayed) {
      clock.observe(event.at_ms, performance.now());
      timeline.apply(event);
      transcript.apply(event);
    }
    react(event);
    draw();
  },
  lost(attempt) {
    timeline.lose(now());
    expressions.shut();
    view.connected(false);
    if (attempt === 3) {
      view.toast("warning", "Alice does not answer.", "If she was stopped, start her again; the page reconnects by itself.");
    }
  },
});

function react(event: AliceEvent): void {
  switch (event.type) {
    case "notice":
      view.toast(event.level, event.text, event.hint);
      break;
    case "turn_failed":
      view.toast("error", event.error, null);
      break;
    case "mic":
      view.mic(timeline.mic);
      break;
    case "volume":
      view.volume(event.volume);
      break;
    case "interrupted":
      expressions.shut();
      break;
    default:
      break;
  }
}

/** Brings the text up to date; the avatar's loop does the rest. */
function draw(): void {
  const scene = timeline.scene(now());
  view.state(scene.state, scene.subtitle, transcript.hearing);
  if (scene.turn && (scene.playing || scene.turn.said !== "")) {
    const current = scene.playing?.segment.turn === scene.turn.turn ? scene.subtitle.said : "";
    transcript.speaking(scene.turn, current);
  }
  view.transcript(transcript.lines);
}
setInterval(draw, 100);

let acknowledged: SegmentId | null = null;
/** Tells the server once a segment how far its picture is, so that drift can be seen in `/healthz`. */
function acknowledge(segment: SegmentId, playedMs: number): void {
  if (playedMs < 300 || (acknowledged?.turn === segment.turn && acknowledged.index === segment.index)) return;
  acknowledged = segment;
  api.playback(segment.turn, segment.index, playedMs).catch(() => undefined);
}

function openStage(): Stage | null {
  try {
    return new Stage(view.canvas, step);
  } catch {
    view.loading("");
    view.toast("error", "The avatar can't be drawn: this browser has no WebGL.", "Talking and writing work all the same. Turn on hardware acceleration, or use another browser.");
    return null;
  }
}

function step(avatar: Avatar, dtS: number): void {
  const scene = timeline.scene(now());
  const { mouth } = scene;
  const weights = expressions.step(dtS * 1000, scene.feeling, mouth, scene.playing !== null);
  const pose = motion.step(dtS, scene.state, Math.max(mouth.aa, mouth.oh, mouth.ee, mouth.ih, mouth.ou));
  stage?.gazeFrom(avatar, pose.gaze);
  avatar.pose(pose);
  avatar.express(weights);
  if (scene.playing) acknowledge(scene.playing.segment, scene.playing.played_ms);
}

const stage = openStage();
const state = { model: "loading" as "loading" | "ready" | "failed" };

async function loadAvatar(stage: Stage): Promise<void> {
  try {
    const avatar = await Avatar.load("/avatar.vrm", (part) => view.loading(`Loading the avatar… ${Math.round(part * 100)} %`));
    stage.show(avatar);
    stage.start();
    state.model = "ready";
    view.loading("");
  } catch (error) {
    state.model = "failed";
    view.loading("");
    const why = error instanceof Error ? error.message : String(error);
    view.toast("error", `The avatar can't be loaded: ${why}`, "Remove `avatar.vrm` from Alice's home to use her own, then reload the page.");
  }
}

// For tests and the curious: what the face shows right now. Nothing here is secret.
Object.defineProperty(window, "__alice", {
  value: {
    get snapshot() {
      const scene = timeline.scene(now());
      const { mouth, moods, blink } = expressions.weights;
      return {
        ...scene,
        at: now(),
        listen: timeline.listen,
        target: scene.mouth,
        mouth: { ...mouth },
        moods: { ...moods },
        blink,
        frames: stage?.frames ?? 0,
        model: state.model,
        sources: { live: connection.live, opened: connection.opened },
      };
    },
  },
});

connection.open();
if (stage) void loadAvatar(stage);
