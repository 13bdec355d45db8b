// Starts aimock, a third party's model of the providers' APIs, with the answers in fixtures.json.
//
//   npm ci && node start.mjs [port]
//
// Prints one line, `ready <url>`, once it listens on loopback, and stops with the process. A port of
// 0 (the default) takes any free one.
import { fileURLToPath } from "node:url";
import { LLMock } from "@copilotkit/aimock";

const port = Number(process.argv[2] ?? 0);
const mock = new LLMock({ host: "127.0.0.1", port, chunkSize: 7 });
mock.loadFixtureFile(fileURLToPath(new URL("fixtures.json", import.meta.url)));
await mock.start();
console.log(`ready ${mock.url}`);

for (const signal of ["SIGINT", "SIGTERM"]) {
  process.on(signal, async () => {
    await mock.stop();
    process.exit(0);
  });
}
