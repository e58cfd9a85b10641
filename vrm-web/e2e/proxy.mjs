/**
 * A reverse proxy with HTTPS, as small as can be. `keepHost`: as Caddy does, and nginx when told; without
 * it the host is the one behind, and the one before is in `X-Forwarded-Host`.
 */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { request } from "node:http";
import { createServer } from "node:https";
import { connect } from "node:net";
import { join } from "node:path";

/** A certificate of our own for a name. */
function certificate(folder, name) {
  const [key, cert] = [join(folder, "proxy.key"), join(folder, "proxy.pem")];
  const subject = ["-subj", `/CN=${name}`, "-addext", `subjectAltName=DNS:${name}`];
  execFileSync("openssl", ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", key, "-out", cert, ...subject], { stdio: "ignore" });
  return { key: readFileSync(key), cert: readFileSync(cert) };
}

export async function startProxy(folder, name, { keepHost = true, upgrades = true } = {}) {
  /** Where Alice is; she may be started after the proxy, whose address she must know. */
  const proxy = { port: 0, behind: 0, seen: [] };
  const headersOf = (incoming) => {
    const { host, ...rest } = incoming.headers;
    const headers = { ...rest, host: keepHost ? host : `127.0.0.1:${proxy.behind}` };
    headers["x-forwarded-for"] = incoming.socket.remoteAddress;
    headers["x-forwarded-proto"] = "https";
    if (!keepHost) headers["x-forwarded-host"] = host;
    return headers;
  };
  const server = createServer(certificate(folder, name), (incoming, outgoing) => {
    const { method, url } = incoming;
    const forward = request({ port: proxy.behind, host: "127.0.0.1", method, path: url, headers: headersOf(incoming) }, (answer) => {
      outgoing.writeHead(answer.statusCode, answer.headers);
      answer.pipe(outgoing);
    });
    forward.on("error", () => outgoing.destroy());
    outgoing.on("close", () => forward.destroy());
    incoming.pipe(forward);
  });
  server.on("upgrade", (incoming, socket, head) => {
    proxy.seen.push(incoming.url);
    if (!upgrades) return socket.end("HTTP/1.1 502 Bad Gateway\r\n\r\n");
    const behind = connect(proxy.behind, "127.0.0.1", () => {
      const lines = Object.entries(headersOf(incoming)).map(([key, value]) => `${key}: ${value}`);
      behind.write(`GET ${incoming.url} HTTP/1.1\r\n${lines.join("\r\n")}\r\n\r\n`);
      behind.write(head);
      behind.pipe(socket).pipe(behind);
    });
    const end = () => [behind, socket].forEach((side) => side.destroy());
    for (const side of [behind, socket]) side.on("error", end).on("close", end);
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  proxy.port = server.address().port;
  proxy.origin = `https://${name}:${proxy.port}`;
  proxy.stop = () => {
    server.closeAllConnections();
    server.close();
  };
  return proxy;
}
