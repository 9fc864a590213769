import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InvalidProducerEpochException;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Copies topic "in" to topic "out" exactly once, to be killed at any moment.
 *
 * <p>Arguments: BOOTSTRAP TRANSACTIONAL_ID classic|consumer [hold]. Tells of itself as tests/broker/copier.py does.
 */
public class Copier {
    static final int MIDDLE = 10; // ms in the middle of a transaction, to be killed in

    public static void main(String[] arguments) throws Exception {
        Properties reading = new Properties();
        reading.put("bootstrap.servers", arguments[0]);
        reading.put("group.id", "copy");
        reading.put("enable.auto.commit", "false");
        reading.put("auto.offset.reset", "earliest");
        reading.put("isolation.level", "read_committed");
        reading.put("group.protocol", arguments[2]);
        if (arguments[2].equals("classic")) { // by the new protocol the broker's settings count
            reading.put("session.timeout.ms", "1000");
            reading.put("heartbeat.interval.ms", "100");
        }
        reading.put("max.poll.records", "5");
        Properties writing = new Properties();
        writing.put("bootstrap.servers", arguments[0]);
        writing.put("transactional.id", arguments[1]);
        writing.put("transaction.timeout.ms", "10000");
        KafkaConsumer<byte[], byte[]> consumer =
            new KafkaConsumer<>(reading, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        KafkaProducer<byte[], byte[]> producer =
            new KafkaProducer<>(writing, new ByteArraySerializer(), new ByteArraySerializer());
        try {
            producer.initTransactions();
            consumer.subscribe(List.of("in"));
            while (true) {
                ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis(100));
                if (!records.isEmpty()) {
                    transfer(consumer, producer, records, arguments.length > 3);
                }
            }
        } catch (ProducerFencedException | InvalidProducerEpochException fenced) {
            System.out.println("fenced");
        } catch (Exception error) {
            System.out.println("failed " + error);
        }
        Runtime.getRuntime().halt(1);
    }

    static void transfer(
        KafkaConsumer<byte[], byte[]> consumer, KafkaProducer<byte[], byte[]> producer,
        ConsumerRecords<byte[], byte[]> records, boolean hold) throws Exception {
        producer.beginTransaction();
        Map<TopicPartition, OffsetAndMetadata> ends = new HashMap<>();
        for (ConsumerRecord<byte[], byte[]> one : records) {
            producer.send(new ProducerRecord<>("out", one.partition(), null, one.value()));
            ends.put(new TopicPartition(one.topic(), one.partition()), new OffsetAndMetadata(one.offset() + 1));
        }
        producer.flush();
        System.out.println("open");
        if (hold) {
            System.in.read();
        }
        Thread.sleep(MIDDLE);
        producer.sendOffsetsToTransaction(ends, consumer.groupMetadata());
        producer.commitTransaction();
        System.out.println("copied " + records.count());
    }
}
