import java.lang.invoke.VarHandle;
import java.util.List;

/** A prediction in Avro (topics/schemas), in a frame with the id of its schema. */
final class AvroWriter extends Writer {
    private static final VarHandle DOUBLE = PackedReader.view(double[].class);
    private static final int NULL = 0;
    private static final int PRESENT = 1;

    private final byte[] frame;
    private final byte[][] names;

    AvroWriter(int id, List<String> classes) {
        frame = new byte[] {0, (byte) (id >>> 24), (byte) (id >>> 16), (byte) (id >>> 8), (byte) id};
        names = classes.stream().map(Writer::bytes).toArray(byte[][]::new);
    }

    @Override
    byte[] write(byte[] id, int partition, long offset, int label, double[] probabilities, long version) {
        length = 0;
        add(frame);
        if (id == null) {
            int at = length;
            length++; // a place has at most 31 bytes, and so a length of one byte
            place(partition, offset);
            buffer[at] = (byte) (length - at - 1 << 1);
        } else {
            text(id);
        }
        whole(label < 0 ? NULL : PRESENT);
        if (label >= 0) {
            text(names[label]);
            probabilities(probabilities);
        }
        whole(0); // the end of the map
        whole(version);
        room(6);
        buffer[length++] = (byte) (version == 0 ? 1 : 0); // untrained
        buffer[length++] = NULL; // explanation
        buffer[length++] = NULL; // acquired
        buffer[length++] = NULL; // challenger
        buffer[length++] = NULL; // raw probabilities
        buffer[length++] = NULL; // set
        return done();
    }

    /** Add one block of a map, with the classes that the model knows. */
    private void probabilities(double[] probabilities) {
        int count = 0;
        for (double probability : probabilities) {
            count += Double.isNaN(probability) ? 0 : 1;
        }
        whole(count);
        for (int i = 0; i < names.length; i++) {
            if (!Double.isNaN(probabilities[i])) {
                text(names[i]);
                room(Double.BYTES);
                DOUBLE.set(buffer, length, probabilities[i]);
                length += Double.BYTES;
            }
        }
    }

    private void text(byte[] text) {
        whole(text.length);
        add(text);
    }

    /** Add a whole number in zigzag coding. */
    private void whole(long number) {
        room(10);
        long rest = number << 1 ^ number >> 63;
        for (; (rest & ~0x7fL) != 0; rest >>>= 7) {
            buffer[length++] = (byte) (rest & 0x7f | 0x80);
        }
        buffer[length++] = (byte) rest;
    }
}
