import com.cronutils.model.CronType;
import com.cronutils.model.definition.CronDefinitionBuilder;
import com.cronutils.model.time.ExecutionTime;
import com.cronutils.parser.CronParser;
import it.sauronsoftware.cron4j.Predictor;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.time.ZoneId;
import java.time.ZonedDateTime;
import java.util.ArrayList;
import java.util.Date;
import java.util.List;
import java.util.TimeZone;

/**
 * Asks the Java originals when expressions fire.
 *
 * Arguments: count, zones (comma-separated), starts (epoch ms, comma-separated).
 * Input: lines of dialect, tab, expression. Output: a line each, in order: `refused`, or `fires` and, for each zone and
 * in it for each start, a tab and the next times (epoch s, by spaces; fewer than count if it knows no more).
 */
public class Originals {
    interface Next {
        Long after(long ms) throws Exception;
    }

    interface Parsed {
        Next in(ZoneId zone, long start) throws Exception;
    }

    static Parsed parse(String dialect, String expression) throws Exception {
        switch (dialect) {
            case "unix": {
                var cron = new CronParser(CronDefinitionBuilder.instanceDefinitionFor(CronType.UNIX)).parse(expression).validate();
                var times = ExecutionTime.forCron(cron);
                return (zone, start) -> ms -> times.nextExecution(Instant.ofEpochMilli(ms).atZone(zone))
                        .map(next -> next.toInstant().toEpochMilli()).orElse(null);
            }
            case "spring": {
                var cron = org.springframework.scheduling.support.CronExpression.parse(expression);
                return (zone, start) -> ms -> {
                    ZonedDateTime next = cron.next(Instant.ofEpochMilli(ms).atZone(zone));
                    return next == null ? null : next.toInstant().toEpochMilli();
                };
            }
            case "quartz": {
                new org.quartz.CronExpression(expression);
                return (zone, start) -> {
                    var cron = new org.quartz.CronExpression(expression);
                    cron.setTimeZone(TimeZone.getTimeZone(zone));
                    return ms -> {
                        Date next = cron.getNextValidTimeAfter(new Date(ms));
                        return next == null ? null : next.getTime();
                    };
                };
            }
            case "cron4j": {
                new it.sauronsoftware.cron4j.SchedulingPattern(expression);
                return (zone, start) -> {
                    // Its predictor takes one of its tests in the default zone.
                    TimeZone.setDefault(TimeZone.getTimeZone(zone));
                    var predictor = new Predictor(expression, start);
                    return ms -> predictor.nextMatchingTime();
                };
            }
            default:
                throw new AssertionError(dialect);
        }
    }

    static String answer(String dialect, String expression, int count, List<ZoneId> zones, List<Long> starts) {
        Parsed parsed;
        try {
            parsed = parse(dialect, expression);
        } catch (Exception refused) {
            return "refused";
        }
        var line = new StringBuilder("fires");
        for (ZoneId zone : zones) {
            for (long start : starts) {
                var times = new ArrayList<String>();
                try {
                    Next next = parsed.in(zone, start);
                    Long at = start;
                    while (times.size() < count && (at = next.after(at)) != null)
                        times.add(Long.toString(at / 1000));
                } catch (Exception failed) {
                    times.add("failed");
                }
                line.append('\t').append(String.join(" ", times));
            }
        }
        return line.toString();
    }

    @SuppressWarnings({"deprecation", "removal"})
    public static void main(String[] arguments) throws Exception {
        int count = Integer.parseInt(arguments[0]);
        var zones = new ArrayList<ZoneId>();
        for (String zone : arguments[1].split(","))
            zones.add(ZoneId.of(zone));
        var starts = new ArrayList<Long>();
        for (String start : arguments[2].split(","))
            starts.add(Long.parseLong(start));
        var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = input.readLine()) != null;) {
            String[] parts = line.split("\t", 2);
            String[] answer = {"endless"};
            var thread = new Thread(() -> answer[0] = answer(parts[0], parts[1], count, zones, starts));
            thread.setDaemon(true);
            thread.start();
            thread.join(20_000);
            // Some never end on what never fires.
            if (thread.isAlive())
                thread.stop();
            System.out.println(answer[0]);
        }
    }
}
