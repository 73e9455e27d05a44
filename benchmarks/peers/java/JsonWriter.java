import com.fasterxml.jackson.core.io.JsonStringEncoder;
import com.fasterxml.jackson.core.io.SerializedString;
import java.nio.charset.StandardCharsets;
import java.util.List;

/** JSON: what does not change is there as bytes, probabilities have four decimals. */
final class JsonWriter extends Writer {
    private static final byte[] ID = bytes("{\"id\":\"");
    private static final byte[] LABEL = bytes("\",\"label\":");
    private static final byte[] NULL = bytes("null");
    private static final byte[] PROBABILITIES = bytes(",\"probabilities\":{");
    private static final byte[] VERSION = bytes("},\"version\":");
    private static final byte[] UNTRAINED = bytes(",\"untrained\":true");
    private static final int STEPS = 10_000;

    private final byte[][] names;
    private final byte[][] members;

    JsonWriter(List<String> classes) {
        names = classes.stream().map(JsonWriter::quoted).toArray(byte[][]::new);
        members = new byte[names.length][];
        for (int i = 0; i < names.length; i++) {
            members[i] = bytes(new String(names[i], StandardCharsets.UTF_8) + ":");
        }
    }

    private static byte[] quoted(String name) {
        return bytes('"' + new String(new SerializedString(name).asQuotedUTF8(), StandardCharsets.UTF_8) + '"');
    }

    @Override
    byte[] write(byte[] id, int partition, long offset, int label, double[] probabilities, long version) {
        length = 0;
        add(ID);
        if (id == null) {
            place(partition, offset);
        } else {
            add(JsonStringEncoder.getInstance().quoteAsUTF8(new String(id, StandardCharsets.UTF_8)));
        }
        add(LABEL);
        add(label < 0 ? NULL : names[label]);
        add(PROBABILITIES);
        boolean first = true;
        for (int i = 0; label >= 0 && i < probabilities.length; i++) {
            if (!Double.isNaN(probabilities[i])) {
                room(1);
                buffer[length] = ',';
                length += first ? 0 : 1;
                first = false;
                add(members[i]);
                decimals(probabilities[i]);
            }
        }
        add(VERSION);
        digits(version);
        if (version == 0) {
            add(UNTRAINED);
        }
        room(1);
        buffer[length++] = '}';
        return done();
    }

    /** Add a number from 0 to 1, as short as it is. */
    private void decimals(double probability) {
        int steps = (int) Math.rint(probability * STEPS);
        room(6);
        buffer[length++] = (byte) ('0' + steps / STEPS);
        buffer[length++] = '.';
        int rest = steps % STEPS;
        int place = STEPS / 10;
        do {
            buffer[length++] = (byte) ('0' + rest / place);
            rest %= place;
            place /= 10;
        } while (rest > 0);
    }
}
