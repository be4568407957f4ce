import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

/**
 * A plain scheduler on Kafka Streams: a store of pending messages, ordered by due time, and a punctuator that forwards
 * due messages. Arguments: application id, servers, commands topic, target topic. Properties that begin with
 * {@code streams.} are settings of Kafka Streams.
 */
public final class PunctuatorPeer {
  private static final Path FOLDER = Path.of(System.getenv("PEER_FOLDER"));
  private static final String PENDING = "pending";

  private PunctuatorPeer() {}

  public static void main(String[] args) throws Exception {
    var settings = new Properties();
    settings.put(StreamsConfig.APPLICATION_ID_CONFIG, args[0]);
    settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, args[1]);
    settings.put(StreamsConfig.STATE_DIR_CONFIG, FOLDER.resolve("state").toString());
    System.getProperties()
        .forEach(
            (name, value) -> {
              if (name.toString().startsWith("streams.")) {
                settings.put(name.toString().substring("streams.".length()), value);
              }
            });
    var ready = new CountDownLatch(1);
    var streams = new KafkaStreams(topology(args[2], args[3]), settings);
    streams.setStateListener(
        (state, before) -> {
          if (state == KafkaStreams.State.RUNNING) {
            ready.countDown();
          }
        });
    streams.start();
    ready.await();
    Files.createFile(FOLDER.resolve("ready"));
    Thread.currentThread().join();
  }

  private static Topology topology(String commands, String target) {
    var topology = new Topology();
    topology.addSource("commands", new ByteArrayDeserializer(), new ByteArrayDeserializer(), commands);
    topology.addProcessor("punctuator", Punctuator::new, "commands");
    topology.addStateStore(
        Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore(PENDING), Serdes.Bytes(), Serdes.ByteArray()),
        "punctuator");
    topology.addSink("target", target, new ByteArraySerializer(), new ByteArraySerializer(), "punctuator");
    return topology;
  }

  private static final class Punctuator implements Processor<byte[], byte[], byte[], byte[]> {
    private ProcessorContext<byte[], byte[]> context;
    private KeyValueStore<Bytes, byte[]> pending;

    @Override
    public void init(ProcessorContext<byte[], byte[]> context) {
      this.context = context;
      pending = context.getStateStore(PENDING);
      var interval = Duration.ofMillis(Long.getLong("punctuation_interval_ms"));
      context.schedule(interval, PunctuationType.WALL_CLOCK_TIME, this::forwardDue);
    }

    @Override
    public void process(Record<byte[], byte[]> command) {
      byte[] due = command.headers().lastHeader("schedule-at").value();
      pending.put(placeOf(Long.parseLong(new String(due, StandardCharsets.US_ASCII)), command.key()), command.value());
    }

    private void forwardDue(long now) {
      try (var due = pending.range(placeOf(0, new byte[0]), placeOf(now + 1, new byte[0]))) {
        while (due.hasNext()) {
          var next = due.next();
          byte[] place = next.key.get();
          context.forward(new Record<>(Arrays.copyOfRange(place, Long.BYTES, place.length), next.value, now));
          pending.delete(next.key);
        }
      }
    }

    /** Returns the key in the store: due time (big-endian), then the schedule's own key. */
    private static Bytes placeOf(long due, byte[] key) {
      return Bytes.wrap(ByteBuffer.allocate(Long.BYTES + key.length).putLong(due).put(key).array());
    }
  }
}
