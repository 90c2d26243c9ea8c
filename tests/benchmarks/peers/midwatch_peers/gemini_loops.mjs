// Drives gemini-cli's LoopDetectionService: one line of JSON in, one line out.
//   {"new": true}                                      a new run
//   {"steps": [{"number", "events"}], "seconds", "halt"}  feed steps of that run
// Usage: node gemini_loops.mjs FOLDER_OF_GEMINI_CLI_CORE

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

const folder = process.argv[2];
const say = (value) => process.stdout.write(JSON.stringify(value) + '\n');
console.log = console.info = console.debug = console.error; // stdout is the answers'

// The service asks its context for switches and telemetry: every answer is no.
const no = new Proxy({}, { get: () => () => false });
const context = { config: no };

function feed(service, { steps, seconds, halt }) {
  const started = performance.now();
  let alarm = null;
  let taken = 0;
  for (const { number, events } of steps) {
    let type = null;
    for (const event of events) {
      const result = service.addAndCheck(event);
      if (result.count > 0 && !type) {
        type = String(result.type);
        service.clearDetection(); // as its client does to let the agent recover
      }
    }
    taken += 1;
    if (type && !alarm) {
      alarm = { step: number, rule: type };
      if (halt) break;
    }
    if (performance.now() - started >= seconds * 1000) break;
  }
  return { steps: taken, checking: (performance.now() - started) / 1000, alarm };
}

try {
  const module = pathToFileURL(join(folder, 'dist/src/services/loopDetectionService.js'));
  const { LoopDetectionService } = await import(module.href);
  const { version } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
  let service = new LoopDetectionService(context);
  say({ version });
  for await (const line of createInterface({ input: process.stdin })) {
    const order = JSON.parse(line);
    if (order.new) service = new LoopDetectionService(context);
    else say(feed(service, order));
  }
} catch (error) {
  say({ error: String(error?.message ?? error).split('\n')[0] });
}
process.exit(0);
