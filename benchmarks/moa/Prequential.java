import com.yahoo.labs.samoa.instances.Attribute;
import com.yahoo.labs.samoa.instances.DenseInstance;
import com.yahoo.labs.samoa.instances.Instance;
import com.yahoo.labs.samoa.instances.Instances;
import com.yahoo.labs.samoa.instances.InstancesHeader;
import java.io.BufferedOutputStream;
import java.io.DataOutputStream;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Paths;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import moa.AbstractMOAObject;
import moa.classifiers.AbstractClassifier;
import moa.classifiers.core.conditionaltests.InstanceConditionalTest;
import moa.classifiers.core.conditionaltests.NumericAttributeBinaryTest;
import moa.classifiers.core.conditionaltests.NominalAttributeMultiwayTest;
import moa.classifiers.trees.EFDT;
import moa.classifiers.trees.HoeffdingTree;
import moa.core.Example;
import moa.core.InstanceExample;
import moa.core.Measurement;
import moa.core.Utils;
import moa.evaluation.WindowClassificationPerformanceEvaluator;
import moa.streams.InstanceStream;
import moa.tasks.EvaluatePrequential;

/**
 * Test-then-train of MOA's HoeffdingTree or EFDT over instances that are already in memory.
 *
 * The one argument names a properties file: columns (little-endian float64, attributes then class, then weight),
 * records, attributes ("n" or the number of values, separated by commas), classes, learner (HoeffdingTree or EFDT), options, repeats, how (bare:
 * the learner alone; evaluated: with MOA's evaluator; task: MOA's EvaluatePrequential); and, for a trace, predictions (int32 a record) and splits (a line a split: record, attribute, test).
 * Prints one JSON object.
 */
public final class Prequential {

    /** The tests that a traced tree has installed, and the record at hand. */
    static final List<String> INSTALLED = new ArrayList<>();
    static long record;

    private static void note(InstanceConditionalTest test, double[] weights, InstancesHeader header) {
        String what;
        if (test instanceof NumericAttributeBinaryTest) {
            what = "<= " + ((NumericAttributeBinaryTest) test).getSplitValue();
        } else if (test instanceof NominalAttributeMultiwayTest) {
            what = "multiway";
        } else {
            StringBuilder text = new StringBuilder();
            text.append(test.describeConditionForBranch(0, header));
            // The description ends in "{val 3:2}": the third value, whose code is 2.
            what = "== " + text.substring(text.lastIndexOf(":") + 1, text.length() - 1);
        }
        INSTALLED.add(record + " " + test.getAttsTestDependsOn()[0] + " " + what + " " + Utils.sum(weights));
    }

    /** The tree, telling which tests it installs. */
    static final class Traced extends HoeffdingTree {
        private static final long serialVersionUID = 1L;

        @Override
        protected SplitNode newSplitNode(InstanceConditionalTest test, double[] weights, int size) {
            note(test, weights, getModelContext());
            return super.newSplitNode(test, weights, size);
        }
    }

    /** EFDT, telling which tests it installs, first ones and replacements, if it is traced. */
    static final class Revising extends EFDT {
        private static final long serialVersionUID = 1L;
        private final boolean traced;

        Revising(boolean traced) {
            this.traced = traced;
        }

        @Override
        protected SplitNode newSplitNode(InstanceConditionalTest test, double[] weights, int size) {
            if (traced) {
                note(test, weights, getModelContext());
            }
            return super.newSplitNode(test, weights, size);
        }

        /** Its own counters lose track of replaced subtrees. */
        long splits() {
            return treeRoot == null ? 0 : splits(treeRoot);
        }

        private static long splits(Node node) {
            if (!(node instanceof SplitNode)) {
                return 0;
            }
            long found = 1;
            for (int i = 0; i < ((SplitNode) node).numChildren(); i++) {
                found += splits(((SplitNode) node).getChild(i));
            }
            return found;
        }
    }

    private static AbstractClassifier tree(String name, boolean traced) {
        if (name.equals("EFDT")) {
            return new Revising(traced);
        }
        return traced ? new Traced() : new HoeffdingTree();
    }

    /** The rows as one of MOA's streams. */
    static final class Memory extends AbstractMOAObject implements InstanceStream {
        private static final long serialVersionUID = 1L;
        private final transient Example<Instance>[] examples;
        private final transient InstancesHeader header;
        private transient int next;

        Memory(Example<Instance>[] examples, InstancesHeader header) {
            this.examples = examples;
            this.header = header;
        }

        @Override
        public InstancesHeader getHeader() {
            return header;
        }

        @Override
        public long estimatedRemainingInstances() {
            return examples.length - next;
        }

        @Override
        public boolean hasMoreInstances() {
            return next < examples.length;
        }

        @Override
        public Example<Instance> nextInstance() {
            return examples[next++];
        }

        @Override
        public boolean isRestartable() {
            return true;
        }

        @Override
        public void restart() {
            next = 0;
        }

        @Override
        public void getDescription(StringBuilder text, int indent) {
            text.append("rows in memory");
        }
    }

    /** CPU time of this thread: what else runs on the machine does not count. */
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    private Prequential() {
    }

    /** Nanoseconds that this thread and the garbage collector, which stops it, have worked. */
    static long spent() {
        long collected = 0;
        for (GarbageCollectorMXBean collector : ManagementFactory.getGarbageCollectorMXBeans()) {
            collected += 1_000_000L * collector.getCollectionTime();
        }
        return THREADS.getCurrentThreadCpuTime() + collected;
    }

