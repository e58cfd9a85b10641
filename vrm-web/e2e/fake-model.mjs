/** A language model server of the usual form that answers what the test wants. */
import { createServer } from "node:http";

export class FakeModel {
  /** What it answers, and the words that it was asked with last. */
  reply = "Yes.";
  asked = [];

  async start() {
    this.server = createServer((request, response) => void this.#serve(request, response));
    await new Promise((done) => this.server.listen(0, "127.0.0.1", done));
    const url = `http://127.0.0.1:${this.server.address().port}/v1`;
    this.settings = ["llm.model=fake", `llm.providers.fake.base_url=${url}`, "llm.providers.fake.model=fake", "llm.providers.fake.api_key=none"];
    return this;
  }

  stop() {
    this.server.closeAllConnections();
    this.server.close();
  }

  async #serve(request, response) {
    let body = "";
    for await (const part of request) body += part;
    if (!request.url.endsWith("/chat/completions")) {
      response.setHeader("content-type", "application/json").end(JSON.stringify({ object: "list", data: [{ id: "fake", object: "model" }] }));
      return;
    }
    this.asked.push(JSON.parse(body).messages.findLast(({ role }) => role === "user")?.content);
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (const word of this.reply.split(/(?<= )/)) {
      const chunk = { id: "1", object: "chat.completion.chunk", model: "fake", choices: [{ index: 0, delta: { content: word } }] };
      response.write(`data: ${JSON.stringify(chunk)}\n\n`);
      await new Promise((done) => setTimeout(done, 5));
    }
    const end = { id: "1", object: "chat.completion.chunk", model: "fake", choices: [{ index: 0, delta: {}, finish_reason: "stop" }] };
    response.end(`data: ${JSON.stringify(end)}\n\ndata: [DONE]\n\n`);
  }
}
