// Sends records through a Kafka with kafkajs, and prints where they went. It reads only as a member of a group.
//
//   node produce.mjs BOOTSTRAP RECORDS CODEC...
//
// RECORDS is a file: one JSON object per line, bytes as base64. They go to a topic for each codec, "kafkajs-CODEC".
import { readFileSync } from "node:fs";
import kafkajs from "kafkajs";
import SnappyCodec from "kafkajs-snappy";

const { Kafka, CompressionTypes, CompressionCodecs, logLevel } = kafkajs;
CompressionCodecs[CompressionTypes.Snappy] = SnappyCodec;
const CODECS = { none: CompressionTypes.None, gzip: CompressionTypes.GZIP, snappy: CompressionTypes.Snappy };
const bytes = (text) => (text === null ? null : Buffer.from(text, "base64"));

const [bootstrap, file, ...codecs] = process.argv.slice(2);
const messages = readFileSync(file, "utf8").trimEnd().split("\n").map((line) => {
  const { partition, timestamp, key, value, headers } = JSON.parse(line);
  const named = Object.fromEntries(headers.map((header) => [header.name, bytes(header.value)]));
  return { partition, timestamp: String(timestamp), key: bytes(key), value: bytes(value), headers: named };
});
const kafka = new Kafka({ brokers: bootstrap.split(","), logLevel: logLevel.ERROR });
const producer = kafka.producer({ idempotent: true });
const admin = kafka.admin();
await Promise.all([producer.connect(), admin.connect()]);
for (const codec of codecs) {
  const topic = `kafkajs-${codec}`;
  await producer.send({ topic, acks: -1, compression: CODECS[codec], messages });
  for (const { partition, high } of await admin.fetchTopicOffsets(topic)) {
    console.log(JSON.stringify({ topic, partition, end: Number(high) }));
  }
}
await Promise.all([producer.disconnect(), admin.disconnect()]);
