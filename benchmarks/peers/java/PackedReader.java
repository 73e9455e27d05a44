import java.io.IOException;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.Arrays;

/** The packed layout, with float64 values and a label that is a whole number. */
final class PackedReader implements Reader {
    private static final VarHandle SHORT = view(short[].class);
    private static final VarHandle INT = view(int[].class);
    private static final VarHandle DOUBLE = view(double[].class);
    private static final int INSTANCE = 1;
    private static final int HAS_LABEL = 1;
    private static final int HEADER_BYTES = 16;

    static VarHandle view(Class<?> array) {
        return MethodHandles.byteArrayViewVarHandle(array, ByteOrder.LITTLE_ENDIAN);
    }

    @Override
    public void read(byte[] bytes, int at, int length, Row row) throws IOException {
        int flags = bytes[at + 5];
        int idBytes = (short) SHORT.get(bytes, at + 6) & 0xffff;
        int count = (int) INT.get(bytes, at + 8);
        if (bytes[at + 3] != INSTANCE || bytes[at + 4] != Double.BYTES || (flags & ~HAS_LABEL) != 0
                || count != row.attributes || length != HEADER_BYTES + count * Double.BYTES + idBytes) {
            throw new IOException("a packed record is not an instance of " + row.attributes + " float64 values");
        }
        row.clear();
        for (int i = 0; i < count; i++) {
            row.values[i] = (double) DOUBLE.get(bytes, at + HEADER_BYTES + i * Double.BYTES);
        }
        if ((flags & HAS_LABEL) != 0) {
            row.label((int) INT.get(bytes, at + 12));
        }
        if (idBytes > 0) {
            int end = at + length;
            row.id = Arrays.copyOfRange(bytes, end - idBytes, end);
        }
    }
}
