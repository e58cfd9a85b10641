/** What the page asks of the server. A refusal is an `ApiError` with a line and what to do. */

export class ApiError extends Error {
  constructor(
    message: string,
    readonly hint: string,
  ) {
    super(message);
  }
}

async function post(path: string, body: object, keepalive = false): Promise<unknown> {
  let response: Response;
  try {
    response = await fetch(path, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
      keepalive,
    });
  } catch {
    throw new ApiError("Alice does not answer", "check that she still runs; the page reconnects by itself");
  }
  const answer: unknown = await response.json().catch(() => null);
  if (response.ok) return answer;
  const error = (answer as { error?: { message?: string; hint?: string } } | null)?.error;
  throw new ApiError(error?.message ?? `the server answered ${response.status}`, error?.hint ?? "try again");
}

export const api = {
  chat: (text: string) => post("/chat", { text }),
  interrupt: () => post("/interrupt", {}),
  mute: (muted: boolean) => post("/mic", { muted }),
  /** Reaches the server even from a page that is being left. */
  pushToTalk: (pressed: boolean) => post("/mic", { push_to_talk: pressed }, true),
  volume: (volume: number) => post("/volume", { volume }),
  playback: (turn: number, index: number, playedMs: number) =>
    post("/playback", { turn, index, played_ms: playedMs }),
};
