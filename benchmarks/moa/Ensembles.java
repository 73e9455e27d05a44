import com.yahoo.labs.samoa.instances.Instance;
import com.yahoo.labs.samoa.instances.InstancesHeader;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.lang.ref.Reference;
import java.util.Properties;
import moa.classifiers.AbstractClassifier;
import moa.options.ClassOption;

/**
 * Test-then-train of any of MOA's classifiers for the clock: the learner alone, nothing is evaluated.
 *
 * The one argument names a properties file: columns (little-endian float64: attributes, class, weight), records,
 * attributes ("n" or the number of values, separated by commas), classes, learner (as on MOA's command line), and
 * repeats, or seeds (separated by commas, a repeat each).
 * Prints {"seconds": [processor time of each repeat], "correct": hits of the last one, "hits": [of each], "bytes": of
 * the heap that the last classifier holds in the end}.
 */
public final class Ensembles {

    private Ensembles() {
    }

    public static void main(String[] arguments) throws IOException {
        Properties job = new Properties();
        try (InputStream in = new FileInputStream(arguments[0])) {
            job.load(in);
        }
        InstancesHeader header =
                Prequential.header(job.getProperty("attributes"), Integer.parseInt(job.getProperty("classes")));
        int records = Integer.parseInt(job.getProperty("records"));
        Instance[] rows = Prequential.read(job.getProperty("columns"), records, header.numAttributes(), header);
        StringBuilder seconds = new StringBuilder();
        StringBuilder hits = new StringBuilder();
        long correct = 0;
        AbstractClassifier learner = null;
        String[] seeds = job.getProperty("seeds", "").isEmpty() ? null : job.getProperty("seeds").split(",");
        int repeats = seeds != null ? seeds.length : Integer.parseInt(job.getProperty("repeats"));
        for (int repeat = 0; repeat < repeats; repeat++) {
            try {
                learner = (AbstractClassifier) ClassOption.cliStringToObject(
                        job.getProperty("learner"), AbstractClassifier.class, null);
            } catch (Exception error) {
                throw new IllegalArgumentException("no classifier: " + job.getProperty("learner"), error);
            }
            learner.setModelContext(header);
            if (seeds != null) {
                learner.setRandomSeed(Integer.parseInt(seeds[repeat]));
            }
            learner.prepareForUse();
            long start = Prequential.spent();
            correct = Prequential.count(learner, rows);
            seconds.append(repeat == 0 ? "" : ", ").append((Prequential.spent() - start) / 1e9);
            hits.append(repeat == 0 ? "" : ", ").append(correct);
        }
        long held = used();
        Reference.reachabilityFence(learner);
        learner = null;
        System.out.println("{\"seconds\": [" + seconds + "], \"correct\": " + correct + ", \"hits\": [" + hits
                + "], \"bytes\": " + (held - used()) + "}");
    }

    /** Returns the bytes of the heap that are in use after garbage was collected. */
    private static long used() {
        System.gc();
        return Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory();
    }
}
