import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.core.StreamReadFeature;
import com.fasterxml.jackson.core.io.SerializedString;
import java.io.IOException;
import java.io.InputStream;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * JSON by Jackson's streaming parser. One parser reads all records, as values one behind the other: neither it nor
 * its buffers are made anew. Features are numbers or null.
 */
final class JsonReader implements Reader {

    /** The bytes of the record at hand. */
    private static final class Source extends InputStream {
        byte[] bytes;
        int at;
        int end;

        @Override
        public int read() {
            return at < end ? bytes[at++] & 0xff : -1;
        }

        @Override
        public int read(byte[] into, int offset, int length) {
            int n = Math.min(length, end - at);
            if (n == 0) {
                return -1;
            }
            System.arraycopy(bytes, at, into, offset, n);
            at += n;
            return n;
        }
    }

    private final Source source = new Source();
    private final JsonParser parser;
    private final SerializedString[] names;
    private final Map<String, Integer> positions = new HashMap<>();

    JsonReader(List<String> attributes) {
        names = attributes.stream().map(SerializedString::new).toArray(SerializedString[]::new);
        for (String name : attributes) {
            positions.put(name, positions.size());
        }
        try {
            parser = JsonFactory.builder().enable(StreamReadFeature.USE_FAST_DOUBLE_PARSER)
                    .enable(StreamReadFeature.USE_FAST_BIG_NUMBER_PARSER).build().createParser(source);
        } catch (IOException error) {
            throw new IllegalStateException(error);
        }
    }

    @Override
    public void read(byte[] bytes, int at, int length, Row row) throws IOException {
        source.bytes = bytes;
        source.at = at;
        source.end = at + length;
        row.clear();
        expect(parser.nextToken(), JsonToken.START_OBJECT);
        for (String name = parser.nextFieldName(); name != null; name = parser.nextFieldName()) {
            JsonToken token = parser.nextToken();
            switch (name) {
                case "features" -> features(row);
                case "label" -> row.label(parser.getTextCharacters(), parser.getTextOffset(), parser.getTextLength());
                case "id" -> row.id(parser.getText());
                default -> parser.skipChildren();
            }
        }
        expect(parser.currentToken(), JsonToken.END_OBJECT);
    }

    /** Names come in the order of the attributes, as a rule: then they are compared, and not looked up. */
    private void features(Row row) throws IOException {
        expect(parser.currentToken(), JsonToken.START_OBJECT);
        int next = 0;
        while (true) {
            int attribute = next;
            if (next == names.length || !parser.nextFieldName(names[next])) {
                JsonToken token = next == names.length ? parser.nextToken() : parser.currentToken();
                if (token == JsonToken.END_OBJECT) {
                    return;
                }
                Integer found = positions.get(parser.currentName());
                if (found == null) {
                    throw new IOException("feature '" + parser.currentName() + "' is not known");
                }
                attribute = found;
            }
            if (parser.nextToken() != JsonToken.VALUE_NULL) {
                row.values[attribute] = parser.getDoubleValue();
            }
            next = attribute + 1;
        }
    }

    private static void expect(JsonToken token, JsonToken wanted) throws IOException {
        if (token != wanted) {
            throw new IOException("JSON has " + token + " where " + wanted + " must be");
        }
    }
}
