import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;

/** What a peer is told on its command line (`--name value`), and the settings of clients that both peers have. */
final class Job {
    private final Map<String, String> given = new HashMap<>();

    Job(String[] arguments) {
        for (int i = 0; i + 1 < arguments.length; i += 2) {
            given.put(arguments[i].substring(2), arguments[i + 1]);
        }
    }

    /** Let this process end with the one that started it, even if that is killed. */
    static void endWithParent() {
        ProcessHandle.current().parent().ifPresent(parent -> parent.onExit().thenRun(() -> Runtime.getRuntime().halt(1)));
    }

    /** The value of a word, which must be there. */
    String of(String name) {
        String value = given.get(name);
        if (value == null) {
            throw new IllegalArgumentException("--" + name + " is missing");
        }
        return value;
    }

    int number(String name) {
        return Integer.parseInt(of(name));
    }

    List<String> words(String name) {
        return List.of(of(name).split(","));
    }

    boolean exactlyOnce() {
        return of("guarantee").equals("exactly_once");
    }

    /** The consumer's: large fetches, and polls of as many records as keep the processor busy. */
    Properties consumer() {
        Properties set = new Properties();
        set.put("auto.offset.reset", "earliest");
        set.put("isolation.level", "read_committed");
        set.put("fetch.max.wait.ms", "100");
        set.put("fetch.max.bytes", "67108864");
        set.put("max.partition.fetch.bytes", "4194304");
        set.put("receive.buffer.bytes", "1048576");
        set.put("max.poll.records", "10000");
        return set;
    }

    /** The producer's: large batches, idempotent, acknowledged by all, not compressed, as our worker's. */
    Properties producer() {
        Properties set = new Properties();
        set.put("acks", "all");
        set.put("enable.idempotence", "true");
        set.put("linger.ms", of("linger"));
        set.put("batch.size", "262144");
        set.put("buffer.memory", "134217728");
        set.put("max.request.size", "8388608");
        set.put("send.buffer.bytes", "1048576");
        set.put("compression.type", "none");
        return set;
    }
}
