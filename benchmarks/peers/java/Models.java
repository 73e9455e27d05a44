import com.yahoo.labs.samoa.instances.Attribute;
import com.yahoo.labs.samoa.instances.Instances;
import com.yahoo.labs.samoa.instances.InstancesHeader;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import moa.classifiers.trees.HoeffdingTree;
import moa.core.Utils;

/** One HoeffdingTree of MOA for each model key, planted when the key is first met. */
final class Models {

    /**
     * A tree, its key as records carry it, and how many labels it has learned. It numbers classes as it meets them, as
     * our worker's models do: of classes with equal votes the first one wins.
     */
    static final class Model {
        static final int UNKNOWN = -1;
        final byte[] key;
        final HoeffdingTree tree;
        long version;
        private final int[] codes;
        private final int[] classes;
        private int known;

        Model(byte[] key, HoeffdingTree tree, int classes) {
            this.key = key;
            this.tree = tree;
            this.codes = new int[classes];
            this.classes = new int[classes];
            Arrays.fill(this.codes, UNKNOWN);
            Arrays.fill(this.classes, UNKNOWN);
        }

        /** The tree's number of a class that is learned now. */
        int learned(int label) {
            if (codes[label] == UNKNOWN) {
                classes[known] = label;
                codes[label] = known++;
            }
            return codes[label];
        }

        /**
         * The class that the tree gives most votes, and its votes as probabilities, NaN of classes that it has not met.
         * -1: it has met none.
         */
        int answer(double[] votes, double[] probabilities) {
            if (known == 0) {
                return UNKNOWN;
            }
            double sum = Utils.sum(votes);
            for (int i = 0; i < codes.length; i++) {
                int code = codes[i];
                double vote = code < votes.length && sum > 0.0 && code != UNKNOWN ? votes[code] / sum : 0.0;
                probabilities[i] = code == UNKNOWN ? Double.NaN : vote;
            }
            return classes[votes.length == 0 ? 0 : Utils.maxIndex(votes)];
        }
    }

    final InstancesHeader header;
    private final String options;
    private final Map<ByteBuffer, Model> byKey = new HashMap<>();

    Models(List<String> names, List<String> classes, String options) {
        ArrayList<Attribute> attributes = new ArrayList<>();
        for (String name : names) {
            attributes.add(new Attribute(name));
        }
        attributes.add(new Attribute("class", classes));
        header = new InstancesHeader(new Instances("rows", attributes, 0));
        header.setClassIndex(header.numAttributes() - 1);
        this.options = options;
    }

    /** The model of a key, which is looked at only, and copied if it is new. */
    Model of(ByteBuffer key) {
        Model model = byKey.get(key);
        return model == null ? plant(key) : model;
    }

    private Model plant(ByteBuffer key) {
        byte[] copy = new byte[key.remaining()];
        key.duplicate().get(copy);
        HoeffdingTree tree = new HoeffdingTree();
        tree.getOptions().setViaCLIString(options);
        tree.setModelContext(header);
        tree.prepareForUse();
        Model model = new Model(copy, tree, header.numClasses());
        byKey.put(ByteBuffer.wrap(copy), model);
        return model;
    }
}
