// Copies a topic in a transaction, as a member of a group, and reads the copy.
//
//   node copy.mjs kafkajs|confluent BOOTSTRAP SECURITY COUNT
//
// Reads COUNT records of "in" in the group "copiers", sends one record to "out" in a transaction that it aborts, then all
// of them with the group's offsets in one that it commits. Prints the values that a reader of committed records finds in
// "out", one per line.
import { client, read } from "./clients.mjs";

const [name, bootstrap, security, count] = process.argv.slice(2);
const kafka = await client(name, bootstrap, security);
const { consumer, records } = await read(kafka, "copiers", ["in"], Number(count));
const producer = kafka.transactional("copier");
await producer.connect();
const first = await producer.transaction();
await first.send({ topic: "out", messages: [{ value: "aborted" }] });
await first.abort();
const second = await producer.transaction();
await second.send({ topic: "out", messages: records.map(({ value }) => ({ value })) });
const next = {};
for (const { partition, offset } of records) next[partition] = Math.max(next[partition] ?? 0, offset + 1);
const partitions = Object.entries(next).map(([partition, offset]) => ({ partition: Number(partition), offset: String(offset) }));
await second.sendOffsets({ ...kafka.group(consumer, "copiers"), topics: [{ topic: "in", partitions }] });
await second.commit();
await producer.disconnect();
await consumer.disconnect();

const copy = await read(kafka, "readers", ["out"], Number(count));
for (const { value } of copy.records) console.log(value.toString());
await copy.consumer.disconnect();
