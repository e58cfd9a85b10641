import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Line, meaning, refusal, type LineState, type Refusal, type Socket } from "../src/sound/line";
import { readMark, type Hello, type Mark } from "../src/sound/messages";

class FakeSocket implements Socket {
  binaryType: BinaryType = "blob";
  bufferedAmount = 0;
  readyState = 1;
  onopen: Socket["onopen"] = null;
  onmessage: Socket["onmessage"] = null;
  onclose: Socket["onclose"] = null;
  sent: (string | ArrayBuffer)[] = [];
  closed = false;

  send(data: string | ArrayBuffer): void {
    this.sent.push(data);
  }
  close(): void {
    this.closed = true;
  }
  opens(): void {
    this.onopen?.({} as Event);
  }
  says(data: object | ArrayBuffer): void {
    this.onmessage?.({ data: data instanceof ArrayBuffer ? data : JSON.stringify(data) } as MessageEvent);
  }
  ends(code: number, reason = ""): void {
    this.onclose?.({ code, reason } as CloseEvent);
  }
}

const HELLO: Hello = { name: "browser", input_rate: 48_000, output_rate: 48_000, echo_cancelled: true, acknowledges: true, sets_volume: true };

function rig() {
  const sockets: FakeSocket[] = [];
  const states: LineState[] = [];
  const marks: Mark[] = [];
  const sounds: ArrayBuffer[] = [];
  const server: { trouble: Refusal | null } = { trouble: null };
  const line = new Line(
    {
      open() {
        sockets.push(new FakeSocket());
        return sockets.at(-1)!;
      },
      ask: async () => server.trouble,
      random: () => 0.5,
    },
    { state: (state) => states.push(state), mark: (mark) => marks.push(mark), sound: (bytes) => sounds.push(bytes) },
  );
  return {
    line,
    sockets,
    states,
    marks,
    sounds,
    server,
    kinds: () => states.map(({ kind }) => kind),
    letIn() {
      line.open(HELLO);
      const socket = sockets.at(-1)!;
      socket.opens();
      socket.says({ type: "ready" });
      return socket;
    },
  };
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe("the line", () => {
  it("says hello first and sends nothing before Alice is ready", () => {
    const { line, sockets, states, marks, sounds } = rig();
    const frame = new ArrayBuffer(4);
    line.open(HELLO);
    const socket = sockets[0]!;
    socket.opens();
    expect(socket.sent).toEqual([JSON.stringify(HELLO)]);
    expect(line.hear(frame)).toBe(false);
    line.tell({ type: "finished", turn: 1, index: 0 });
    expect(socket.sent).toHaveLength(1);
    socket.says({ type: "ready", input_rate: 48_000 });
    expect(states).toEqual([{ kind: "connecting" }, { kind: "open" }]);
    expect(line.hear(frame)).toBe(true);
    line.tell({ type: "played", turn: 1, index: 0, ms: 10 });
    expect(socket.sent.slice(1)).toEqual([frame, '{"type":"played","turn":1,"index":0,"ms":10}']);
    socket.says({ type: "start", turn: 1, index: 0, duration_ms: 5 });
    socket.says(frame);
    socket.says({ type: "something", of: "a newer Alice" });
    expect(marks).toEqual([{ type: "start", turn: 1, index: 0, duration_ms: 5 }]);
    expect(sounds).toEqual([frame]);
  });

  it("drops the microphone's sound when the line is too slow for it", () => {
    const { line, letIn } = rig();
    const socket = letIn();
    socket.bufferedAmount = 300_000;
    expect(line.hear(new ArrayBuffer(4))).toBe(false);
    socket.bufferedAmount = 0;
    expect(line.hear(new ArrayBuffer(4))).toBe(true);
  });

  it("sends nothing into a socket that is closing", () => {
    const { line, letIn } = rig();
    const socket = letIn();
    socket.readyState = 2;
    expect(line.hear(new ArrayBuffer(4))).toBe(false);
    line.tell({ type: "finished", turn: 1, index: 0 });
    expect(socket.sent).toHaveLength(1);
  });

  it("comes back by itself, with longer and longer pauses", async () => {
    const { sockets, letIn, kinds } = rig();
    letIn().ends(1006);
    for (const pause of [500, 1_000, 2_000, 4_000, 8_000, 8_000]) {
      const before = sockets.length;
      await vi.advanceTimersByTimeAsync(pause - 1);
      expect(sockets).toHaveLength(before);
      await vi.advanceTimersByTimeAsync(1);
      expect(sockets).toHaveLength(before + 1);
      sockets.at(-1)!.ends(1006);
    }
    await vi.advanceTimersByTimeAsync(8_000);
    const back = sockets.at(-1)!;
    back.opens();
    back.says({ type: "ready" });
    expect(kinds()).toEqual(["connecting", "open", "connecting", "open"]);
    back.ends(1001, "Alice is stopping");
    await vi.advanceTimersByTimeAsync(500);
    expect(sockets.at(-1)).not.toBe(back);
  });

  it("does not take back what another device took over", async () => {
    const { sockets, letIn, states } = rig();
    letIn().ends(1001, "another device took over");
    await vi.advanceTimersByTimeAsync(60_000);
    expect(sockets).toHaveLength(1);
    expect(states.at(-1)).toEqual({ kind: "taken" });
  });

  it("tells why it was refused, by the hello or before it opened", async () => {
    const { line, sockets, states, server } = rig();
    line.open(HELLO);
    sockets[0]!.opens();
    sockets[0]!.ends(1008, "Alice can't hear now");
    expect(states.at(-1)).toMatchObject({ kind: "refused", text: expect.stringContaining("Alice can't hear now") });
    server.trouble = { text: "no token", hint: "show it", sure: true };
    line.open(HELLO);
    sockets[1]!.ends(1006);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(states.at(-1)).toEqual({ kind: "refused", text: "no token", hint: "show it" });
    expect(sockets).toHaveLength(2);
  });

  it("does not give up because she came back between two questions, but after some tries it does", async () => {
    const { line, sockets, states, server } = rig();
    server.trouble = refusal(426, null);
    line.open(HELLO);
    sockets[0]!.ends(1006);
    await vi.advanceTimersByTimeAsync(500);
    sockets[1]!.opens();
    sockets[1]!.says({ type: "ready" });
    expect(states.at(-1)).toEqual({ kind: "open" });
    sockets[1]!.ends(1006);
    for (const socket of [2, 3]) {
      await vi.advanceTimersByTimeAsync(1_000);
      expect(states.at(-1)).toEqual({ kind: "connecting" });
      sockets[socket]!.ends(1006);
    }
    await vi.advanceTimersByTimeAsync(60_000);
    expect(states.at(-1)?.kind).toBe("refused");
    expect(sockets).toHaveLength(4);
  });

  it("is closed for good by the person, while it waits and while it asks too", async () => {
    const { line, sockets, letIn, states } = rig();
    const socket = letIn();
    line.close();
    expect(socket.closed).toBe(true);
    socket.ends(1000);
    line.open(HELLO);
    sockets.at(-1)!.ends(1006);
    line.close();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(sockets).toHaveLength(2);
    expect(states.at(-1)).toEqual({ kind: "off" });
  });

  it("keeps the old line until a new one is let in, so that nothing else takes over between them", () => {
    const { line, sockets, letIn, marks } = rig();
    const old = letIn();
    line.open({ ...HELLO, input_rate: 0 });
    expect(old.closed).toBe(false);
    old.says({ type: "duck", on: true });
    expect(marks).toEqual([]);
    sockets[1]!.opens();
    sockets[1]!.says({ type: "ready" });
    expect(old.closed).toBe(true);
    old.ends(1001, "another device took over");
    expect(line.state).toEqual({ kind: "open" });
    expect(line.hear(new ArrayBuffer(2))).toBe(false);
  });
});

describe("the end of a line", () => {
  it.each([
    [1000, "", true, "again"],
    [1001, "Alice is stopping", true, "again"],
    [1001, "another device took over", true, "taken"],
    [1006, "", false, "again"],
    [1008, "no hello within 5 seconds", false, "again"],
    [1008, "nothing came from the device for 30 seconds", true, "again"],
    [1008, "the device does not read its sound", true, "again"],
    [1008, "an input rate of 1 Hz is not taken", false, "refused"],
    [1003, "sound came before the hello", false, "refused"],
    [1007, "the message can't be read", true, "refused"],
    [1009, "too large", true, "refused"],
  ])("%i %s", (code, reason, ready, wanted) => {
    const what = meaning(code, reason, ready);
    expect(typeof what === "string" ? what : "refused").toBe(wanted);
    if (typeof what !== "string") expect(what.text).toContain(reason);
  });

  it("is explained by what the server says to a plain request", () => {
    const body = { error: { code: "token_needed", message: "this request needs Alice's token", hint: "open the page with `?token=`" } };
    const wanted = { text: "The line for sound was refused: this request needs Alice's token.", hint: "open the page with `?token=`", sure: true };
    expect(refusal(401, body)).toEqual(wanted);
    expect(refusal(403, null)?.text).toContain("403");
    expect(refusal(426, null)?.text).toContain("WebSockets");
    expect(refusal(502, null)).toBeNull();
  });
});

describe("marks", () => {
  it("are read, and what is not one is passed over", () => {
    expect(readMark('{"type":"end","turn":1,"index":2}')).toEqual({ type: "end", turn: 1, index: 2 });
    expect(readMark('{"type":"flush","turn":null}')).toEqual({ type: "flush" });
    expect(readMark('{"type":"volume","volume":0.5}')).toEqual({ type: "volume", volume: 0.5 });
    for (const odd of ["", "null", "7", '{"type":"start"}', '{"type":"volume","volume":"loud"}', '{"type":"end","turn":"1","index":0}']) {
      expect(readMark(odd)).toBeNull();
    }
  });
});
