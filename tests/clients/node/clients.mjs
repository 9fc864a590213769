// One face for two clients: kafkajs, and Confluent's with the same names.
//
// SECURITY is null, or a JSON object: the CA's file, a mechanism of SASL, a user and a password.
import { readFileSync } from "node:fs";

const OF = {
  async kafkajs(brokers, ca, sasl) {
    const { default: { Kafka, CompressionCodecs, CompressionTypes, logLevel } } = await import("kafkajs");
    const { default: SnappyCodec } = await import("kafkajs-snappy");
    CompressionCodecs[CompressionTypes.Snappy] = SnappyCodec;
    const codecs = { none: CompressionTypes.None, gzip: CompressionTypes.GZIP, snappy: CompressionTypes.Snappy };
    const secure = ca && { ssl: { ca: [readFileSync(ca)] }, sasl };
    const kafka = new Kafka({ brokers, logLevel: logLevel.ERROR, ...secure });
    return {
      consumer: (groupId) => kafka.consumer({ groupId, maxWaitTimeInMs: 100 }),
      subscribe: (consumer, topics) => consumer.subscribe({ topics, fromBeginning: true }),
      run: (consumer, eachMessage) => consumer.run({ autoCommit: false, eachMessage }),
      producer: () => kafka.producer({ idempotent: true }),
      send: (producer, codec, topic, messages) => producer.send({ topic, acks: -1, compression: codecs[codec], messages }),
      transactional: (id) => kafka.producer({ transactionalId: id, maxInFlightRequests: 1, idempotent: true }),
      group: (_, groupId) => ({ consumerGroupId: groupId }),
    };
  },
  async confluent(brokers, ca, sasl) {
    const { default: { KafkaJS } } = await import("@confluentinc/kafka-javascript");
    const common = { brokers, logLevel: KafkaJS.logLevel.ERROR, ...(ca && { ssl: true, sasl }) };
    const kafka = new KafkaJS.Kafka({ kafkaJS: common, ...(ca && { "ssl.ca.location": ca }) });
    return {
      consumer: (groupId) => kafka.consumer({ kafkaJS: { groupId, fromBeginning: true, autoCommit: false } }),
      subscribe: (consumer, topics) => consumer.subscribe({ topics }),
      run: (consumer, eachMessage) => consumer.run({ eachMessage }),
      producer: (codec) => kafka.producer({ kafkaJS: { idempotent: true }, "compression.codec": codec }),
      // It changes the messages that it is given.
      send: (producer, _, topic, messages) => producer.send({ topic, messages: messages.map((one) => ({ ...one })) }),
      transactional: (id) => kafka.producer({ kafkaJS: { transactionalId: id } }),
      group: (consumer) => ({ consumer }),
    };
  },
};

export async function client(name, bootstrap, security = "null") {
  const { ca, mechanism, user, password } = JSON.parse(security) ?? {};
  const sasl = ca && { mechanism: mechanism.toLowerCase(), username: user, password };
  return OF[name](bootstrap.split(","), ca, sasl);
}

// Reads so many records as a member of a group; returns the member too, still there.
export async function read(kafka, groupId, topics, count) {
  const consumer = kafka.consumer(groupId);
  await consumer.connect();
  await kafka.subscribe(consumer, topics);
  const records = [];
  await new Promise((done) => {
    kafka.run(consumer, async ({ topic, partition, message }) => {
      records.push({ topic, partition, ...message, offset: Number(message.offset) });
      if (records.length === count) done();
    });
  });
  return { consumer, records };
}
