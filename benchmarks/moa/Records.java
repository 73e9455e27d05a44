import com.yahoo.labs.samoa.instances.Instance;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Paths;
import java.nio.file.StandardOpenOption;
import moa.options.AbstractOptionHandler;
import moa.options.ClassOption;
import moa.streams.InstanceStream;

/**
 * Writes the first records of one of MOA's streams: little-endian float64, attributes then class.
 *
 * Arguments: the stream as MOA's command line names it, the number of records, the file to write.
 */
public final class Records {

    private Records() {
    }

    public static void main(String[] arguments) throws Exception {
        InstanceStream stream = (InstanceStream) ClassOption.cliStringToObject(arguments[0], InstanceStream.class, null);
        if (stream instanceof AbstractOptionHandler) {
            ((AbstractOptionHandler) stream).prepareForUse();
        }
        int records = Integer.parseInt(arguments[1]);
        write(stream, records, arguments[2]);
    }

    private static void write(InstanceStream stream, int records, String path) throws IOException {
        try (FileChannel file = FileChannel.open(Paths.get(path), StandardOpenOption.CREATE,
                StandardOpenOption.WRITE, StandardOpenOption.TRUNCATE_EXISTING)) {
            for (int i = 0; i < records; i++) {
                Instance instance = stream.nextInstance().getData();
                ByteBuffer row = ByteBuffer.allocate(8 * instance.numAttributes()).order(ByteOrder.LITTLE_ENDIAN);
                for (int j = 0; j < instance.numAttributes(); j++) {
                    row.putDouble(instance.value(j));
                }
                row.flip();
                while (row.hasRemaining()) {
                    file.write(row);
                }
            }
        }
    }
}
