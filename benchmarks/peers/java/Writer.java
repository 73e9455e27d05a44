import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;

/** A format of predictions (docs/records.md): writes them into one buffer, which is used again. */
abstract class Writer {
    byte[] buffer = new byte[1024];
    int length;

    static Writer of(Job job) {
        List<String> classes = job.words("classes");
        return switch (job.of("format")) {
            case "packed" -> new PackedWriter(classes);
            case "avro" -> new AvroWriter(job.number("answer-id"), classes);
            default -> new JsonWriter(classes);
        };
    }

    /**
     * Write the answer to a row.
     *
     * id: the row's own, null: its place, `partition`-`offset`; label: -1, no class is known yet, and there are no
     * probabilities either; probabilities: by class, NaN of a class that the model does not know.
     */
    abstract byte[] write(byte[] id, int partition, long offset, int label, double[] probabilities, long version);

    final byte[] done() {
        return Arrays.copyOf(buffer, length);
    }

    final void room(int more) {
        if (length + more > buffer.length) {
            buffer = Arrays.copyOf(buffer, Math.max(2 * buffer.length, length + more));
        }
    }

    final void add(byte[] bytes) {
        room(bytes.length);
        System.arraycopy(bytes, 0, buffer, length, bytes.length);
        length += bytes.length;
    }

    /** Add the digits of a number that is not negative. */
    final void digits(long number) {
        room(20);
        int end = length + 1;
        for (long rest = number; rest >= 10; rest /= 10) {
            end++;
        }
        long rest = number;
        for (int i = end - 1; i >= length; i--) {
            buffer[i] = (byte) ('0' + rest % 10);
            rest /= 10;
        }
        length = end;
    }

    /** Add the place of a record, which is its id if it has none. */
    final void place(int partition, long offset) {
        digits(partition);
        room(1);
        buffer[length++] = '-';
        digits(offset);
    }

    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}
