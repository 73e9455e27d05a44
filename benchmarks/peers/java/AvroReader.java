import java.io.IOException;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.List;
import org.apache.avro.Schema;
import org.apache.avro.io.BinaryDecoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.util.Utf8;

/**
 * Avro in frames of a schema registry: a zero, the schema's id, the value.
 *
 * The schema is walked once; then a value is read by Avro's decoder, field by field, as a generated class with custom
 * coders reads it: there is no object of the record, and no number has a box. Features are doubles.
 */
final class AvroReader implements Reader {
    private static final VarHandle INT = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.BIG_ENDIAN);
    private static final int FRAME_BYTES = 5;

    private final int id;
    private final int[] attributes;
    private final Utf8 label = new Utf8();
    private BinaryDecoder decoder;

    AvroReader(String text, int id, List<String> names) {
        this.id = id;
        List<Schema.Field> fields = new Schema.Parser().parse(text).getFields();
        require(fields.size() == 2 && fields.get(0).name().equals("features") && fields.get(1).name().equals("label")
                && fields.get(1).schema().getType() == Schema.Type.STRING);
        List<Schema.Field> features = fields.get(0).schema().getFields();
        attributes = new int[features.size()];
        for (Schema.Field feature : features) {
            attributes[feature.pos()] = names.indexOf(feature.name());
            require(feature.schema().getType() == Schema.Type.DOUBLE && attributes[feature.pos()] >= 0);
        }
    }

    private static void require(boolean isTrue) {
        if (!isTrue) {
            throw new IllegalArgumentException("the schema must have features, all attributes as doubles, and a label");
        }
    }

    @Override
    public void read(byte[] bytes, int at, int length, Row row) throws IOException {
        if (length < FRAME_BYTES || bytes[at] != 0 || (int) INT.get(bytes, at + 1) != id) {
            throw new IOException("a record is not Avro with schema " + id);
        }
        decoder = DecoderFactory.get().binaryDecoder(bytes, at + FRAME_BYTES, length - FRAME_BYTES, decoder);
        row.clear();
        for (int attribute : attributes) {
            row.values[attribute] = decoder.readDouble();
        }
        decoder.readString(label);
        row.label(label.getBytes(), label.getByteLength());
    }
}
