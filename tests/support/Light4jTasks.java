import com.networknt.scheduler.DefinitionAction;
import com.networknt.scheduler.TaskDefinition;
import com.networknt.scheduler.TaskDefinitionKey;
import com.networknt.scheduler.TaskFrequency;
import com.networknt.scheduler.TimeUnit;
import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.avro.Schema;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.EncoderFactory;
import org.apache.avro.specific.SpecificDatumWriter;
import org.apache.avro.specific.SpecificRecordBase;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Sends tasks with light-4j's own classes, framed with the ids that a schema registry gives their schemas.
 *
 * java Light4jTasks.java BOOTSTRAP_SERVERS REGISTRY TOPIC TARGET
 *
 * `kept` repeats every second, `later` every second and then every 1,000 seconds, and `gone` is deleted again.
 */
class Light4jTasks {
    private static final Pattern ID = Pattern.compile("\"id\":\\s*(\\d+)");
    private static final HttpClient HTTP = HttpClient.newHttpClient();

    private final String registry;
    private final String topic;
    private final Map<String, Integer> ids = new HashMap<>();

    Light4jTasks(String registry, String topic) {
        this.registry = registry;
        this.topic = topic;
    }

    public static void main(String[] args) throws Exception {
        Light4jTasks tasks = new Light4jTasks(args[1], args[2]);
        Properties settings = new Properties();
        settings.put("bootstrap.servers", args[0]);
        settings.put("key.serializer", ByteArraySerializer.class.getName());
        settings.put("value.serializer", ByteArraySerializer.class.getName());
        long start = System.currentTimeMillis();
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings)) {
            for (String name : new String[] {"kept", "gone", "later"}) {
                producer.send(tasks.record(name, DefinitionAction.INSERT, args[3], 1, start));
            }
            producer.send(tasks.record("later", DefinitionAction.UPDATE, args[3], 1_000, start));
            producer.send(tasks.record("gone", DefinitionAction.DELETE, args[3], 1, start));
        }
    }

    ProducerRecord<byte[], byte[]> record(String name, DefinitionAction action, String target, int seconds, long start)
            throws Exception {
        TaskDefinitionKey key = TaskDefinitionKey.newBuilder().setHost("networknt.com").setName(name).build();
        TaskDefinition task = TaskDefinition.newBuilder()
                .setHost("networknt.com")
                .setName(name)
                .setAction(action)
                .setFrequency(TaskFrequency.newBuilder().setTimeUnit(TimeUnit.SECONDS).setTime(seconds).build())
                .setTopic(target)
                .setStart(start)
                .setData(Map.of("key1", "value1", "ž", ""))
                .build();
        return new ProducerRecord<>(topic, framed(key, "key"), framed(task, "value"));
    }

    byte[] framed(SpecificRecordBase record, String part) throws Exception {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream frame = new DataOutputStream(bytes);
        frame.writeByte(0);
        frame.writeInt(idOf(record.getSchema(), part));
        BinaryEncoder encoder = EncoderFactory.get().directBinaryEncoder(bytes, null);
        new SpecificDatumWriter<SpecificRecordBase>(record.getSchema()).write(record, encoder);
        return bytes.toByteArray();
    }

    private int idOf(Schema schema, String part) throws IOException, InterruptedException {
        Integer known = ids.get(part);
        if (known != null) {
            return known;
        }
        String body = "{\"schema\": \"" + schema.toString().replace("\\", "\\\\").replace("\"", "\\\"") + "\"}";
        HttpRequest request = HttpRequest.newBuilder(URI.create(registry + "/subjects/" + topic + "-" + part + "/versions"))
                .header("Content-Type", "application/vnd.schemaregistry.v1+json")
                .POST(HttpRequest.BodyPublishers.ofString(body))
                .build();
        Matcher answer = ID.matcher(HTTP.send(request, HttpResponse.BodyHandlers.ofString()).body());
        if (!answer.find()) {
            throw new IOException("the registry gave no id");
        }
        int id = Integer.parseInt(answer.group(1));
        ids.put(part, id);
        return id;
    }
}
