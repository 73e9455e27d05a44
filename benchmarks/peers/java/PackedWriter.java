import java.lang.invoke.VarHandle;
import java.util.List;

/** The packed layout of a prediction. */
final class PackedWriter extends Writer {
    private static final VarHandle SHORT = PackedReader.view(short[].class);
    private static final VarHandle INT = PackedReader.view(int[].class);
    private static final VarHandle LONG = PackedReader.view(long[].class);
    private static final VarHandle FLOAT = PackedReader.view(float[].class);
    private static final int HEADER_BYTES = 24;
    private static final byte[] START = {(byte) 0xd6, 0x47, 1, 3, Float.BYTES, 0};

    private final byte[][] names;

    PackedWriter(List<String> classes) {
        names = classes.stream().map(PackedWriter::counted).toArray(byte[][]::new);
    }

    /** A name behind the count of its bytes. */
    private static byte[] counted(String name) {
        byte[] text = bytes(name);
        byte[] all = new byte[Short.BYTES + text.length];
        SHORT.set(all, 0, (short) text.length);
        System.arraycopy(text, 0, all, Short.BYTES, text.length);
        return all;
    }

    @Override
    byte[] write(byte[] id, int partition, long offset, int label, double[] probabilities, long version) {
        length = 0;
        add(START);
        length = HEADER_BYTES;
        room(probabilities.length * Float.BYTES);
        int count = 0;
        int position = label;
        for (int i = 0; label >= 0 && i < probabilities.length; i++) {
            if (!Double.isNaN(probabilities[i])) {
                FLOAT.set(buffer, length, (float) probabilities[i]);
                length += Float.BYTES;
                position = i == label ? count : position;
                count++;
            }
        }
        int at = length;
        if (id == null) {
            place(partition, offset);
        } else {
            add(id);
        }
        SHORT.set(buffer, 6, (short) (length - at));
        INT.set(buffer, 8, count);
        INT.set(buffer, 12, position);
        LONG.set(buffer, 16, version);
        for (int i = 0; label >= 0 && i < names.length; i++) {
            if (!Double.isNaN(probabilities[i])) {
                add(names[i]);
            }
        }
        return done();
    }
}
