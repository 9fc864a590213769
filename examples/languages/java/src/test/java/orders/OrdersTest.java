package orders;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.serialization.StringSerializer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;

@Timeout(60)
class OrdersTest {
    record Outcome(String error, double waited, List<String> records) {}

    record Scenario(List<String> arguments, JsonNode topic, String first, int follower, String second,
        int request_timeout_ms, Outcome outcome) {}

    static final Scenario SCENARIO = scenario();

    @RegisterExtension
    static final AbeyantBroker broker = new AbeyantBroker(SCENARIO.arguments());

    @Test
    void aProduceTimesOutWhileAFollowerIsPaused() throws Exception {
        String topic = SCENARIO.topic().get("name").asText();
        Map<String, Object> settings = Map.of(
            "bootstrap.servers", broker.bootstrapServers(),
            "acks", "all",
            "enable.idempotence", false,
            "retries", 0,
            "request.timeout.ms", SCENARIO.request_timeout_ms());
        try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            broker.call("createTopic", Map.of(), SCENARIO.topic());
            producer.send(new ProducerRecord<>(topic, SCENARIO.first())).get();

            broker.call("pauseBroker", Map.of("broker", SCENARIO.follower()), null);
            Future<RecordMetadata> second = producer.send(new ProducerRecord<>(topic, SCENARIO.second()));
            JsonNode waiting = broker.call("listWaiting", Map.of("kind", "Produce", "count", 1), null).get("waiting");
            assertEquals(SCENARIO.outcome().waited(), waiting.get(0).get("left").asDouble());

            broker.call("advanceClock", Map.of(), Map.of("seconds", waiting.get(0).get("left")));
            Throwable failed = assertThrows(ExecutionException.class, () -> second.get(30, TimeUnit.SECONDS)).getCause();
            assertEquals(SCENARIO.outcome().error(), Errors.forException(failed).name());

            broker.call("resumeBroker", Map.of("broker", SCENARIO.follower()), null);
            JsonNode records = broker.call("readRecords", Map.of("topic", topic), null).get("records");
            assertEquals(SCENARIO.outcome().records(), records.findValuesAsText("value"));
        }
    }

    private static Scenario scenario() {
        Path path = Path.of(System.getenv().getOrDefault("SCENARIO", "../scenario.json"));
        try {
            return AbeyantBroker.JSON.readValue(Files.readAllBytes(path), Scenario.class);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }
}
