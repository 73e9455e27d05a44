import java.io.IOException;

/** A format of instances (docs/records.md): reads a record's bytes into the row. */
interface Reader {
    void read(byte[] bytes, int at, int length, Row row) throws IOException;

    static Reader of(Job job) {
        return switch (job.of("format")) {
            case "packed" -> new PackedReader();
            case "avro" -> new AvroReader(job.of("schema"), job.number("schema-id"), job.words("attributes"));
            default -> new JsonReader(job.words("attributes"));
        };
    }
}
