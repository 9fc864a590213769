// Sends records through a Kafka with kafkajs, and prints what it reads, as a member of a group of its own.
//
//   node round_trip.mjs BOOTSTRAP RECORDS CODEC...
//
// RECORDS is a file: one JSON object per line, bytes as base64. They go to a topic for each codec, "kafkajs-CODEC".
import { readFileSync } from "node:fs";
import kafkajs from "kafkajs";
import SnappyCodec from "kafkajs-snappy";

const { Kafka, CompressionTypes, CompressionCodecs, logLevel } = kafkajs;
CompressionCodecs[CompressionTypes.Snappy] = SnappyCodec;
const CODECS = { none: CompressionTypes.None, gzip: CompressionTypes.GZIP, snappy: CompressionTypes.Snappy };
const bytes = (text) => (text === null ? null : Buffer.from(text, "base64"));
const text = (data) => (data === null ? null : data.toString("base64"));

const [bootstrap, file, ...codecs] = process.argv.slice(2);
const messages = readFileSync(file, "utf8").trimEnd().split("\n").map((line) => {
  const { partition, timestamp, key, value, headers } = JSON.parse(line);
  const named = Object.fromEntries(headers.map((header) => [header.name, bytes(header.value)]));
  return { partition, timestamp: String(timestamp), key: bytes(key), value: bytes(value), headers: named };
});
const kafka = new Kafka({ brokers: bootstrap.split(","), logLevel: logLevel.ERROR });
const producer = kafka.producer({ idempotent: true });
await producer.connect();
for (const codec of codecs) {
  await producer.send({ topic: `kafkajs-${codec}`, acks: -1, compression: CODECS[codec], messages });
}
await producer.disconnect();

const consumer = kafka.consumer({ groupId: "readers" });
await consumer.connect();
await consumer.subscribe({ topics: codecs.map((codec) => `kafkajs-${codec}`), fromBeginning: true });
let awaited = messages.length * codecs.length;
await new Promise((done) => {
  consumer.run({
    eachMessage: async ({ topic, partition, message }) => {
      const headers = Object.entries(message.headers).map(([name, value]) => ({ name, value: text(value) }));
      const { offset, timestamp, key, value } = message;
      console.log(JSON.stringify({
        topic, partition, offset: Number(offset), timestamp: Number(timestamp), key: text(key), value: text(value), headers,
      }));
      awaited -= 1;
      if (awaited === 0) done();
    },
  });
});
await consumer.disconnect();
