import { describe, expect, it } from "vitest";
import { Hold } from "../src/hold";

/** A server that answers when it is told to. */
function desk() {
  const sent: boolean[] = [];
  const shown: boolean[] = [];
  const answers: { ok: () => void; fail: () => void }[] = [];
  const hold = new Hold(
    (down) => shown.push(down),
    (down) => {
      sent.push(down);
      return new Promise<void>((ok, failed) => answers.push({ ok, fail: () => failed(new Error("refused")) }));
    },
  );
  const answer = async (how: "ok" | "fail" = "ok") => {
    answers.shift()?.[how]();
    for (let i = 0; i < 5; i++) await Promise.resolve();
  };
  return { hold, sent, shown, answer };
}

describe("push-to-talk", () => {
  it("is down until the last holder lets go", async () => {
    const { hold, sent, shown, answer } = desk();
    hold.press("pointer");
    hold.press("key");
    hold.release("pointer");
    expect(hold.down).toBe(true);
    hold.release("key");
    hold.release("key");
    expect(shown).toEqual([true, false]);
    await answer();
    expect(sent).toEqual([true, false]);
  });

  it("never has two requests under way, and says only where it ended", async () => {
    const { hold, sent, answer } = desk();
    hold.press("key");
    for (let i = 0; i < 3; i++) {
      hold.release("key");
      hold.press("key");
    }
    hold.release("key");
    expect(sent).toEqual([true]);
    await answer();
    expect(sent).toEqual([true, false]);
    await answer();
    expect(sent).toEqual([true, false]);
  });

  it("comes up when the server does not listen", async () => {
    const { hold, sent, shown, answer } = desk();
    hold.press("key");
    await answer("fail");
    expect(hold.down).toBe(false);
    expect(shown).toEqual([true, false]);
    hold.press("key");
    expect(sent).toEqual([true, true]);
  });

  it("says a release again that was lost", async () => {
    const { hold, sent, answer } = desk();
    hold.press("pointer");
    await answer();
    hold.releaseAll();
    await answer("fail");
    hold.press("pointer");
    hold.release("pointer");
    expect(sent).toEqual([true, false, false]);
  });

  it("is let go by a page that goes away before its press was answered", async () => {
    const { hold, sent, answer } = desk();
    hold.press("pointer");
    hold.releaseAll();
    hold.leave();
    expect(sent).toEqual([true, false]);
    expect(hold.down).toBe(false);
    const idle = desk();
    idle.hold.leave();
    expect(idle.sent).toEqual([]);
    idle.hold.press("key");
    await idle.answer();
    idle.hold.leave();
    expect(idle.sent).toEqual([true, false]);
    await answer();
  });

  it("can be switched by clicks alone", () => {
    const { hold, shown } = desk();
    hold.toggle("click");
    hold.toggle("click");
    expect(shown).toEqual([true, false]);
  });
});
