import java.io.IOException;

/** A format of instances (docs/records.md): reads a record's bytes into the row. */
interface Reader {
    void read(byte[] bytes, int at, int length, Row row) throws IOException;

    static Reader of(Job job) {
        return job.of("format").equals("packed") ? new PackedReader() : new JsonReader(job.words("attributes"));
    }
}