    static InstancesHeader header(String kinds, int classes) {
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

    static Instance[] read(String path, int records, int width, InstancesHeader header) throws IOException {
        Instance[] rows = new Instance[records];
        try (FileChannel file = FileChannel.open(Paths.get(path), StandardOpenOption.READ)) {
            ByteBuffer buffer = ByteBuffer.allocateDirect((width + 1) * 8 * 1024).order(ByteOrder.LITTLE_ENDIAN);
            buffer.limit(0);
            for (int i = 0; i < records; i++) {
                if (!buffer.hasRemaining()) {
                    buffer.clear();
                    while (buffer.hasRemaining() && file.read(buffer) >= 0) {
                    }
                    buffer.flip();
                }
                double[] row = new double[width];
                for (int j = 0; j < width; j++) {
                    row[j] = buffer.getDouble();
                }
                rows[i] = new DenseInstance(buffer.getDouble(), row);
                rows[i].setDataset(header);
            }
        }
        return rows;
    }

    private static double measurement(AbstractClassifier tree, String name) {
        for (Measurement m : tree.getModelMeasurements()) {
            if (m.getName().equals(name)) {
                return m.getValue();
            }
        }
        throw new IllegalStateException("no measurement '" + name + "'");
    }

    private static AbstractClassifier prepared(AbstractClassifier tree, String options, InstancesHeader header) {
        tree.getOptions().setViaCLIString(options);
        tree.setModelContext(header);
        tree.prepareForUse();
        return tree;
    }

    /** Predict and train, counting hits: the learner alone. */
    static long count(AbstractClassifier tree, Instance[] rows) {
        long correct = 0;
        for (Instance row : rows) {
            if (Utils.maxIndex(tree.getVotesForInstance(row)) == (int) row.classValue()) {
                correct++;
            }
            tree.trainOnInstance(row);
        }
        return correct;
    }

    /** Predict, evaluate and train, with the evaluator of MOA's EvaluatePrequential: what that task does. */
    private static long evaluate(AbstractClassifier tree, Example<Instance>[] examples, InstancesHeader header) {
        WindowClassificationPerformanceEvaluator evaluator = new WindowClassificationPerformanceEvaluator();
        evaluator.prepareForUse();
        evaluator.reset(header.numClasses());
        long correct = 0;
        for (Example<Instance> example : examples) {
            double[] votes = tree.getVotesForInstance(example);
            evaluator.addResult(example, votes);
            if (Utils.maxIndex(votes) == (int) example.getData().classValue()) {
                correct++;
            }
            tree.trainOnInstance(example);
        }
        return correct;
    }

    /** Run MOA's own task over the rows, with its defaults. */
    private static void task(String name, String options, Example<Instance>[] examples, InstancesHeader header) {
        EvaluatePrequential task = new EvaluatePrequential();
        task.learnerOption.setValueViaCLIString("trees." + name + " " + options);
        task.streamOption.setCurrentObject(new Memory(examples, header));
        task.prepareForUse();
        task.doTask();
    }

    public static void main(String[] arguments) throws IOException {
        Properties job = new Properties();
        try (InputStream in = new FileInputStream(arguments[0])) {
            job.load(in);
        }
        int records = Integer.parseInt(job.getProperty("records"));
        String kinds = job.getProperty("attributes");
        InstancesHeader header = header(kinds, Integer.parseInt(job.getProperty("classes")));
        Instance[] rows = read(job.getProperty("columns"), records, header.numAttributes(), header);
        String options = job.getProperty("options");
        int repeats = Integer.parseInt(job.getProperty("repeats", "1"));
        String how = job.getProperty("how", "bare");
        @SuppressWarnings("unchecked")
        Example<Instance>[] examples = new Example[records];
        for (int i = 0; i < records; i++) {
            examples[i] = new InstanceExample(rows[i]);
        }
        StringBuilder seconds = new StringBuilder();
        String name = job.getProperty("learner");
        PrintStream errors = System.err;
        System.setErr(new PrintStream(OutputStream.nullOutputStream())); // EFDT writes a line a replacement
        AbstractClassifier tree = null;
        long correct = 0;
        for (int repeat = 0; repeat < repeats; repeat++) {
            tree = prepared(tree(name, false), options, header);
            long start = spent();
            if (how.equals("task")) {
                task(name, options, examples, header);
            } else {
                correct = how.equals("evaluated") ? evaluate(tree, examples, header) : count(tree, rows);
            }
            seconds.append(repeat == 0 ? "" : ", ").append((spent() - start) / 1e9);
        }
        if (job.containsKey("predictions")) {
            tree = prepared(tree(name, true), options, header);
            correct = 0;
            try (DataOutputStream out = new DataOutputStream(
                    new BufferedOutputStream(new FileOutputStream(job.getProperty("predictions"))))) {
                for (int i = 0; i < records; i++) {
                    record = i;
                    int predicted = Utils.maxIndex(tree.getVotesForInstance(rows[i]));
                    out.writeInt(Integer.reverseBytes(predicted));
                    if (predicted == (int) rows[i].classValue()) {
                        correct++;
                    }
                    tree.trainOnInstance(rows[i]);
                }
            }
            try (PrintWriter out = new PrintWriter(job.getProperty("splits"), "UTF-8")) {
                INSTALLED.forEach(out::println);
            }
        }
        if (job.getProperty("how", "bare").equals("task")) {
            tree = prepared(tree(name, false), options, header);
            correct = count(tree, rows);
        }
        System.setErr(errors);
        double leaves = measurement(tree, "tree size (leaves)");
        double splits = tree instanceof Revising
                ? ((Revising) tree).splits() : measurement(tree, "tree size (nodes)") - leaves;
        System.out.printf("{\"records\": %d, \"correct\": %d, \"leaves\": %d, \"splits\": %d, \"depth\": %d, \"seconds\": [%s]}%n",
                records, correct, (long) leaves, (long) splits, (long) measurement(tree, "tree depth"), seconds);
    }
}
