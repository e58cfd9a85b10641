/** Puts the page together: events to the timeline, the timeline to the face, people to the server. */
import "./style.css";
import type { ActionName } from "./actions";
import { api, ApiError } from "./api";
import { ServerClock } from "./clock";
import { Connection } from "./connection";
import { Figure } from "./figure";
import type { AliceEvent, SegmentId } from "./protocol";
import { seeded } from "./random";
import { Sound } from "./sound/sound";
import { Timeline } from "./timeline";
import { Transcript } from "./transcript";
import { View } from "./view";

const timeline = new Timeline();
const transcript = new Transcript();
const clock = new ServerClock();

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

const sound = new Sound({
  say: ({ text, hint }) => view.toast("warning", text, hint),
  moved: (segment, played_ms) => timeline.apply({ type: "segment_progress", segment, played_ms, at_ms: now() }),
  finished(segment) {
    // A short one may begin and end between two looks.
    timeline.apply({ type: "segment_progress", segment, played_ms: Number.POSITIVE_INFINITY, at_ms: now() });
    timeline.apply({ type: "segment_finished", segment, at_ms: now() });
  },
});
view.place(sound.panel);

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
    sound.mic(timeline.mic);
    view.transcript(transcript.lines);
    // A page that only reconnects has shown them.
    if (newEpoch) for (const notice of snapshot.notices) view.toast(notice.level, notice.text, notice.hint);
    draw();
  },
  event(event) {
    // Replayed state is in the snapshot already; messages for the person are not.
    if (!event.replayed) {
      clock.observe(event.at_ms, performance.now());
      if (!sound.knowsBetter(event)) timeline.apply(event);
      transcript.apply(event);
    }
    react(event);
    draw();
  },
  lost(attempt) {
    timeline.lose(now());
    figure?.interrupted();
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
      sound.mic(timeline.mic);
      break;
    case "volume":
      view.volume(event.volume);
      break;
    case "interrupted":
      figure?.interrupted();
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

/** The same address with `?seed=…` lives the same life. */
function chance(): () => number {
  const seed = new URLSearchParams(location.search).get("seed");
  return seed === null ? Math.random : seeded(Number(seed));
}

function openFigure(): Figure | null {
  try {
    return new Figure(view.canvas, chance(), {
      sense() {
        const { state, feeling, mouth, playing } = timeline.scene(now());
        if (playing) acknowledge(playing.segment, playing.played_ms);
        return { state, feeling, mouth, speaking: playing !== null, userSpeaks: timeline.listen === "user_speaking" };
      },
      progress: (text) => view.loading(text),
      say: (level, text, hint) => view.toast(level, text, hint),
    });
  } catch {
    view.loading("");
    view.toast("error", "The avatar can't be drawn: this browser has no WebGL.", "Talking and writing work all the same. Turn on hardware acceleration, or use another browser.");
    return null;
  }
}

const figure = openFigure();

// For tests and the curious: what the face shows right now. Nothing here is secret.
Object.defineProperty(window, "__alice", {
  value: {
    get snapshot() {
      const scene = timeline.scene(now());
      return {
        ...scene,
        at: now(),
        listen: timeline.listen,
        target: scene.mouth,
        ...(figure ? shown(figure) : NOTHING_SHOWN),
        sound: { ...sound.call.status, position: sound.call.position },
        sources: { live: connection.live, opened: connection.opened },
      };
    },
    /** What the last frames cost, ms. */
    get costs() {
      return figure?.stage.costs ?? [];
    },
    /** Plays a gesture: `__alice.play("wave")`. */
    play: (name: ActionName) => figure?.life.performer.play(name, true),
  },
});

const NOTHING_SHOWN = { frames: 0, model: "failed" };

function shown({ life, stage, avatar, model, eyes }: Figure): object {
  const { mouth, moods, hint, blink } = life.expressions.weights;
  const { happy = 0, angry = 0, sad = 0, relaxed = 0, surprised = 0 } = moods;
  return {
    mouth: { ...mouth },
    moods: { ...moods, happy, angry, sad, relaxed, surprised },
    hint: { ...hint },
    blink,
    eyes,
    action: life.performer.current,
    clip: avatar?.puppet.playing ?? null,
    avatar: avatar?.licence.name ?? null,
    settings: life.settings,
    frames: stage.frames,
    lost: stage.lost,
    held: stage.held,
    model,
  };
}

connection.open();
sound.call.resume();
if (figure) void figure.open("/avatar.vrm");
