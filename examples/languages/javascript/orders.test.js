import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { Kafka, logLevel } from "kafkajs";
import { startBroker } from "./broker.js";

const SCENARIO = process.env.SCENARIO ?? new URL("../scenario.json", import.meta.url);
const { arguments: args, topic, first, follower, second, request_timeout_ms: timeout, outcome } =
  JSON.parse(await readFile(SCENARIO));

let broker, producer;

before(async () => {
  broker = await startBroker(args);
  const kafka = new Kafka({ brokers: broker.servers, clientId: "checkout", logLevel: logLevel.NOTHING });
  producer = kafka.producer({ retry: { retries: 0 } });
  await producer.connect();
});

after(async () => {
  await producer?.disconnect();
  await broker?.stop();
});

test("a produce times out while a follower is paused", { timeout: 60_000 }, async () => {
  const { control } = broker;
  const send = (value) => producer.send({ topic: topic.name, acks: -1, timeout, messages: [{ value }] });
  await control.createTopic({}, topic);
  await send(first);

  await control.pauseBroker({ broker: follower });
  const ended = send(second).then(() => "no error", (error) => (error.cause ?? error).type);
  const { waiting: [produce] } = await control.listWaiting({ kind: "Produce", count: 1 });
  assert.equal(produce.left, outcome.waited);

  await control.advanceClock({}, { seconds: produce.left });
  assert.equal(await ended, outcome.error);

  await control.resumeBroker({ broker: follower });
  const { records } = await control.readRecords({ topic: topic.name });
  assert.deepEqual(records.map((record) => record.value), outcome.records);
});
