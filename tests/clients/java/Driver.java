import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.DeleteRecordsOptions;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Does what its standard input says, a JSON object per line, with Kafka's own client; answers each with one line. */
public class Driver {
    static final ObjectMapper JSON = new ObjectMapper();
    static final Duration PATIENCE = Duration.ofSeconds(60);
    static final Map<String, KafkaProducer<byte[], byte[]>> PRODUCERS = new HashMap<>();
    static final Map<String, Admin> ADMINS = new HashMap<>();

    public static void main(String[] arguments) throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("ready");
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            JsonNode asked = JSON.readTree(line);
            ObjectNode answer = JSON.createObjectNode();
            long began = System.nanoTime();
            try {
                began = act(asked, answer);
                answer.putNull("error");
            } catch (Failed failed) {
                began = failed.began;
                answer.put("error", Errors.forException(failed.getCause()).name());
                answer.put("said", failed.getCause().toString());
            } catch (Exception error) {
                answer.put("error", error.toString());
            }
            if (!answer.has("seconds")) {
                answer.put("seconds", (System.nanoTime() - began) / 1e9);
            }
            System.out.println(JSON.writeValueAsString(answer));
        }
    }

    /** What failed, and when it was begun. */
    static class Failed extends Exception {
        final long began;

        Failed(long began, Exception cause) {
            super(cause);
            this.began = began;
        }
    }

    /** Returns when it began, once the client knew the cluster. */
    static long act(JsonNode asked, ObjectNode answer) throws Exception {
        switch (asked.get("do").asText()) {
            case "produce":
                return produce(asked);
            case "fetch":
                return fetch(asked, answer);
            case "delete":
                return delete(asked, answer);
            case "round trip":
                return roundTrip(asked, answer);
            case "forget":
                PRODUCERS.values().forEach(producer -> producer.close(Duration.ZERO));
                PRODUCERS.clear();
                ADMINS.values().forEach(admin -> admin.close(Duration.ZERO));
                ADMINS.clear();
                return System.nanoTime();
            default:
                throw new IllegalArgumentException(asked.toString());
        }
    }

    static Properties settings(JsonNode asked) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", asked.get("bootstrap").asText());
        return properties;
    }

    /** One record, sent once, with the time-out that is asked for. */
    static long produce(JsonNode asked) throws Exception {
        int timeout = (int) Math.round(1000 * asked.get("timeout").asDouble());
        Properties properties = settings(asked);
        properties.put("acks", "all");
        properties.put("enable.idempotence", "false");
        properties.put("retries", "0");
        properties.put("request.timeout.ms", timeout);
        properties.put("delivery.timeout.ms", timeout + 60_000);
        KafkaProducer<byte[], byte[]> producer = PRODUCERS.computeIfAbsent(
            properties.toString(),
            key -> new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer()));
        String topic = asked.get("topic").asText();
        producer.partitionsFor(topic);
        long began = System.nanoTime();
        try {
            producer.send(new ProducerRecord<>(topic, 0, null, new byte[asked.get("size").asInt()])).get();
        } catch (Exception error) {
            throw new Failed(began, error);
        }
        return began;
    }

    /** The first fetch's worth of records. */
    static long fetch(JsonNode asked, ObjectNode answer) {
        Properties properties = settings(asked);
        properties.put("fetch.min.bytes", asked.get("min_bytes").asInt());
        properties.put("fetch.max.wait.ms", (int) Math.round(1000 * asked.get("max_wait").asDouble()));
        properties.put("client.id", asked.get("client").asText());
        KafkaConsumer<byte[], byte[]> consumer = consumer(properties);
        try {
            TopicPartition partition = new TopicPartition(asked.get("topic").asText(), 0);
            consumer.assign(List.of(partition));
            consumer.seek(partition, asked.get("offset").asLong());
            long began = System.nanoTime();
            answer.put("count", consumer.poll(PATIENCE).count());
            answer.put("seconds", (System.nanoTime() - began) / 1e9);
            return began;
        } finally { // its next fetch waits at the broker: to part politely would be to wait for that
            consumer.close(CloseOptions.timeout(Duration.ZERO));
        }
    }

    /** The client that once found the leader keeps it, so that it need not ask a broker that is paused. */
    static long delete(JsonNode asked, ObjectNode answer) throws Exception {
        Properties properties = settings(asked);
        Admin admin = ADMINS.computeIfAbsent(properties.toString(), key -> Admin.create(properties));
        TopicPartition partition = new TopicPartition(asked.get("topic").asText(), 0);
        DeleteRecordsOptions options = new DeleteRecordsOptions();
        options.timeoutMs((int) Math.round(1000 * asked.get("timeout").asDouble()));
        long began = System.nanoTime();
        try {
            Map<TopicPartition, RecordsToDelete> before =
                Map.of(partition, RecordsToDelete.beforeOffset(asked.get("before").asLong()));
            answer.put("low", admin.deleteRecords(before, options).lowWatermarks().get(partition).get().lowWatermark());
        } catch (Exception error) {
            throw new Failed(began, error);
        }
        return began;
    }

    static KafkaConsumer<byte[], byte[]> consumer(Properties properties) {
        properties.put("auto.offset.reset", "earliest");
        return new KafkaConsumer<>(properties, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    /** Sends the records with the idempotent producer, and reads all of the topic. */
    static long roundTrip(JsonNode asked, ObjectNode answer) throws Exception {
        long began = System.nanoTime();
        String topic = asked.get("topic").asText();
        Properties properties = settings(asked);
        properties.put("compression.type", asked.get("codec").asText());
        properties.put("enable.idempotence", "true");
        JsonNode records = asked.get("records");
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        try (KafkaProducer<byte[], byte[]> producer =
            new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer())) {
            for (JsonNode record : records) {
                RecordHeaders headers = new RecordHeaders();
                for (JsonNode header : record.get("headers")) {
                    headers.add(header.get("name").asText(), header.get("value").binaryValue());
                }
                sent.add(producer.send(new ProducerRecord<>(
                    topic, record.get("partition").asInt(), record.get("timestamp").asLong(),
                    record.get("key").binaryValue(), record.get("value").binaryValue(), headers)));
            }
        }
        for (Future<RecordMetadata> one : sent) {
            one.get();
        }
        ArrayNode got = answer.putArray("records");
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(settings(asked))) {
            consumer.assign(List.of(new TopicPartition(topic, 0), new TopicPartition(topic, 1)));
            while (got.size() < records.size()) {
                for (ConsumerRecord<byte[], byte[]> one : consumer.poll(PATIENCE)) {
                    ObjectNode record = got.addObject().put("partition", one.partition()).put("offset", one.offset());
                    record.put("timestamp", one.timestamp()).put("key", one.key()).put("value", one.value());
                    ArrayNode headers = record.putArray("headers");
                    for (Header header : one.headers()) {
                        headers.addObject().put("name", header.key()).put("value", header.value());
                    }
                }
            }
        }
        return began;
    }
}
