import com.github.kagkarlsson.scheduler.Scheduler;
import com.github.kagkarlsson.scheduler.SchedulerClient;
import com.github.kagkarlsson.scheduler.task.SchedulableInstance;
import com.github.kagkarlsson.scheduler.task.helper.OneTimeTask;
import com.github.kagkarlsson.scheduler.task.helper.Tasks;
import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.zip.CRC32;

/** db-scheduler's side: {@code work} runs a scheduler, {@code submit FILE} submits work. Settings are properties. */
public final class DbSchedulerPeer {
  private static final Path FOLDER = Path.of(System.getenv("PEER_FOLDER"));

  private static final String TABLE =
      """
      create table if not exists scheduled_tasks (
        task_name text not null, task_instance text not null, task_data bytea,
        execution_time timestamptz not null, picked boolean not null, picked_by text,
        last_success timestamptz, last_failure timestamptz, consecutive_failures int,
        last_heartbeat timestamptz, version bigint not null, priority smallint,
        primary key (task_name, task_instance));
      create index if not exists by_execution_time on scheduled_tasks (execution_time);
      create index if not exists by_last_heartbeat on scheduled_tasks (last_heartbeat);
      """;

  private final FileChannel arrivals =
      FileChannel.open(FOLDER.resolve("arrivals"), StandardOpenOption.WRITE, StandardOpenOption.APPEND);

  private final OneTimeTask<byte[]> deliver =
      Tasks.oneTime("deliver", byte[].class)
          .execute((instance, context) -> arrived(instance.getId(), instance.getData()));

  private DbSchedulerPeer() throws IOException {}

  public static void main(String[] args) throws Exception {
    var peer = new DbSchedulerPeer();
    if (args[0].equals("submit")) {
      try (var database = database(1)) {
        peer.submit(database, Path.of(args[1]));
      }
    } else {
      try (var database = database(Integer.getInteger("connections"))) {
        peer.work(database);
      }
    }
  }

  private void work(HikariDataSource database) throws IOException, SQLException, InterruptedException {
    try (var connection = database.getConnection(); var statement = connection.createStatement()) {
      statement.execute(TABLE);
    }
    Scheduler scheduler =
        Scheduler.create(database, deliver)
            .threads(Integer.getInteger("threads"))
            .pollUsingLockAndFetch(
                Double.parseDouble(System.getProperty("lower_limit_fraction_of_threads")),
                Double.parseDouble(System.getProperty("upper_limit_fraction_of_threads")))
            .pollingInterval(Duration.ofMillis(Long.getLong("polling_interval_ms")))
            .heartbeatInterval(Duration.ofMillis(Long.getLong("heartbeat_interval_ms")))
            .missedHeartbeatsLimit(Integer.getInteger("missed_heartbeats_limit"))
            .build();
    scheduler.start();
    Files.createFile(FOLDER.resolve("ready"));
    Thread.currentThread().join();
  }

  private void submit(HikariDataSource database, Path file) throws IOException {
    List<SchedulableInstance<?>> work = new ArrayList<>();
    for (String line : Files.readAllLines(file)) {
      String[] words = line.split(" ");
      byte[] payload = HexFormat.of().parseHex(words[2]);
      Instant due = Instant.ofEpochMilli(Long.parseLong(words[1]));
      work.add(deliver.instanceBuilder(words[0]).data(payload).scheduledTo(due));
    }
    SchedulerClient client = SchedulerClient.Builder.create(database, deliver).build();
    long begun = System.nanoTime();
    client.scheduleBatch(work.stream());
    Files.writeString(FOLDER.resolve("submitted"), String.valueOf((System.nanoTime() - begun) / 1e9));
  }

  private void arrived(String key, byte[] payload) {
    var checksum = new CRC32();
    checksum.update(payload);
    String line = "%s %d %d\n".formatted(key, System.currentTimeMillis(), checksum.getValue());
    try {
      arrivals.write(ByteBuffer.wrap(line.getBytes(StandardCharsets.US_ASCII)));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static HikariDataSource database(int connections) {
    var configuration = new HikariConfig();
    configuration.setJdbcUrl(System.getenv("PEER_STORE"));
    configuration.setMaximumPoolSize(connections);
    return new HikariDataSource(configuration);
  }
}
