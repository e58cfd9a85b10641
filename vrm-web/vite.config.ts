import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { defineConfig, type Plugin } from "vite";

/** Puts a `.gz` beside every text file of the build, so that the server never compresses. */
function precompress(): Plugin {
  const dist = join(import.meta.dirname, "dist");
  return {
    name: "precompress",
    apply: "build",
    closeBundle() {
      for (const entry of readdirSync(dist, { recursive: true, withFileTypes: true })) {
        if (!entry.isFile() || !/\.(js|css|html|svg)$/.test(entry.name)) continue;
        const path = join(entry.parentPath, entry.name);
        writeFileSync(`${path}.gz`, gzipSync(readFileSync(path), { level: 9 }));
      }
    },
  };
}

const alice = process.env["ALICE_URL"] ?? "http://127.0.0.1:7878";
const routes = ["events", "chat", "interrupt", "mic", "volume", "playback", "media", "audio", "history", "healthz", "avatar.vrm"];

export default defineConfig({
  plugins: [precompress()],
  build: { target: "es2022", sourcemap: false, chunkSizeWarningLimit: 1500 },
  // `npm run dev` shows the page from its sources and asks a running Alice for everything else.
  server: {
    proxy: Object.fromEntries(
      routes.map((route) => [
        `/${route}`,
        { target: alice, changeOrigin: true, headers: { origin: alice }, ws: route === "audio" },
      ]),
    ),
  },
  test: { include: ["tests/**/*.test.{ts,mjs}"] },
} as Parameters<typeof defineConfig>[0]);
