// Schedules a message from Java 17: java -cp kafka-clients.jar:slf4j-api.jar NativeHeaders.java

import static java.nio.charset.StandardCharsets.UTF_8;

import java.util.Map;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

public class NativeHeaders {
    public static void main(String[] args) throws Exception {
        Map<String, Object> settings = Map.of(
                "bootstrap.servers", System.getenv().getOrDefault("KAFKA", "127.0.0.1:9092"),
                "enable.idempotence", true);
        try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            // The key is the entity: all its commands need the same key. It is also the id, unless schedule-id is given.
            var later = new ProducerRecord<>("light-scheduler-commands", "order-java", "pay!");
            later.headers()
                    .add("schedule-after", "2s".getBytes(UTF_8))
                    .add("schedule-target-topic", "reminders".getBytes(UTF_8))
                    .add("trace", "0af7651916cd43dd".getBytes(UTF_8)); // any other header passes through
            System.out.println(producer.send(later).get());

            // A null value and no trigger: cancel.
            producer.send(new ProducerRecord<>("light-scheduler-commands", "order-1", null)).get();
        }
    }
}
