// Sends records through a Kafka, and prints what it reads, as a member of a group of its own.
//
//   node round_trip.mjs kafkajs|confluent BOOTSTRAP RECORDS CODEC...
//
// RECORDS is a file: one JSON object per line, bytes as base64. They go to a topic for each codec, "CLIENT-CODEC".
import { readFileSync } from "node:fs";
import { client, read } from "./clients.mjs";

const bytes = (text) => (text === null ? null : Buffer.from(text, "base64"));
const text = (data) => (data === null ? null : data.toString("base64"));

const [name, bootstrap, file, ...codecs] = process.argv.slice(2);
const messages = readFileSync(file, "utf8").trimEnd().split("\n").map((line) => {
  const { partition, timestamp, key, value, headers } = JSON.parse(line);
  const named = Object.fromEntries(headers.map((header) => [header.name, bytes(header.value)]));
  return { partition, timestamp: String(timestamp), key: bytes(key), value: bytes(value), headers: named };
});
const kafka = await client(name, bootstrap);
for (const codec of codecs) {
  const producer = kafka.producer(codec);
  await producer.connect();
  await kafka.send(producer, codec, `${name}-${codec}`, messages);
  await producer.disconnect();
}

const topics = codecs.map((codec) => `${name}-${codec}`);
const { consumer, records } = await read(kafka, "readers", topics, messages.length * codecs.length);
for (const { topic, partition, offset, timestamp, key, value, headers: named } of records) {
  const headers = Object.entries(named).map(([header, data]) => ({ name: header, value: text(data) }));
  console.log(JSON.stringify({
    topic, partition, offset, timestamp: Number(timestamp), key: text(key), value: text(value), headers,
  }));
}
await consumer.disconnect();
