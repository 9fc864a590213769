import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.kafka.annotation.EnableKafka;
import org.springframework.kafka.annotation.KafkaListener;
import org.springframework.kafka.config.ShareKafkaListenerContainerFactory;
import org.springframework.kafka.core.DefaultShareConsumerFactory;
import org.springframework.kafka.listener.ContainerProperties;
import org.springframework.kafka.support.ShareAcknowledgment;

/**
 * A share listener of Spring's: BOOTSTRAP GROUP TOPIC. It says what it gets, a line a record, and does with it what the
 * record's value begins with, until its standard input ends; what comes again is accepted.
 */
@Configuration
@EnableKafka
public class SpringShare {
    public static void main(String[] given) throws Exception {
        System.setProperty("bootstrap", given[0]);
        System.setProperty("group", given[1]);
        System.setProperty("topic", given[2]);
        try (var context = new AnnotationConfigApplicationContext(SpringShare.class)) {
            while (System.in.read() >= 0) { }
        }
    }

    @Bean
    public ShareKafkaListenerContainerFactory<String, String> sharing() {
        var consumers = new DefaultShareConsumerFactory<String, String>(Map.of(
            "bootstrap.servers", System.getProperty("bootstrap"), "share.acknowledgement.mode", "explicit",
            "key.deserializer", StringDeserializer.class, "value.deserializer", StringDeserializer.class));
        var factory = new ShareKafkaListenerContainerFactory<String, String>(consumers);
        factory.getContainerProperties().setShareAckMode(ContainerProperties.ShareAckMode.MANUAL);
        return factory;
    }

    @KafkaListener(topics = "${topic}", groupId = "${group}", containerFactory = "sharing")
    public void take(ConsumerRecord<String, String> record, ShareAcknowledgment acknowledgment) {
        int count = record.deliveryCount().get();
        switch (count > 1 ? "accept" : record.value().split(" ")[0]) {
            case "release" -> acknowledgment.release();
            case "reject" -> acknowledgment.reject();
            case "renew" -> {
                acknowledgment.renew();
                acknowledgment.acknowledge();
            }
            default -> acknowledgment.acknowledge();
        }
        System.out.println(record.offset() + " " + count + " " + record.value());
    }
}
