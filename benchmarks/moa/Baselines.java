import com.yahoo.labs.samoa.instances.Attribute;
import com.yahoo.labs.samoa.instances.DenseInstance;
import com.yahoo.labs.samoa.instances.Instance;
import com.yahoo.labs.samoa.instances.Instances;
import com.yahoo.labs.samoa.instances.InstancesHeader;
import java.io.BufferedOutputStream;
import java.io.DataOutputStream;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.InputStream;
import java.io.PrintWriter;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import moa.classifiers.AbstractClassifier;
import moa.core.InstanceExample;
import moa.core.Measurement;
import moa.core.Utils;
import moa.evaluation.BasicClassificationPerformanceEvaluator;
import moa.evaluation.WindowClassificationPerformanceEvaluator;
import moa.options.ClassOption;

/**
 * Test-then-train of any of MOA's classifiers, with what its evaluators say on the way.
 *
 * The one argument names a properties file: columns (little-endian float64: attributes, class), records, attributes
 * ("n" or the number of values, separated by commas), classes, learner (as on MOA's command line), window, every,
 * and the files to write: predictions (int32 a record), votes (float64 a record and class), measures (a line of
 * "record accuracy kappa kappaT kappaM" and the last four over the window, every so many records).
 */
public final class Baselines {

    private static final String[] MEASURES = {
        "classifications correct (percent)", "Kappa Statistic (percent)", "Kappa Temporal Statistic (percent)",
        "Kappa M Statistic (percent)",
    };

    private Baselines() {
    }

    private static InstancesHeader header(String kinds, int classes) {
        ArrayList<Attribute> attributes = new ArrayList<>();
        int position = 0;
        for (String kind : kinds.split(",")) {
            String name = "a" + position++;
            attributes.add(kind.equals("n") ? new Attribute(name) : new Attribute(name, values(Integer.parseInt(kind))));
        }
        attributes.add(new Attribute("class", values(classes)));
        InstancesHeader header = new InstancesHeader(new Instances("rows", attributes, 0));
        header.setClassIndex(header.numAttributes() - 1);
        return header;
    }

    private static List<String> values(int count) {
        List<String> names = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            names.add(Integer.toString(i));
        }
        return names;
    }

    private static String told(Measurement[] found) {
        StringBuilder line = new StringBuilder();
        for (String name : MEASURES) {
            for (Measurement each : found) {
                if (each.getName().equals(name)) {
                    line.append(' ').append(each.getValue() / 100.0);
                }
            }
        }
        return line.toString();
    }

    public static void main(String[] arguments) throws Exception {
        Properties job = new Properties();
        try (InputStream in = new FileInputStream(arguments[0])) {
            job.load(in);
        }
        int records = Integer.parseInt(job.getProperty("records"));
        int classes = Integer.parseInt(job.getProperty("classes"));
        int every = Integer.parseInt(job.getProperty("every"));
        InstancesHeader header = header(job.getProperty("attributes"), classes);
        AbstractClassifier learner = (AbstractClassifier) ClassOption.cliStringToObject(
                job.getProperty("learner"), AbstractClassifier.class, null);
        learner.setModelContext(header);
        learner.prepareForUse();
        BasicClassificationPerformanceEvaluator basic = new BasicClassificationPerformanceEvaluator();
        basic.prepareForUse();
        basic.reset(classes);
        WindowClassificationPerformanceEvaluator window = new WindowClassificationPerformanceEvaluator();
        window.widthOption.setValue(Integer.parseInt(job.getProperty("window")));
        window.prepareForUse();
        window.reset(classes);
        ByteBuffer columns = ByteBuffer.wrap(Files.readAllBytes(Paths.get(job.getProperty("columns"))));
        columns.order(ByteOrder.LITTLE_ENDIAN);
        try (DataOutputStream predictions = out(job, "predictions");
                DataOutputStream written = out(job, "votes");
                PrintWriter measures = new PrintWriter(job.getProperty("measures"), "UTF-8")) {
            for (int i = 0; i < records; i++) {
                double[] row = new double[header.numAttributes()];
                for (int j = 0; j < row.length; j++) {
                    row[j] = columns.getDouble();
                }
                Instance instance = new DenseInstance(1.0, row);
                instance.setDataset(header);
                double[] votes = learner.getVotesForInstance(instance);
                predictions.writeInt(Integer.reverseBytes(Utils.maxIndex(votes)));
                for (int c = 0; c < classes; c++) {
                    double vote = c < votes.length ? votes[c] : 0.0;
                    written.writeLong(Long.reverseBytes(Double.doubleToRawLongBits(vote)));
                }
                InstanceExample example = new InstanceExample(instance);
                basic.addResult(example, votes);
                window.addResult(example, votes);
                learner.trainOnInstance(instance);
                if ((i + 1) % every == 0) {
                    measures.println((i + 1) + told(basic.getPerformanceMeasurements())
                            + told(window.getPerformanceMeasurements()));
                }
            }
        }
    }

    private static DataOutputStream out(Properties job, String name) throws Exception {
        return new DataOutputStream(new BufferedOutputStream(new FileOutputStream(job.getProperty(name))));
    }
}
