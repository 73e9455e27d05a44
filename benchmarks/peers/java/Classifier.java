import com.yahoo.labs.samoa.instances.DenseInstance;
import com.yahoo.labs.samoa.instances.Instance;
import java.io.IOException;

/** Decodes a record, answers it by the tree of its key, and lets that tree learn it: test, then train. */
final class Classifier {
    final Models models;
    private final Reader reader;
    private final Writer writer;
    private final Row row;
    private final Instance instance;
    private final double[] probabilities;

    Classifier(Job job) {
        models = new Models(job.words("attributes"), job.words("classes"), job.of("options"));
        reader = Reader.of(job);
        writer = Writer.of(job);
        row = new Row(job.words("attributes").size(), job.words("classes"));
        instance = new DenseInstance(1.0, row.values);
        instance.setDataset(models.header);
        probabilities = new double[job.words("classes").size()];
    }

    /** The answer to a record, whose value is `length` bytes from `at` on. */
    byte[] answer(Models.Model model, byte[] bytes, int at, int length, int partition, long offset) throws IOException {
        reader.read(bytes, at, length, row);
        row.values[row.attributes] = Double.NaN;
        int label = model.answer(model.tree.getVotesForInstance(instance), probabilities);
        byte[] answer = writer.write(row.id, partition, offset, label, probabilities, model.version);
        if (row.label != Row.NO_LABEL) {
            row.values[row.attributes] = model.learned(row.label);
            model.tree.trainOnInstance(instance);
            model.version++;
        }
        return answer;
    }
}
